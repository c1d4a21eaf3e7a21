//! Facts about each method for both documents: defaults of parameters, errors and limits.

use std::time::Duration;

use alloy_primitives::Bytes;
use answers::Unresolved;
use gateway::{ErrorReply, Unanswerable};
use methods::{
    BlockParam, DeadlineKind, FeeQuery, NetworkFamily, Param, ParamFault, Query, SimulationKind,
    WorkPlacement,
};
use remote::settings::PoolConfig;
use sources::{AnswerLimits, CALL_MEMORY_BYTES_MAX, Failure};

use crate::examples::Example;

/// The default of an optional parameter as JSON; `None` if it has no default.
pub(crate) fn param_default(param: Param) -> Option<&'static str> {
    match param {
        Param::StateBlock => Some("\"latest\""),
        Param::FullTransactions => Some("false"),
        Param::RewardPercentiles => Some("[]"),
        Param::Address
        | Param::Position
        | Param::BlockNumber
        | Param::AnyBlock
        | Param::BlockInteger
        | Param::BlockHash
        | Param::NewestBlock
        | Param::BlockCount
        | Param::Index
        | Param::TransactionHash
        | Param::Filter
        | Param::Call
        | Param::StateOverrides
        | Param::BlockOverrides => None,
    }
}

/// The kind of a method, as nodes.md names it.
pub(crate) fn kind(query: &Query<BlockParam>) -> &'static str {
    match query {
        Query::Gateway(_) => "chain",
        Query::Fees(_) => "fees",
        Query::State(_) => "state",
        Query::Simulation(_) => "simulation",
        Query::Block(_) => "block",
        Query::Transaction(_) => "transaction",
        Query::RawTransactions(_) => "raw transactions",
        Query::Logs(_) => "logs",
    }
}

type ErrorCase = (&'static str, ErrorReply);

/// When a method fails, and with which error, besides the errors of every method.
pub(crate) fn errors(example: &Example) -> Vec<ErrorCase> {
    let rules = &example.method.rules;
    let mut errors = match &example.query {
        Query::State(_) => state_errors(),
        Query::Simulation(query) => [state_errors(), simulation_errors(query.kind)].concat(),
        Query::Fees(FeeQuery::History { .. }) => {
            vec![("there is no block with this number", Unresolved::NoHeader.into())]
        }
        Query::Logs(_) => log_errors(),
        Query::Gateway(_)
        | Query::Fees(FeeQuery::NextBlock(_))
        | Query::Block(_)
        | Query::Transaction(_)
        | Query::RawTransactions(_) => Vec::new(),
    };
    if let WorkPlacement::Pooled(deadline) = rules.work {
        errors.push(("the time limit passes", timeout(deadline).into()));
    }
    if rules.families == [NetworkFamily::Zksync] {
        let not_here = Unanswerable::NotHere(example.method.name);
        errors.push(("the network is not of the family zksync", not_here.into()));
    }
    errors
}

fn state_errors() -> Vec<ErrorCase> {
    vec![
        ("there is no block with this number", Unresolved::NoHeader.into()),
        ("there is no block with this hash", Unresolved::NoHeaderForHash.into()),
        ("the block was reorganised away, and `requireCanonical` is set", Unresolved::NotCanonical.into()),
    ]
}

fn log_errors() -> Vec<ErrorCase> {
    let too_many_params = ParamFault::TooManyLogParams { count: 5_001, max: 5_000 };
    vec![
        ("`fromBlock` or `toBlock` is `pending`", Unresolved::PendingLogs.into()),
        ("the range ends before it begins", Unresolved::BadRange.into()),
        ("the range ends after the newest block", Unresolved::BeyondHead.into()),
        ("there is no block with this hash", Unresolved::UnknownLogsBlock.into()),
        ("there are too many addresses and topics", Unanswerable::Params(too_many_params).into()),
        (
            "there are too many logs; `data` is the longest range from the same start that fits",
            Failure::TooManyResults { from: 0xb4, to: 0xe5, most: 10_000 }.into(),
        ),
    ]
}

fn simulation_errors(kind: SimulationKind) -> Vec<ErrorCase> {
    let mut errors = vec![
        (
            "the contract reverts; the message ends with the reason, if there is one",
            Failure::Reverted { data: Bytes::new() }.into(),
        ),
        ("the EVM stops for another reason", Failure::Execution("out of gas".to_owned()).into()),
    ];
    match kind {
        SimulationKind::Call => {}
        SimulationKind::Estimate => {
            let text = "gas required exceeds allowance (30000000)".to_owned();
            errors.push(("the message needs more gas than is allowed", Failure::Execution(text).into()));
        }
    }
    errors
}

fn timeout(deadline: DeadlineKind) -> Failure {
    match deadline {
        DeadlineKind::Call => Failure::CallTimeout(Duration::from_secs(5)),
        DeadlineKind::Logs | DeadlineKind::Fees | DeadlineKind::Block => Failure::QueryTimeout,
    }
}

/// The limits of a method: each with its default and the configuration key that changes it.
pub(crate) fn limits(example: &Example, limits: &AnswerLimits) -> Vec<String> {
    let mut lines = Vec::new();
    if let WorkPlacement::Pooled(deadline) = example.method.rules.work {
        lines.push(match deadline {
            DeadlineKind::Logs => format!("{} seconds (`log_timeout_ms`)", limits.log_timeout.as_secs()),
            DeadlineKind::Call => format!("{} seconds (`call_timeout_ms`)", limits.call_timeout.as_secs()),
            DeadlineKind::Fees | DeadlineKind::Block => format!(
                "{} seconds on an embedded chain (`[limits] call_timeout_ms`), {} in front of nodes (`[pool] call_timeout_ms`)",
                limits.call_timeout.as_secs(),
                PoolConfig::default().call_timeout.as_secs(),
            ),
        });
    }
    match &example.query {
        Query::Logs(_) => {
            lines.push(format!("{} logs (`log_results_max`)", limits.log_results_max));
            lines.push(format!("{} addresses and topics (`log_params_max`)", limits.log_params_max));
            let blocks = limits.log_blocks_max.map_or("any number of".to_owned(), |most| most.to_string());
            lines.push(format!("{blocks} blocks (`log_blocks_max`)"));
        }
        Query::Simulation(_) => {
            let (multiple, memory) = (limits.call_gas_multiple, CALL_MEMORY_BYTES_MAX >> 20);
            lines.push(format!(
                "gas of {multiple} times the gas limit of the newest block (`call_gas_multiple`)"
            ));
            lines.push(format!("{memory} MiB of memory"));
        }
        Query::Gateway(_)
        | Query::Fees(_)
        | Query::State(_)
        | Query::Block(_)
        | Query::Transaction(_)
        | Query::RawTransactions(_) => {}
    }
    lines
}
