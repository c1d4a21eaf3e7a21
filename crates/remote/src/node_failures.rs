//! Errors of nodes → failures of ours. The texts of nodes go no further.

use nodes::dialect::{Execution, Meaning};
use nodes::{CallFailure, CallerError, NotFetched};
use sources::{AnswerLimits, Failure};

use crate::chain_query::ChainQuery;

/// The failure for an error that the caller has caused.
pub(super) fn of_caller_error(error: &CallerError, limits: &AnswerLimits) -> Failure {
    match &error.0 {
        Meaning::Reverted { data } => Failure::Reverted { data: data.clone().unwrap_or_default() },
        Meaning::Execution(execution) => of_execution(*execution, limits),
        _ => Failure::Unavailable,
    }
}

/// The failure for a message that the EVM stopped or did not begin.
pub(super) fn of_execution(execution: Execution, limits: &AnswerLimits) -> Failure {
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
            | Execution::GasAboveLimit { .. }
            | Execution::SenderNotEoa
    )
}

/// The failure for a call that no node answered. A simulation that no node finished in time took too long; anything else is
/// an outage.
pub(super) fn of_call(query: ChainQuery<'_>, failed: CallFailure, limits: &AnswerLimits) -> Failure {
    match failed {
        CallFailure::Deadline if query.is_simulation() => Failure::CallTimeout(limits.call_timeout),
        CallFailure::Unchecked => Failure::OverCapacity,
        CallFailure::Unavailable | CallFailure::Lacking | CallFailure::Deadline => Failure::Unavailable,
    }
}

/// The failure for a log query that no node answered.
pub(super) fn of_log_query(failed: CallFailure) -> Failure {
    match failed {
        CallFailure::Deadline => Failure::QueryTimeout,
        CallFailure::Unavailable | CallFailure::Lacking => Failure::Unavailable,
        CallFailure::Unchecked => Failure::OverCapacity,
    }
}

/// The failure for data that no node delivered with its proof.
pub(super) fn of_fetch(reason: NotFetched) -> Failure {
    match reason {
        NotFetched::Unavailable | NotFetched::Lacking | NotFetched::Deadline => Failure::Unavailable,
        NotFetched::Busy => Failure::OverCapacity,
        NotFetched::OddHeader => Failure::OddHeader,
        NotFetched::UnknownType(transaction_type) => Failure::CannotBeProven { transaction_type },
    }
}
