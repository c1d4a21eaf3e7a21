//! Block data from nodes, accepted only with its proof.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::{Pool, PoolNode, Supplier};
use crate::attempt::{self, Failed, Judgement, Judging, Meaning};
use crate::call::{Call, Fault, Reply};
use crate::proven::{ProofFailure, Unproven};

/// What came of a proof. `None` if it could not be run, because no thread was free.
pub type Proof<T> = Option<Result<T, Unproven>>;

/// A proof, or the work that leads to one on another thread.
pub enum Proving<'p, T> {
    Done(Result<T, Unproven>),
    Elsewhere(Pin<Box<dyn Future<Output = Proof<T>> + Send + 'p>>),
}

impl<T> fmt::Debug for Proving<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Done(_) => "Done",
            Self::Elsewhere(_) => "Elsewhere",
        })
    }
}

/// Why no node has delivered something that is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFetched {
    #[error("no node could deliver it")]
    Unavailable,
    /// Every node that could be asked says that it does not have it, or not the method.
    #[error("no node has it")]
    Lacking,
    #[error("no node delivered it before the deadline")]
    Deadline,
    #[error("a delivery could not be proven in time")]
    Busy,
    /// A quorum of the nodes says so, or a partner.
    #[error("a transaction of type {0:#x} cannot be proven")]
    UnknownType(u64),
}

impl Pool {
    /// Asks until somebody delivers what `prove` accepts. A delivery that fails its proof proves its sender wrong, and another
    /// one is asked.
    pub async fn fetch<'p, T: Send>(
        &self,
        supplier: Supplier,
        call: &Call,
        prove: &'p (dyn Fn(&Bytes) -> Proving<'p, T> + Sync),
        deadline: Instant,
    ) -> Result<T, NotFetched> {
        let fetching = Fetching { prove, accepted: Mutex::new(None), unknown_types: Mutex::default() };
        let judge = |node: usize, result: &Bytes| fetching.judge(node, result);
        let asked = self.ask_of(supplier, call, &judge, deadline).await;
        match (fetching.accepted.into_inner(), asked) {
            (Some(proven), _) => Ok(proven),
            (None, Err(Failed::Deadline { .. })) => Err(NotFetched::Deadline),
            (None, Err(Failed::Out { lack: Some(_), .. })) => Err(NotFetched::Lacking),
            (None, Err(Failed::Unchecked { .. })) => Err(NotFetched::Busy),
            (None, _) => {
                let unknown_types = fetching.unknown_types.into_inner();
                // One node alone could say so while the others happen not to answer.
                let is_sure = supplier != Supplier::Nodes || unknown_types.len() >= self.view.quorum();
                let unknown_type = unknown_types.into_values().next().filter(|_| is_sure);
                Err(unknown_type.map_or(NotFetched::Unavailable, NotFetched::UnknownType))
            }
        }
    }

    /// Whether a node has shown a head of this number or a higher one.
    pub fn has_reached(&self, node: usize, number: u64) -> bool {
        let head = self.nodes.get(node).and_then(|node| node.known().head_number());
        head.is_some_and(|head| head >= number)
    }

    /// Whether so many nodes are a quorum.
    pub fn is_quorum(&self, nodes: &HashSet<usize>) -> bool {
        nodes.len() >= self.view.quorum()
    }

    /// Asks one after another for all of these calls until `prove` accepts what one has delivered. All of it is from
    /// one sender, so that a failed proof proves that sender wrong.
    pub async fn fetch_together<'p, T: Send>(
        &self,
        supplier: Supplier,
        calls: &[Call],
        prove: &'p (dyn Fn(Vec<Bytes>) -> Proving<'p, T> + Sync),
        deadline: Instant,
    ) -> Result<T, NotFetched> {
        let Some(call) = calls.first() else { return Err(NotFetched::Unavailable) };
        let nodes = match supplier {
            Supplier::Nodes => self.best_first(call).into_iter().map(|node| (node, None)).collect(),
            Supplier::Partners { method } => {
                let partners = self.partners_with(method);
                partners.map(|partner| (partner.node(), Some(partner))).collect::<Vec<_>>()
            }
        };
        let mut failed = NotFetched::Unavailable;
        for (place, (node, partner)) in nodes.iter().enumerate() {
            if let Some(partner) = partner
                && !self.may_ask(partner, calls.len(), deadline).await
            {
                continue;
            }
            // Each has its part of the time that is left, so that one that hangs leaves some for the others.
            let now = Instant::now();
            let left = u32::try_from(nodes.len() - place).unwrap_or(u32::MAX);
            let until = now + deadline.saturating_duration_since(now) / left;
            let Some(results) = ask_all(node, calls, until).await else { continue };
            let proof = match prove(results) {
                Proving::Done(proof) => Some(proof),
                Proving::Elsewhere(work) => timeout_at(deadline, work).await.unwrap_or(None),
            };
            match proof {
                None => return Err(NotFetched::Busy),
                Some(Ok(proven)) => {
                    node.good(Instant::now());
                    return Ok(proven);
                }
                Some(Err(Unproven::NotThere)) => {}
                Some(Err(Unproven::UnknownType(kind))) => failed = NotFetched::UnknownType(kind),
                Some(Err(Unproven::Wrong(failure))) => convict(node, call, failure),
            }
        }
        Err(failed)
    }

    /// Nodes that can answer a call, the best one first.
    fn best_first(&self, call: &Call) -> Vec<&Arc<PoolNode>> {
        let now = Instant::now();
        let mut nodes: Vec<_> = self.of_this_chain().map(|node| (node, node.candidate(call, now))).collect();
        nodes.retain(|(_, candidate)| candidate.can_answer(call.needs));
        nodes.sort_by_key(|(_, candidate)| (candidate.grade, candidate.cost));
        nodes.into_iter().map(|(node, _)| node).collect()
    }
}

