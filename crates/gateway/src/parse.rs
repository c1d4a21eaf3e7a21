//! Step 3: a call's bytes → a query, typed by its method's row.
//!
//! The `jsonrpc` crate has checked that the body is JSON-RPC; here a call is looked up in the method table.

use std::panic::{AssertUnwindSafe, catch_unwind};

use callers::{KeyRestriction, KeySettings};
use jsonrpc::{Call, CallFault, RequestItem};
use methods::{BlockParam, LogsQuery, MethodId, Network, ParamFault, Query, SimulationKind, SimulationQuery};

use crate::admit::refused_credits;
use crate::policy::UNKNOWN_METHOD_CREDITS;

/// A call that can be answered.
#[derive(Debug)]
pub(crate) struct ParsedCall {
    pub(crate) method: MethodId,
    pub(crate) query: Query<BlockParam>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Unanswerable {
    InvalidCall(CallFault),
    NoMethod(String),
    NotHere(&'static str),
    Params(ParamFault),
    /// A setting of the key does not allow it.
    NotAllowed(KeyRestriction),
    /// Reading it panicked, which is our fault.
    Panicked,
}

/// Parses a call, and checks that its key may make it. A panic costs one call its answer.
pub(crate) fn parse(
    item: &RequestItem<'_>,
    network: &Network,
    log_params_max: usize,
    settings: Option<&KeySettings>,
) -> Result<ParsedCall, Unanswerable> {
    let parse = || parse_checked(item, network, log_params_max, settings);
    catch_unwind(AssertUnwindSafe(parse)).unwrap_or(Err(Unanswerable::Panicked))
}

fn parse_checked(
    item: &RequestItem<'_>,
    network: &Network,
    log_params_max: usize,
    settings: Option<&KeySettings>,
) -> Result<ParsedCall, Unanswerable> {
    let call = item.as_ref().map_err(|bad| Unanswerable::InvalidCall(bad.fault))?;
    let method = method(call, network)?;
    let query = method.row().read(&call.params).map_err(Unanswerable::Params)?;
    check(&query, network, log_params_max).map_err(Unanswerable::Params)?;
    let asked = ParsedCall { method, query };
    if let Some(settings) = settings {
        settings.check_call(asked.method, &asked.query).map_err(Unanswerable::NotAllowed)?;
    }
    Ok(asked)
}

fn method(call: &Call<'_>, network: &Network) -> Result<MethodId, Unanswerable> {
    let id = MethodId::named(&call.method).ok_or_else(|| Unanswerable::NoMethod(call.method.to_string()))?;
    if !id.row().exists_on(&network.families) {
        return Err(Unanswerable::NotHere(id.row().name));
    }
    Ok(id)
}

/// Checks parameters against the settings of the network.
fn check(query: &Query<BlockParam>, network: &Network, log_params_max: usize) -> Result<(), ParamFault> {
    match query {
        Query::Logs(LogsQuery { filter, .. }) => match filter.value_count() {
            count if count > log_params_max => {
                Err(ParamFault::TooManyLogParams { count, max: log_params_max })
            }
            _ => Ok(()),
        },
        Query::Simulation(SimulationQuery { kind: SimulationKind::Call, message, .. })
            if network.eth_call_requires_from && message.request.from.is_none() =>
        {
            Err(ParamFault::Invalid { position: 0, reason: "from is required".into() })
        }
        Query::Simulation(_)
        | Query::Gateway(_)
        | Query::Fees(_)
        | Query::State(_)
        | Query::Block(_)
        | Query::Transaction(_)
        | Query::RawTransactions(_) => Ok(()),
    }
}

/// The price of a call that has `bytes` bytes, whether it can be answered or not.
pub(crate) fn price(parsed: &Result<ParsedCall, Unanswerable>, bytes: usize) -> u64 {
    match parsed {
        Ok(asked) => asked.method.row().credits,
        Err(Unanswerable::NoMethod(_)) => UNKNOWN_METHOD_CREDITS,
        Err(_) => refused_credits(bytes),
    }
}
