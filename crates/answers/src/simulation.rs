//! What simulations on the embedded chain and on proven state have in common.

use std::time::Duration;

use archive::{CallError, Overrides, StopReason};
use methods::Message;

use crate::failure::Failure;

/// What a simulation has failed with. `is_try` if it will be begun again when it takes too long.
pub(super) fn call_failure(cause: CallError, timeout: Duration, is_try: bool) -> Failure {
    match cause {
        CallError::Reverted { data } => Failure::Reverted { data },
        CallError::Halted(_) | CallError::GasExceedsAllowance { .. } => Failure::Execution(cause.to_string()),
        CallError::Refused(_) | CallError::Overrides(_) => Failure::Refused(cause.to_string()),
        CallError::Stopped(StopReason::Timeout { .. }) => Failure::CallTimeout(timeout),
        CallError::Stopped(_) if is_try => Failure::CallTimeout(timeout),
        CallError::Stopped(stop) => Failure::Execution(stop.to_string()),
        CallError::State(_) | CallError::Internal(_) | CallError::Panicked { .. } => {
            Failure::Broken(cause.to_string())
        }
    }
}

/// The overrides of a message.
pub(super) fn overrides(message: &Message) -> Overrides {
    let overrides = &message.overrides;
    Overrides { state: overrides.state.clone(), block: overrides.block.as_deref().cloned() }
}
