//! Errors and overrides of simulations, on the embedded chain and on proven state.

use std::time::Duration;

use archive::{CallError, Overrides, StopReason};
use methods::CallMessage;

use crate::failure::Failure;

/// The failure of a simulation. `is_try` says that it is an inline try, after which the simulation starts over in the pool.
pub fn call_failure(cause: CallError, timeout: Duration, is_try: bool) -> Failure {
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
pub fn overrides(message: &CallMessage) -> Overrides {
    let overrides = &message.overrides;
    Overrides { state: overrides.state.clone(), block: overrides.block.as_deref().cloned() }
}
