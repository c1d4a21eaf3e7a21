//! What nodes mean → our failures. Their own words end here.

use nodes::dialect::{Execution, Meaning};
use nodes::{CallerError, Failed};

use crate::failure::Failure;
use crate::limits::Limits;
use crate::query_plan::NodeQuery;

/// An error that is the caller's own.
pub(super) fn failure(error: &CallerError, limits: &Limits) -> Failure {
    match &error.0 {
        Meaning::Reverted { data } => Failure::Reverted { data: data.clone().unwrap_or_default() },
        Meaning::Execution(execution) => stopped(*execution, limits),
        _ => Failure::Unavailable,
    }
}

/// Why the EVM stopped or would not begin.
pub(super) fn stopped(execution: Execution, limits: &Limits) -> Failure {
    match execution {
        Execution::Timeout => Failure::CallTimeout(limits.call_timeout),
        refusal if is_refusal(refusal) => Failure::Refused(refusal.to_string()),
        other => Failure::Execution(other.to_string()),
    }
}

/// Whether the EVM was never begun.
fn is_refusal(execution: Execution) -> bool {
    matches!(
        execution,
        Execution::InsufficientFunds
            | Execution::IntrinsicGas
            | Execution::FeeCapBelowBaseFee
            | Execution::TipAboveFeeCap
            | Execution::NonceTooLow
            | Execution::NonceTooHigh
            | Execution::GasAboveLimit
            | Execution::SenderNotEoa
    )
}

/// Nobody answered. A simulation that nobody finished in time took too long; anything else is an outage.
pub(super) fn nothing(query: NodeQuery<'_>, failed: Failed, limits: &Limits) -> Failure {
    match failed {
        Failed::Deadline if query.is_simulation() => Failure::CallTimeout(limits.call_timeout),
        Failed::Unchecked => Failure::OverCapacity,
        Failed::Unavailable | Failed::Lacking | Failed::Deadline => Failure::Unavailable,
    }
}

/// Nobody answered a log query.
pub(super) fn no_logs(failed: Failed) -> Failure {
    match failed {
        Failed::Deadline => Failure::QueryTimeout,
        Failed::Unavailable | Failed::Lacking => Failure::Unavailable,
        Failed::Unchecked => Failure::OverCapacity,
    }
}
