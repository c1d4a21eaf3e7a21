//! Blocks below the window: all nodes are asked, and what a quorum of them reports is added to the canonical chain.

use std::collections::HashSet;
use std::time::Duration;

use alloy_primitives::B256;
use bytes::Bytes;
use resources::AccountId;
use tokio::time::Instant;

use super::{Absence, AbsenceReplies, Pool};
use crate::ChainFamily;
use crate::call::{BlockId, Class, Needs, RpcCall};
use crate::node::HistoryKind;
use crate::node_id::NodeId;
use crate::scheduler::{AnswersEvent, CallFailure, NodeReply};
use crate::trust::{Standing, TrustMark};
use crate::view::CanonicalChain;
use crate::watch::read_block;

/// How long other nodes have to report a block once enough of them have reported that there is none.
const NULL_WAIT_MAX: Duration = Duration::from_secs(2);

impl Pool {
    /// Asks which block has a number below the window, for the first time or again. It is added to the chain only if a quorum of
    /// the nodes reports it. One that was reported before is forgotten if a node contradicts it and no quorum reports it again.
    pub async fn learn_number(
        &self,
        account: AccountId,
        canonical: &CanonicalChain,
        number: u64,
        deadline: Instant,
    ) -> Result<(), CallFailure> {
        let params = Bytes::from(format!("[\"{number:#x}\",false]"));
        let call = lookup(account, "eth_getBlockByNumber", params);
        let known = canonical.by_number(number).filter(|_| canonical.trust(number).is_some());
        let mut asked = self.trust_mark();
        let mut tally = Tally::new(self.view.quorum());
        let agreed = self.agree(call, None, Some(number), deadline, &mut tally).await;
        if agreed.is_err() && known.is_some() && tally.dissenters(known).next().is_some() {
            canonical.forget_reported_block(number);
        }
        if let BlockSearch::Found(block) = agreed? {
            if known.is_some_and(|known| known != block) {
                self.record_correction(&mut asked);
            }
            canonical.add_reported_block(block, asked);
        }
        Ok(())
    }

    /// Lets a number be asked again if a node names another block of it than nodes have reported.
    pub fn note_claim(&self, canonical: &CanonicalChain, claimed: BlockId) {
        let known = canonical.by_number(claimed.number).filter(|known| *known != claimed);
        if let Some((known, trust)) = known.zip(canonical.trust(claimed.number)) {
            canonical.add_reported_block(known, TrustMark { until: Instant::now(), ..trust });
        }
    }

    /// Asks for the block of a hash. It is added to the chain only if it is canonical. Returns how sure it is that there is no such
    /// block, or `None` if there is one.
    pub async fn learn_hash(
        &self,
        account: AccountId,
        canonical: &CanonicalChain,
        hash: B256,
        deadline: Instant,
    ) -> Result<Option<Absence>, CallFailure> {
        let search = match canonical.by_hash(&hash) {
            Some(known) => BlockSearch::Found(known),
            None => self.with_hash(account, hash, deadline).await?,
        };
        let number = match search {
            BlockSearch::Found(block) => block.number,
            BlockSearch::Absent(absence) => return Ok(Some(absence)),
        };
        let stands = |trust| self.standing(trust) == Standing::Good;
        if !canonical.knows_number(number) || !canonical.trust(number).is_none_or(stands) {
            self.learn_number(account, canonical, number, deadline).await?;
        }
        Ok(None)
    }

    async fn with_hash(
        &self,
        account: AccountId,
        hash: B256,
        deadline: Instant,
    ) -> Result<BlockSearch, CallFailure> {
        let params = Bytes::from(format!("[\"{hash}\",false]"));
        let mut tally = Tally::new(self.view.quorum());
        self.agree(lookup(account, "eth_getBlockByHash", params), Some(hash), None, deadline, &mut tally)
            .await
    }

