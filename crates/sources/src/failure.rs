//! Why there is no answer.

use std::time::Duration;

use alloy_primitives::Bytes as Data;
use archive::{LogsError, StoreError};
use resources::{OverBudget, PoolFailure};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The EVM met REVERT; the reason is in the data.
    Reverted { data: Data },
    /// The EVM stopped for another reason, in the words that clients know.
    Execution(String),
    /// The call contradicts the chain (another chain id, a fee below the base fee …).
    Refused(String),
    /// More logs than one query may return; `from` to `to` is the widest range from the same start that fits.
    TooManyResults { from: u64, to: u64, most: u64 },
    /// The deadline of a search passed.
    QueryTimeout,
    /// The deadline of a search passed before the headers of these blocks were fetched. Those that were fetched are stored.
    NotIndexed { from: u64, to: u64 },
    /// The deadline of a simulation passed.
    CallTimeout(Duration),
    /// Nobody can answer now; the same call may succeed later.
    Unavailable,
    /// The same, with what keeps each node from answering, in plain words.
    NotServed { reason: String },
    /// No node that has answered has it, but they may lack what is old, and another node has not answered in time.
    AbsenceUnknown,
    /// Every node is known to lack the method or the state that the call needs, so that asking again does not help.
    Lacking,
    /// The block has a transaction of a type that is unknown here, so nothing proves what nodes say about it.
    CannotBeProven { transaction_type: u64 },
    /// A block cannot be proven: its header has members of a later fork without those of an earlier one.
    OddHeader,
    /// No node proves the state, and there are not enough nodes to confirm it.
    StateNotProven,
    /// The state of a block that was reorganised away is not served.
    SideStateGone,
    /// The pool has no place for more work.
    OverCapacity,
    /// Our own fault. The text is for the log only.
    Broken(String),
}

impl Failure {
    /// Of a call that needs nodes, before any block of theirs is known.
    pub fn no_chain() -> Self {
        Self::NotServed { reason: "no quorum of the nodes has shown its chain yet".to_owned() }
    }
}

impl From<PoolFailure> for Failure {
    fn from(failure: PoolFailure) -> Self {
        match failure {
            PoolFailure::Refused => Self::OverCapacity,
            PoolFailure::Panicked => Self::Broken("a job of the thread pool panicked".to_owned()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(cause: StoreError) -> Self {
        Self::Broken(cause.to_string())
    }
}

impl From<OverBudget> for Failure {
    fn from(_: OverBudget) -> Self {
        Self::OverCapacity
    }
}

impl From<LogsError> for Failure {
    fn from(cause: LogsError) -> Self {
        match cause {
            LogsError::Timeout | LogsError::Cancelled => Self::QueryTimeout,
            other => Self::Broken(other.to_string()),
        }
    }
}