fn convict(node: &PoolNode, call: &Call, failure: ProofFailure) {
    tracing::warn!(
        node = node.name(),
        method = call.method,
        reason = failure.name(),
        "a node's answer is wrong"
    );
    node.bad(Fault::Wrong, Instant::now());
}

/// The results of all calls, or `None` if one has none.
async fn ask_all(node: &PoolNode, calls: &[Call], until: Instant) -> Option<Vec<Bytes>> {
    let replies = join_all(calls.iter().map(|call| node.ask(call, until))).await;
    let mut results = Vec::with_capacity(replies.len());
    for (reply, call) in replies.into_iter().zip(calls) {
        match reply {
            Ok(Reply::Result(result)) => results.push(result),
            Ok(Reply::Error(error)) => {
                match attempt::read(&error, call) {
                    Meaning::NotHere(lack) => node.known().learn(lack, call.method, call.needs.block),
                    Meaning::Node(fault) => node.bad(fault, Instant::now()),
                    Meaning::Caller(_) | Meaning::Limit(_) | Meaning::Unclear => {}
                }
                return None;
            }
            // The node has taken note of it.
            Err(_) => return None,
        }
    }
    Some(results)
}

/// One delivery on its way through the nodes.
struct Fetching<'p, T> {
    prove: &'p (dyn Fn(&Bytes) -> Proving<'p, T> + Sync),
    accepted: Mutex<Option<T>>,
    /// Who says that there is a transaction of an unknown type, and of which.
    unknown_types: Mutex<BTreeMap<usize, u64>>,
}

impl<T: Send> Fetching<'_, T> {
    fn judge(&self, node: usize, result: &Bytes) -> Judging<'_> {
        match (self.prove)(result) {
            Proving::Done(proof) => self.conclude(node, Some(proof)).into(),
            Proving::Elsewhere(work) => {
                Judging::Elsewhere(Box::pin(async move { self.conclude(node, work.await) }))
            }
        }
    }

    fn conclude(&self, node: usize, proof: Proof<T>) -> Judgement {
        match proof {
            None => Judgement::Unchecked,
            Some(Ok(proven)) => {
                *self.accepted.lock() = Some(proven);
                Judgement::Believed
            }
            Some(Err(Unproven::NotThere)) => Judgement::Late,
            // Another node may show that there is no such transaction.
            Some(Err(Unproven::UnknownType(kind))) => {
                self.unknown_types.lock().insert(node, kind);
                Judgement::Late
            }
            Some(Err(Unproven::Wrong(failure))) => Judgement::Wrong(failure.name()),
        }
    }
}