    /// The block that a quorum of the nodes reports, or that there is none, if a quorum reports that and no node that may know
    /// better is left.
    async fn agree(
        &self,
        call: RpcCall,
        hash: Option<B256>,
        number: Option<u64>,
        deadline: Instant,
        tally: &mut Tally,
    ) -> Result<BlockSearch, CallFailure> {
        let is_asked_for = |block: BlockId| {
            hash.is_none_or(|hash| hash == block.hash) && number.is_none_or(|number| number == block.number)
        };
        let mut absence = AbsenceReplies::default();
        let (mut unproven, quorum) = (Vec::new(), self.view.quorum());
        let mut replies = self.ask_everyone(&call, &HashSet::new(), deadline);
        loop {
            // However many nodes do not have it, one may.
            if self.absence(HistoryKind::Blocks, call.method, &absence) != Absence::Open {
                replies.wait_at_most(NULL_WAIT_MAX);
            }
            let (node, reply) = match replies.next(quorum).await {
                AnswersEvent::Answer(answer) => (answer.node, answer.reply),
                AnswersEvent::Failed { node, fault } => {
                    self.record_unreachable(HistoryKind::Blocks, node, fault, &mut absence);
                    continue;
                }
                AnswersEvent::Stalled => continue,
                AnswersEvent::Over => break,
            };
            let NodeReply::Result(result) = reply else { continue };
            let read = read_block(&result, self.family == ChainFamily::Ethereum);
            let block = match read.map(|block| block.map(|block| block.id)) {
                // The hash proves the block, so one node that has it is enough.
                Ok(Some(block)) if hash.is_some() && is_asked_for(block) => {
                    return Ok(BlockSearch::Found(block));
                }
                Ok(Some(block)) if is_asked_for(block) => Some(block),
                // There is a block of every number below the head, so this node has dropped it.
                Ok(None) if number.is_some() => continue,
                Ok(None) => {
                    absence.without.insert(node);
                    None
                }
                Ok(Some(_)) | Err(_) => {
                    absence.record_other(node);
                    unproven.push(node);
                    continue;
                }
            };
            if let (true, Some(found)) = (tally.add(node, block), block) {
                self.log_other_blocks(tally.dissenters(block));
                self.blame_unproven(&unproven, &call);
                return Ok(BlockSearch::Found(found));
            }
        }
        match self.absence(HistoryKind::Blocks, call.method, &absence) {
            Absence::Open => Err(CallFailure::Unavailable),
            absence @ (Absence::Confirmed | Absence::Unconfirmed) => Ok(BlockSearch::Absent(absence)),
        }
    }

    /// Logs nodes that report another block than a quorum does. Nothing proves which one is canonical, so nobody is blamed.
    fn log_other_blocks<'a>(&self, nodes: impl Iterator<Item = &'a NodeId>) {
        for node in nodes.filter_map(|node| self.node(*node)) {
            tracing::info!(
                node = node.name(),
                "node reports another old block than a quorum; ignoring its report"
            );
        }
    }

    /// Blames nodes whose block failed its proof, because a quorum has delivered it with its proof. Without such a quorum, the chain
    /// may have blocks that cannot be proven, and nobody is blamed.
    fn blame_unproven(&self, nodes: &[NodeId], call: &RpcCall) {
        for node in nodes.iter().filter_map(|node| self.node(*node)) {
            node.record_wrong_answer(call, "its header is not that of the block that was asked for");
        }
    }
}

/// A look-up in the share of the account that asks. Whatever it finds is known to all, but what is not there must be asked for
/// again and again.
fn lookup(account: AccountId, method: &'static str, params: Bytes) -> RpcCall {
    RpcCall {
        method,
        params,
        class: Class::Quick,
        needs: Needs::default(),
        may_hedge: false,
        account,
        block_by_hash: None,
        trace: None,
    }
}

/// The outcome of asking all nodes for a block.
#[derive(Clone, Copy, Debug)]
enum BlockSearch {
    Found(BlockId),
    Absent(Absence),
}

/// The reports of the nodes about one block.
#[derive(Debug)]
struct Tally {
    quorum: usize,
    /// Each reported block, and the nodes that reported it.
    reports: Vec<(Option<BlockId>, Vec<NodeId>)>,
}

impl Tally {
    fn new(quorum: usize) -> Self {
        Self { quorum, reports: Vec::new() }
    }

    /// Adds a report. Returns whether that makes a quorum.
    fn add(&mut self, node: NodeId, block: Option<BlockId>) -> bool {
        let position =
            self.reports.iter().position(|(reported, _)| *reported == block).unwrap_or_else(|| {
                self.reports.push((block, Vec::new()));
                self.reports.len() - 1
            });
        self.reports[position].1.push(node);
        self.reports[position].1.len() >= self.quorum
    }

    /// Nodes that reported another block than this.
    fn dissenters(&self, agreed: Option<BlockId>) -> impl Iterator<Item = &NodeId> {
        let others =
            self.reports.iter().filter(move |(reported, _)| reported.is_some() && *reported != agreed);
        others.flat_map(|(_, nodes)| nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(hash: u8) -> Option<BlockId> {
        Some(BlockId { number: 7, hash: B256::repeat_byte(hash) })
    }

    #[test]
    fn a_quorum_settles_it_whatever_others_say() {
        let mut tally = Tally::new(2);
        let words = [block(1), block(2), None, block(1)];
        let nodes = NodeId::first(4);
        let made = nodes.iter().zip(words).map(|(node, word)| tally.add(*node, word));
        assert_eq!(made.collect::<Vec<_>>(), [false, false, false, true]);
        assert_eq!(
            tally.dissenters(block(1)).collect::<Vec<_>>(),
            [&nodes[1]],
            "who has dropped it contradicts nobody"
        );
    }
}
