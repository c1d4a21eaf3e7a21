//! Block data from nodes, accepted only if it is proven.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::supplier::part_of;
use super::together::{FetchingTogether, ask_all};
use super::{Pool, PoolNode, Supplier};
use crate::attempt::{CallFailure, Judgement, Judging, ResultFinding};
use crate::call::RpcCall;
use crate::partner::Partner;
use crate::proof_failure::{ProofFailure, Unproven};

/// A proof, or the future of one that runs on another thread.
pub type Proving<'p, T> = Judging<'p, Result<T, Unproven>>;

impl<T: Send> ResultFinding for Result<T, Unproven> {
    fn judgement(&self) -> Judgement {
        match self {
            Ok(_) => Judgement::Believed,
            // Another node may deliver a block without a transaction of an unknown type.
            Err(Unproven::NotThere | Unproven::UnknownType(_) | Unproven::OddHeader) => Judgement::Late,
            Err(Unproven::Wrong(_)) => Judgement::Unproven,
        }
    }
}

/// Why no node has delivered something that is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFetched {
    #[error("no node could deliver it")]
    Unavailable,
    /// Every node that could be asked lacks the method, the block or the state of the call.
    #[error("no node has the method, the block or the state of the call")]
    Lacking,
    #[error("no node delivered it before the deadline")]
    Deadline,
    #[error("a delivery could not be proven in time")]
    Busy,
    /// A quorum of the nodes has delivered such a transaction, or a partner has.
    #[error("a transaction of type {0:#x} cannot be proven")]
    UnknownType(u64),
    /// The members of the header are not those of any fork.
    #[error("the header lacks members before others")]
    OddHeader,
}

impl Pool {
    /// Asks until somebody delivers what `prove` accepts. A node whose delivery fails its proof is skipped for this call. It is blamed
    /// only if another one delivers the same with its proof, because a proof may fail for every node.
    pub async fn fetch<'p, T: Send>(
        &self,
        supplier: Supplier,
        call: &RpcCall,
        prove: &'p (dyn Fn(&Bytes) -> Proving<'p, T> + Sync),
        deadline: Instant,
    ) -> Result<T, NotFetched> {
        let judge = |_: usize, result: &Bytes| prove(result);
        let asked = self.ask_of(supplier, call, &judge, deadline).await;
        let (mut failed_proofs, mut unknown_types) = (Vec::new(), BTreeMap::new());
        let mut has_odd_header = false;
        for (number, proof) in asked.findings {
            match proof {
                // It ended the call, so that it is the last one.
                Some(Ok(proven)) => {
                    self.blame_all_but(number, &failed_proofs, call);
                    return Ok(proven);
                }
                Some(Err(Unproven::Wrong(failure))) => failed_proofs.push((number, failure)),
                Some(Err(Unproven::UnknownType(kind))) => _ = unknown_types.insert(number, kind),
                // The hash covers the values, so one node is enough.
                Some(Err(Unproven::OddHeader)) => has_odd_header = true,
                Some(Err(Unproven::NotThere)) | None => {}
            }
        }
        if has_odd_header {
            return Err(NotFetched::OddHeader);
        }
        // One node alone could claim it while the others do not answer.
        let is_confirmed = !supplier.is_of_pool() || unknown_types.len() >= self.view.quorum();
        let unknown_type = unknown_types.into_values().next().filter(|_| is_confirmed);
        Err(match asked.answer {
            Err(CallFailure::Deadline) => NotFetched::Deadline,
            Err(CallFailure::Lacking) => NotFetched::Lacking,
            Err(CallFailure::Unchecked) => NotFetched::Busy,
            Err(CallFailure::Unavailable) | Ok(_) => {
                unknown_type.map_or(NotFetched::Unavailable, NotFetched::UnknownType)
            }
        })
    }

    /// Blames the senders whose delivery failed its proof, except the one that has delivered the same with its proof later.
    fn blame_all_but(&self, prover: usize, failed_proofs: &[(usize, ProofFailure)], call: &RpcCall) {
        for (number, failure) in failed_proofs.iter().filter(|(number, _)| *number != prover) {
            self.sender(*number).into_iter().for_each(|node| blame(node, call, *failure));
        }
    }

    /// The node or partner with this number.
    fn sender(&self, number: usize) -> Option<&PoolNode> {
        let partner = || self.partners.get(number.checked_sub(self.nodes.len())?).map(Partner::node);
        self.nodes.get(number).or_else(partner).map(|node| &**node)
    }

    /// Whether a node is known to have a block of this number or a higher one.
    pub fn has_reached(&self, node: usize, number: u64) -> bool {
        let head = self.nodes.get(node).and_then(|node| node.capabilities().head_number());
        head.is_some_and(|head| head >= number)
    }

    /// Asks this node after the others, for a while, which block a transaction is in, because it has named a block that is not
    /// canonical, or that it does not have.
    pub fn doubt_locations(&self, node: usize) {
        if let Some(node) = self.nodes.get(node) {
            tracing::debug!(node = node.name(), "node named a wrong block for a transaction");
            node.doubt_locations(Instant::now());
        }
    }

    /// Whether these nodes are a quorum.
    pub fn is_quorum(&self, nodes: &HashSet<usize>) -> bool {
        nodes.len() >= self.view.quorum()
    }

    /// Asks one node after another for all of these calls, until `prove` accepts what one has delivered. All results are from the same
    /// sender, so that a failed proof concerns that sender alone. When a node is slow, another one is asked too; partners are asked
    /// one after another.
    pub async fn fetch_together<'p, T: Send>(
        &self,
        supplier: Supplier,
        calls: &[RpcCall],
        prove: &'p (dyn Fn(Vec<Bytes>) -> Proving<'p, T> + Sync),
        deadline: Instant,
    ) -> Result<T, NotFetched> {
        let mut proofs = ProofsTogether {
            calls,
            prove,
            deadline,
            failed_proofs: Vec::new(),
            failed: NotFetched::Unavailable,
        };
        match supplier {
            Supplier::Nodes | Supplier::Node { .. } => {
                let nodes = self.best_first(supplier, calls);
                let mut fetching = FetchingTogether::new(self, nodes, calls, deadline);
                while let Some((node, results)) = fetching.next().await {
                    if let Some(outcome) = proofs.add(node, results).await {
                        return outcome;
                    }
                }
            }
            Supplier::Partners { method } => {
                let partners: Vec<_> = self.partners_with(method).collect();
                for (position, partner) in partners.iter().enumerate() {
                    let until = part_of(deadline, partners.len() - position);
                    if !self.take_quota_if_usable(partner, calls.len(), until).await {
                        continue;
                    }
                    let results = ask_all(partner.node(), calls, until).await;
                    if let Some(outcome) = proofs.add(partner.node(), results).await {
                        return outcome;
                    }
                }
            }
        }
        Err(proofs.failed)
    }

    /// Nodes that can answer these calls, the best one first.
    fn best_first(&self, supplier: Supplier, calls: &[RpcCall]) -> Vec<&Arc<PoolNode>> {
        let Some(call) = calls.first() else { return Vec::new() };
        let now = Instant::now();
        let is_asked = |node: &&Arc<PoolNode>| match supplier {
            Supplier::Node { number } => self.number_of(node) == number,
            Supplier::Nodes | Supplier::Partners { .. } => true,
        };
        let nodes = self.of_this_chain().filter(is_asked);
        let mut nodes: Vec<_> = nodes.map(|node| (node, node.candidate(call, now))).collect();
        nodes.retain(|(_, candidate)| candidate.can_answer(call.needs));
        nodes.sort_by_key(|(_, candidate)| (candidate.availability, candidate.cost));
        nodes.into_iter().map(|(node, _)| node).collect()
    }
}

