//! Facts about each method for both documents: defaults of parameters, errors and limits.

use std::time::Duration;

use alloy_primitives::Bytes;
use answers::Unresolved;
use answers::{AnswerLimits, Failure};
use gateway::errors::ErrorReply;
use gateway::parse::Unanswerable;
use methods::{DeadlineKind, Method, MissingBlock, NetworkFamily, Param, ParamFault, WorkPlacement};

/// What a parameter means.
pub(super) fn about_param(param: Param) -> &'static str {
    match param {
        Param::Address => "the account or contract",
        Param::Position => "the storage slot",
        Param::StateBlock | Param::BlockNumber | Param::AnyBlock | Param::BlockInteger | Param::BlockHash => {
            "the block"
        }
        Param::NewestBlock => "the last block of the range",
        Param::BlockCount => "the number of blocks, at most 1,024",
        Param::RewardPercentiles => "up to 100 numbers from 0 to 100, sorted",
        Param::Index => "the index in the block, counted from 0",
        Param::TransactionHash => "the transaction",
        Param::Filter => "the blocks, addresses and topics",
        Param::Call => "the message to execute",
        Param::StateOverrides => "accounts to change for this call",
        Param::BlockOverrides => "fields of the block to change for this call",
        Param::FullTransactions => "whether `transactions` has whole transactions instead of hashes",
    }
}

/// The default of an optional parameter as JSON; `None` if it has no default.
pub(super) fn param_default(param: Param) -> Option<&'static str> {
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

/// When a method fails, and with which error, besides the errors of every method.
pub(super) fn errors(method: &Method) -> Vec<(&'static str, ErrorReply)> {
    let mut errors: Vec<(&'static str, ErrorReply)> = Vec::new();
    if method.params.contains(&Param::StateBlock) {
        errors.push(("there is no block with this number", Unresolved::NoHeader.into()));
        errors.push(("there is no block with this hash", Unresolved::NoHeaderForHash.into()));
        errors.push((
            "the block was reorganised away, and `requireCanonical` is set",
            Unresolved::NotCanonical.into(),
        ));
    } else if method.missing == MissingBlock::Error && method.params.contains(&Param::NewestBlock) {
        errors.push(("there is no block with this number", Unresolved::NoHeader.into()));
    }
    if method.params.contains(&Param::Filter) {
        errors.extend(log_errors());
    }
    if method.params.contains(&Param::Call) {
        errors.extend(call_errors());
    }
    if method.name == "eth_estimateGas" {
        let text = "gas required exceeds allowance (30000000)".to_owned();
        errors.push(("the message needs more gas than is allowed", Failure::Execution(text).into()));
    }
    if let WorkPlacement::Pooled(deadline) = method.work {
        errors.push(("the time limit passes", timeout(deadline).into()));
    }
    if method.families == [NetworkFamily::Zksync] {
        errors.push(("the network is not of the family zksync", Unanswerable::NotHere(method.name).into()));
    }
    errors
}

fn log_errors() -> [(&'static str, ErrorReply); 6] {
    let too_many_params = ParamFault::TooManyLogParams { count: 5_001, max: 5_000 };
    [
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

fn call_errors() -> [(&'static str, ErrorReply); 2] {
    [
        (
            "the contract reverts; the message ends with the reason, if there is one",
            Failure::Reverted { data: Bytes::new() }.into(),
        ),
        ("the EVM stops for another reason", Failure::Execution("out of gas".to_owned()).into()),
    ]
}

fn timeout(deadline: DeadlineKind) -> Failure {
    match deadline {
        DeadlineKind::Call => Failure::CallTimeout(Duration::from_secs(5)),
        DeadlineKind::Logs | DeadlineKind::Fees | DeadlineKind::Block => Failure::QueryTimeout,
    }
}

/// The limits of a method: each with its default and the configuration key that changes it.
pub(super) fn limits(method: &Method, limits: &AnswerLimits) -> Vec<String> {
    let mut lines = Vec::new();
    if let WorkPlacement::Pooled(deadline) = method.work {
        let (time, key) = match deadline {
            DeadlineKind::Logs => (limits.log_timeout, "log_timeout_ms"),
            DeadlineKind::Call | DeadlineKind::Fees | DeadlineKind::Block => {
                (limits.call_timeout, "call_timeout_ms")
            }
        };
        lines.push(format!("{} seconds (`{key}`)", time.as_secs()));
    }
    if method.params.contains(&Param::Filter) {
        lines.push(format!("{} logs (`log_results_max`)", limits.log_results_max));
        lines.push(format!("{} addresses and topics (`log_params_max`)", limits.log_params_max));
        let blocks = limits.log_blocks_max.map_or("any number of".to_owned(), |most| most.to_string());
        lines.push(format!("{blocks} blocks (`log_blocks_max`)"));
    }
    if method.params.contains(&Param::Call) {
        let multiple = limits.call_gas_multiple;
        lines
            .push(format!("gas of {multiple} times the gas limit of the newest block (`call_gas_multiple`)"));
        let memory = limits.call_memory_bytes_max >> 20;
        lines.push(format!("{memory} MiB of EVM memory (`call_memory_bytes_max`)"));
    }
    lines
}
