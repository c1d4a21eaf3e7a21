//! Calls that are handed back, because their block is not on the chain any more.

use methods::{BlockRef, Query};

use crate::failure::Failure;

/// How a call ends whose block is reorganised away while nodes are asked about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// It fails: all calls of a batch see the same chain.
    No,
    /// It is handed back, to be repeated on the new branch until the deadline that it had the first time.
    Yes { deadline: Option<tokio::time::Instant> },
}

/// Why a call has no answer.
#[derive(Debug)]
pub enum Unanswered {
    Failed(Failure),
    Reorganised(Reorganised),
}

/// A call that is handed back, because its block is not on the chain any more.
#[derive(Debug)]
pub struct Reorganised {
    pub query: Box<Query<BlockRef>>,
    /// Until when it may be repeated.
    pub deadline: tokio::time::Instant,
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
