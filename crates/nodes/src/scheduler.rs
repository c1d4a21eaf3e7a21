//! One call over several nodes: for one answer that is believed, for several that the asker compares, or for one of every node.
//!
//! | event                                | effect on the node      | next for one answer            | for several, for all             |
//! |--------------------------------------|-------------------------|--------------------------------|----------------------------------|
//! | a result that is believed            | good                    | done                           | the asker compares; the node     |
//! |                                      |                         |                                | gives no other answer            |
//! | a doubtful result                    | good                    | kept as the fallback; another  | the same                         |
//! | a null where we know of something    | good                    | another                        | another; the same node again     |
//! |                                      |                         |                                | after growing pauses             |
//! | a result that cannot be true         | proven wrong            | another                        | another                          |
//! | a result whose proof fails           | proven wrong, if an-    | another                        | -                                |
//! |                                      | other proves the same   |                                |                                  |
//! | an error of the caller's own         | good                    | done, with that error          | an answer                        |
//! | no such method or state              | good, and it is learned | another                        | another                          |
//! | no such block                        | good                    | another                        | several: as a null above         |
//! | "too wide a range"                   | good, and it is learned | another; when none is left,    | an answer                        |
//! |                                      |                         | the widest range               |                                  |
//! | "too many results"                   | good                    | another; when a second says    | an answer                        |
//! |                                      |                         | so, done with that             |                                  |
//! | an error that a caller may have made | nothing                 | another                        | another                          |
//! | an error of the node's own, a fault  | bad                     | another                        | another                          |
//! | nothing, for longer than is usual    | nothing yet             | another too, within the hedge  | several: the same                |
//! |                                      |                         | budget                         |                                  |
//! | nothing, for much longer             | mildly bad              | another too, within the retry  | several: the same; when none is  |
//! |                                      |                         | budget; a fallback is not kept | left, the asker is told, and the |
//! |                                      |                         | back for a silent node         | node is given up later. All: it  |
//! |                                      |                         |                                | is waited for while its watcher  |
//! |                                      |                         |                                | has not lost it                  |
//! | the deadline                         | mildly bad              | the fallback, or none          | over                             |
//!
//! A call is worth as many attempts as answers are wanted. The retry budget pays for "another", and gets back what attempts cost that
//! were answered, or that were never sent because the queue of their account was full. A call that the budget refuses waits: until its
//! deadline if a node is well, and for a short time if all nodes that are left seem to be down. Nodes that failed are asked once more
//! when no other is left. The first answer that is believed wins, and the other attempts are dropped.
//!
//! A judge returns its finding about a result as a value, a [`ResultFinding`]. The asker gets all of them with the answer.
//!
//! [`progress`] holds a status per node, [`next_action`] decides from it what is done next, [`driver`] does it, and [`policy`] has
//! the times. [`one_answer`] and [`several_answers`] are the askers.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{RngCore as _, SeedableRng as _};
use tokio::time::{Instant, timeout_at};

use crate::budget::Budgets;
use crate::call::{RpcCall, RpcError};
use crate::node::Node;
use crate::node_id::NodeId;
use crate::proof_failure::ProofFailure;
use crate::view::NodesView;

mod driver; // does what is decided
mod facts; // the nodes, as decisions see them
mod meaning; // what a node's error means for a call
mod next_action; // decides what is done next
mod one_answer; // the first answer that is believed
mod payload; // one call, or several to the same node
pub(crate) mod policy; // times and numbers
mod progress; // a status per node
mod several_answers; // answers that the asker compares

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use meaning::ErrorMeaning;
pub(crate) use meaning::read;
pub use meaning::{CallerError, RangeLimit};
pub(crate) use one_answer::ask_one;
pub(crate) use payload::{Calls, Payload};
pub(crate) use progress::Wanted;
pub use several_answers::{AnswersEvent, NodeAnswer, SeveralAnswers};

/// The most nodes of a pool, because every call considers all of them.
pub const NODES_MAX: usize = 128;

