//! One call over several nodes.
//!
//! | what comes                           | it says about the node | and then                                         |
//! |--------------------------------------|------------------------|--------------------------------------------------|
//! | a result that is believed            | good                   | done                                             |
//! | a result that another may know better| good                   | kept as the fallback; another that has the block |
//! | a null where we know of something    | good                   | another                                          |
//! | a result that cannot be true         | a lie                  | another                                          |
//! | a result whose proof fails           | a lie, if another node | another                                          |
//! |                                      | proves the same        |                                                  |
//! | an error of the caller's own         | good                   | done, with that error                            |
//! | "not here"                           | good, and it is learned| another                                          |
//! | "too wide a range"                   | good, and it is learned| another; when none is left, the widest range     |
//! | "too many results"                   | good                   | another; when a second says so, done with that   |
//! | an error that a caller may have made | nothing                | another                                          |
//! | an error of the node's own, a fault  | bad                    | another                                          |
//! | nothing, for longer than is usual    | nothing yet            | another too, within the hedge budget             |
//! | nothing, for much longer             | mildly bad             | another too, within the retry budget; a fallback |
//! |                                      |                        | is not kept back for a silent node               |
//! | the deadline                         | mildly bad             | the fallback, or none                            |
//!
//! The retry budget pays for "another", and counts only attempts in vain. A call that it refuses waits: for as long as it has time
//! if a node is well, and for a moment if all nodes that are left seem to be down. When all were tried and some failed or were
//! rejected, those are tried once more. The first answer that is believed wins, and the other attempts are dropped.
//!
//! [`progress`] holds a status per node, [`next_action`] decides from it what is done next, and [`driver`] does it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use tokio::time::Instant;

use crate::budget::Budgets;
use crate::call::{Ask, Call, RpcError};
use crate::node::Node;

mod driver;
mod meaning;
mod next_action;
mod progress;

#[cfg(test)]
pub(crate) mod script;
#[cfg(test)]
mod tests;

use driver::Driver;
pub(crate) use meaning::ErrorMeaning;
pub(crate) use meaning::read;
pub use meaning::{CallerError, RangeLimit};

/// The most nodes of a pool. Every call looks at all of them when it chooses one.
pub const NODES_MAX: usize = 128;
/// How often all nodes of a pool are tried. The second time is for those that failed, which may have been a moment's trouble;
/// with a single node there is nobody else to ask.
pub(crate) const ROUNDS_MAX: u32 = 2;

/// What a result is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Believed,
    /// A null or empty result that another node may know better. Data always wins over it.
    Doubtful,
    /// A null where there is something, as the view knows: the node is late, or has lost it. No answer at all.
    Late,
    /// It cannot be true, and why. The words are for the log.
    Wrong(&'static str),
    /// Its proof fails. The node is passed over for this call; whether it is to blame shows when another node proves the same.
    Unproven,
    /// It could not be checked, because no thread was free. That is not the node's fault.
    Unchecked,
}

/// A judgement, or the work that leads to one on another thread, for results that take long to check.
pub enum Judging<'j> {
    Done(Judgement),
    Elsewhere(Pin<Box<dyn Future<Output = Judgement> + Send + 'j>>),
}

impl fmt::Debug for Judging<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(judgement) => write!(out, "Done({judgement:?})"),
            Self::Elsewhere(_) => out.write_str("Elsewhere"),
        }
    }
}

impl From<Judgement> for Judging<'_> {
    fn from(judgement: Judgement) -> Self {
        Self::Done(judgement)
    }
}

pub(crate) type Judge<'a, 'j, A> = &'a (dyn Fn(&Node<A>, &Bytes) -> Judging<'j> + Sync);

/// What all calls of one pool have in common.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) budgets: Budgets,
    pub(crate) rng: NodeRng,
    /// What a node means by an error.
    pub(crate) read: fn(&RpcError, &Call) -> ErrorMeaning,
    /// How often all nodes are tried.
    pub(crate) rounds_max: u32,
}

/// What came of a call, as far as it was answered.
#[derive(Debug)]
pub struct Answered<A> {
    pub said: Said,
    pub node: Arc<Node<A>>,
    /// False if it is a doubtful result that no other node could better.
    pub sure: bool,
    /// Whether every node of this chain was asked, and none had anything to say.
    pub nowhere: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Result(Bytes),
    /// The caller's own error.
    Error(CallerError),
    /// The call must be split before it is asked again.
    Limit(RangeLimit),
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    #[error("no node could answer")]
    Unavailable,
    /// Asking later will not help either.
    #[error("no node has what the call needs")]
    Lacking,
    #[error("no answer before the deadline")]
    Deadline,
    #[error("an answer could not be checked in time")]
    Unchecked,
}

/// Asks nodes until one answers.
pub(crate) async fn ask<A: Ask>(
    nodes: &[Arc<Node<A>>],
    call: &Call,
    judge: Judge<'_, '_, A>,
    rules: &Rules,
    deadline: Instant,
) -> Result<Answered<A>, Failed> {
    let now = Instant::now();
    if now >= deadline {
        return Err(Failed::Deadline);
    }
    rules.budgets.deposit(now);
    Driver::new(nodes, call, judge, rules, deadline).run().await
}

/// Random numbers that a test can know beforehand (splitmix64). They choose nodes, and protect nothing.
#[derive(Debug)]
pub(crate) struct NodeRng(AtomicU64);

impl NodeRng {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    pub(crate) fn next_u64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let z = self.0.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
