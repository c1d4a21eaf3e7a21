//! Block data from nodes, accepted only if it is proven.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use tokio::time::Instant;

use super::Pool;
use crate::call::RpcCall;
use crate::node_id::NodeId;
use crate::proof_failure::{ProofFailure, Unproven};
use crate::scheduler::{CallFailure, Calls, Judgement, Judging, Payload, ResultFinding, ResultJudge};

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
    /// A quorum of the nodes has delivered such a transaction.
    #[error("a transaction of type {0:#x} cannot be proven")]
    UnknownType(u64),
    /// The members of the header are not those of any fork.
    #[error("the header lacks members before others")]
    OddHeader,
}

impl Pool {
    /// Asks until somebody delivers what `prove` accepts: `only` this node, or else all of the operator. A node whose delivery fails
    /// its proof is skipped for this call. It is blamed only if another one delivers the same with its proof, because a proof may
    /// fail for every node.
    pub async fn fetch<'p, T: Send>(
        &self,
        only: Option<NodeId>,
        call: &RpcCall,
        prove: &'p (dyn Fn(&Bytes) -> Proving<'p, T> + Sync),
        deadline: Instant,
    ) -> Result<T, NotFetched> {
        self.fetch_payload(only, call, &|_, result| prove(result), deadline).await
    }

    /// The same for several calls, all of which the same sender must answer, so that a failed proof concerns that sender alone.
    pub async fn fetch_together<'p, T: Send>(
        &self,
        only: Option<NodeId>,
        calls: &[RpcCall],
        prove: &'p (dyn Fn(Vec<Bytes>) -> Proving<'p, T> + Sync),
        deadline: Instant,
    ) -> Result<T, NotFetched> {
        let calls = Calls::new(calls).ok_or(NotFetched::Unavailable)?;
        self.fetch_payload(only, &calls, &|_, results: &Vec<_>| prove(results.clone()), deadline).await
    }

    async fn fetch_payload<P: Payload, T: Send>(
        &self,
        only: Option<NodeId>,
        payload: &P,
        judge: ResultJudge<'_, '_, Result<T, Unproven>, P::Results>,
        deadline: Instant,
    ) -> Result<T, NotFetched> {
        let asked = self.ask_payload(only, payload, judge, deadline).await;
        let (mut failed_proofs, mut unknown_types) = (Vec::new(), BTreeMap::new());
        let mut has_odd_header = false;
        for (node, proof) in asked.findings {
            match proof {
                // It ended the call, so that it is the last one.
                Some(Ok(proven)) => {
                    self.blame_all_but(node, &failed_proofs, payload.call());
                    self.clear_unproven(payload.call());
                    return Ok(proven);
                }
                Some(Err(Unproven::Wrong(failure))) => failed_proofs.push((node, failure)),
                Some(Err(Unproven::UnknownType(kind))) => _ = unknown_types.insert(node, kind),
                // The hash covers the values, so one node is enough.
                Some(Err(Unproven::OddHeader)) => has_odd_header = true,
                Some(Err(Unproven::NotThere)) | None => {}
            }
        }
        match failed_proofs.first() {
            Some((node, failure)) => self.record_unproven(payload.call(), *node, *failure),
            None => self.clear_unproven(payload.call()),
        }
        if has_odd_header {
            return Err(NotFetched::OddHeader);
        }
        // One node alone could claim it while the others do not answer.
        let is_confirmed = unknown_types.len() >= self.view.quorum();
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
    fn blame_all_but(&self, prover: NodeId, failed_proofs: &[(NodeId, ProofFailure)], call: &RpcCall) {
        for (id, failure) in failed_proofs.iter().filter(|(id, _)| *id != prover) {
            if let Some(node) = self.node(*id) {
                node.record_wrong_answer(call, failure.to_string());
            }
        }
    }

    /// Whether a node is known to have a block of this number or a higher one. Nobody watches which blocks a partner has, so it is
    /// taken to have all.
    pub fn has_reached(&self, node: NodeId, number: u64) -> bool {
        let has_block = |head: u64| head >= number;
        self.node(node)
            .is_some_and(|node| node.is_partner() || node.capabilities().head_number().is_some_and(has_block))
    }

    /// Asks this node after the others, for a while, which block a transaction is in, because it has named a block that is not
    /// canonical, or that it does not have.
    pub fn doubt_locations(&self, node: NodeId) {
        if let Some(node) = self.node(node) {
            tracing::debug!(node = node.name(), "node named a wrong block for a transaction");
            node.doubt_locations(Instant::now());
        }
    }

    /// Whether these nodes are a quorum.
    pub fn is_quorum(&self, nodes: &HashSet<NodeId>) -> bool {
        nodes.len() >= self.view.quorum()
    }
}