/// The nodes that there are when a call begins.
pub(crate) type Nodes<A> = Arc<Vec<Arc<Node<A>>>>;

/// The consequence of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Believed,
    /// A null or empty result, of which another node may have more. Data always wins over it.
    Doubtful,
    /// A null although the view knows that there is something: the node is late, or has lost it.
    Late,
    /// It cannot be true.
    Wrong(ProofFailure),
    /// Its proof fails. The node is skipped for this call, and blamed only if another node delivers the same with its proof.
    Unproven,
}

/// The finding of a judge about a result.
pub trait ResultFinding: Send {
    fn judgement(&self) -> Judgement;
}

impl ResultFinding for Judgement {
    fn judgement(&self) -> Judgement {
        *self
    }
}

/// A finding, or the future of one for results that take long to check. The future gives `None` if the result could not be
/// checked because no thread was free, which is not the node's fault. Running out of time is `None`, too.
pub enum Judging<'j, F> {
    Done(F),
    Elsewhere(Pin<Box<dyn Future<Output = Option<F>> + Send + 'j>>),
}

impl<F> Judging<'_, F> {
    /// The finding. `None` if the result could not be checked before the deadline.
    pub async fn finish_before(self, deadline: Instant) -> Option<F> {
        match self {
            Self::Done(finding) => Some(finding),
            Self::Elsewhere(work) => timeout_at(deadline, work).await.ok().flatten(),
        }
    }
}

impl<F> fmt::Debug for Judging<'_, F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Done(_) => "Done",
            Self::Elsewhere(_) => "Elsewhere",
        })
    }
}

/// Judges what a node delivered.
pub type ResultJudge<'a, 'j, F, R = Bytes> = &'a (dyn Fn(NodeId, &R) -> Judging<'j, F> + Sync);

/// The parts that all calls of one pool share.
#[derive(Debug)]
pub(crate) struct CallRules {
    pub(crate) budgets: Budgets,
    pub(crate) rng: NodeRng,
    /// Interprets a node's error.
    pub(crate) read: fn(&RpcError, &RpcCall) -> ErrorMeaning,
    /// The view whose nodes are polled when one of them lacks a block.
    pub(crate) view: Arc<NodesView>,
}

/// The end of a call over several nodes.
#[derive(Debug)]
pub struct CallOutcome<A, F, R = Bytes> {
    pub answer: Result<PoolAnswer<A, R>, CallFailure>,
    /// The finding about each result, in their order. `None` where it could not be checked.
    pub findings: Vec<(NodeId, Option<F>)>,
}

/// The answer to a call.
#[derive(Debug)]
pub struct PoolAnswer<A, R = Bytes> {
    pub reply: NodeReply<R>,
    pub node: Arc<Node<A>>,
    /// Whether the reply is believed. `false` if it is a doubtful result and no other node had a better one.
    pub is_confirmed: bool,
    /// Whether every node of this chain was asked, and all replied with nothing.
    pub is_absent_everywhere: bool,
}

/// A node's reply, after its error was interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeReply<R = Bytes> {
    Result(R),
    /// The caller's own error.
    Error(CallerError),
    /// The range of the call must be split.
    Limit(RangeLimit),
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    #[error("no node could answer")]
    Unavailable,
    /// Every node that was asked lacks the method, the block or the state of the call, or no node was asked because all are
    /// known to lack the method or the state. A node may get the block later; the method and the state it may not.
    #[error("no node has the method, the block or the state of the call")]
    Lacking,
    #[error("no answer before the deadline")]
    Deadline,
    #[error("an answer could not be checked in time")]
    Unchecked,
}

/// Random numbers from a seed, so that tests are deterministic. They choose nodes and protect nothing.
#[derive(Debug)]
pub(crate) struct NodeRng(Mutex<SmallRng>);

impl NodeRng {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(Mutex::new(SmallRng::seed_from_u64(seed)))
    }

    pub(crate) fn next_u64(&self) -> u64 {
        self.0.lock().next_u64()
    }
}