/// The proofs of what several senders delivered for the same calls.
struct ProofsTogether<'c, 'p, T> {
    calls: &'c [RpcCall],
    prove: &'p (dyn Fn(Vec<Bytes>) -> Proving<'p, T> + Sync),
    deadline: Instant,
    /// Senders whose delivery failed its proof, and why.
    failed_proofs: Vec<(&'c PoolNode, ProofFailure)>,
    failed: NotFetched,
}

impl<'c, T: Send> ProofsTogether<'c, '_, T> {
    /// Proves a delivery. Returns `None` if the next sender must be asked.
    async fn add(
        &mut self,
        node: &'c PoolNode,
        results: Option<Vec<Bytes>>,
    ) -> Option<Result<T, NotFetched>> {
        match (self.prove)(results?).finish_before(self.deadline).await {
            None => return Some(Err(NotFetched::Busy)),
            Some(Ok(proven)) => {
                node.record_success(Instant::now());
                if let Some(call) = self.calls.first() {
                    self.failed_proofs.iter().for_each(|(wrong, failure)| blame(wrong, call, *failure));
                }
                return Some(Ok(proven));
            }
            Some(Err(Unproven::NotThere)) => {}
            Some(Err(Unproven::UnknownType(kind))) => self.failed = NotFetched::UnknownType(kind),
            Some(Err(Unproven::OddHeader)) => self.failed = NotFetched::OddHeader,
            Some(Err(Unproven::Wrong(failure))) => self.failed_proofs.push((node, failure)),
        }
        None
    }
}

/// Blames a node whose delivery failed its proof, because another one has delivered the same with its proof.
fn blame(node: &PoolNode, call: &RpcCall, failure: ProofFailure) {
    node.record_wrong_answer(call, failure.to_string());
}
