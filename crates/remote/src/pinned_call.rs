//! Calls whose blocks are pinned, and those that are handed back, because their block may not be on the chain any more.

use std::sync::Arc;

use methods::{BlockRef, Method, Query};
use resources::MemoryCharge;
use sources::Failure;
use tokio::time::Instant;

/// A call whose blocks are pinned.
#[derive(Debug)]
pub struct PinnedCall {
    pub method: &'static Method,
    pub query: Query<BlockRef>,
    /// Whether a partner may be asked when nobody else can answer.
    pub may_fail_over: bool,
    pub repetition: Repetition,
    /// The charge for the body that the call came in. Work that outlives its request keeps the query in memory, and with it
    /// the charge.
    pub body: Option<Arc<MemoryCharge>>,
}

/// Whether a call is handed back that no node could answer, so that its block is resolved once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// It is handed back once the nodes were polled.
    Once,
    /// It fails: it was handed back before and has this deadline, or it is part of a batch, whose calls all see the same chain.
    Never { deadline: Option<Instant> },
}

/// Why a call has no answer.
#[derive(Debug)]
pub enum Unanswered {
    Failed(Failure),
    HandedBack(HandedBack),
}

/// A call that is to be resolved once more.
#[derive(Debug)]
pub struct HandedBack {
    pub query: Box<Query<BlockRef>>,
    /// Until when it may be answered.
    pub deadline: Instant,
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
