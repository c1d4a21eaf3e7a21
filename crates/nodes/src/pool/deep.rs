//! Blocks below the window: all nodes are asked, and what a quorum of them reports is added to the canonical chain.

use std::collections::HashSet;
use std::time::Duration;

use alloy_primitives::B256;
use bytes::Bytes;
use resources::AccountId;
use tokio::time::Instant;

use super::{Absence, AbsenceReplies, Pool};
use crate::ChainFamily;
use crate::attempt::CallFailure;
use crate::call::{BlockId, Class, Needs, RpcCall, RpcReply};
use crate::given_by::Standing;
use crate::node::HistoryKind;
use crate::view::CanonicalChain;
use crate::watch::read_block;

/// How long other nodes have to report a block once enough of them have reported that there is none.
const NULL_WAIT_MAX: Duration = Duration::from_secs(2);

impl Pool {
    /// Asks which block has a number below the window, for the first time or again. It is added to the chain only if a quorum of
    /// the nodes reports it. Who reports another one than before has said something wrong then or now.
    pub async fn learn_number(
        &self,
        account: AccountId,
        canonical: &CanonicalChain,
        number: u64,
        deadline: Instant,
    ) -> Result<(), CallFailure> {
        let params = Bytes::from(format!("[\"{number:#x}\",false]"));
        let call = lookup(account, "eth_getBlockByNumber", params);
        let known = canonical.by_number(number).zip(canonical.given_by(number));
        let mut asked = self.before_asking();
        let mut tally = Tally::new(self.view.quorum());
        let agreed = self.agree(call, None, Some(number), deadline, &mut tally).await;
        if let Some((known, given_by)) = known {
            self.record_retractions(&mut asked, given_by, tally.dissenters(Some(known)).copied());
        }
        if let BlockSearch::Found(block) = agreed? {
            if known.is_some_and(|(known, _)| known != block) {
                self.record_correction(&mut asked);
            }
            let supporters = tally.supporters(Some(block)).iter().copied();
            canonical.add_reported_block(block, asked.given_by(supporters));
        }
        Ok(())
    }

    /// Whether a node names another block of a number than it has reported before. Then it is asked again which one it is.
    pub fn note_claim(&self, canonical: &CanonicalChain, node: usize, claimed: BlockId) {
        let known = canonical.by_number(claimed.number).filter(|known| *known != claimed);
        if let Some(given_by) = known.and_then(|_| canonical.given_by(claimed.number)) {
            self.record_retractions(&mut self.before_asking(), given_by, [node]);
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
        let stands = |given_by| self.standing(given_by) == Standing::Good;
        if !canonical.knows_number(number) || !canonical.given_by(number).is_none_or(stands) {
            self.learn_number(account, canonical, number, deadline).await?;
        }
        Ok(None)
    }

    /// How sure it is that no node has the block of a hash, canonical or not. `None` if a node has it.
    pub async fn absence_of_block(
        &self,
        account: AccountId,
        hash: B256,
        deadline: Instant,
    ) -> Result<Option<Absence>, CallFailure> {
        Ok(match self.with_hash(account, hash, deadline).await? {
            BlockSearch::Found(_) => None,
            BlockSearch::Absent(absence) => Some(absence),
        })
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
        let mut unproven = Vec::new();
        let mut replies = self.ask_everyone(&call, &HashSet::new(), deadline);
        loop {
            // However many nodes do not have it, one may.
            if self.absence(HistoryKind::Blocks, call.method, &absence) != Absence::Open {
                replies.wait_at_most(NULL_WAIT_MAX);
            }
            let Some((node, reply)) = replies.next().await else { break };
            let result = match reply {
                Ok(RpcReply::Result(result)) => result,
                Ok(RpcReply::Error(_)) => continue,
                Err(fault) => {
                    self.record_unreachable(HistoryKind::Blocks, node, fault, &mut absence);
                    continue;
                }
            };
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
    fn log_other_blocks<'a>(&self, nodes: impl Iterator<Item = &'a usize>) {
        for &node in nodes {
            tracing::info!(
                node = self.nodes[node].name(),
                "node reports another old block than a quorum; ignoring its report"
            );
        }
    }

    /// Blames nodes whose block failed its proof, because a quorum has delivered it with its proof. Without such a quorum, the chain
    /// may have blocks that cannot be proven, and nobody is blamed.
    fn blame_unproven(&self, nodes: &[usize], call: &RpcCall) {
        for &node in nodes {
            self.nodes[node]
                .record_wrong_answer(call, "its header is not that of the block that was asked for");
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
    reports: Vec<(Option<BlockId>, Vec<usize>)>,
}

impl Tally {
    fn new(quorum: usize) -> Self {
        Self { quorum, reports: Vec::new() }
    }

    /// Adds a report. Returns whether that makes a quorum.
    fn add(&mut self, node: usize, block: Option<BlockId>) -> bool {
        let position =
            self.reports.iter().position(|(reported, _)| *reported == block).unwrap_or_else(|| {
                self.reports.push((block, Vec::new()));
                self.reports.len() - 1
            });
        self.reports[position].1.push(node);
        self.reports[position].1.len() >= self.quorum
    }

    /// Nodes that reported this.
    fn supporters(&self, block: Option<BlockId>) -> &[usize] {
        self.reports.iter().find(|(reported, _)| *reported == block).map_or(&[], |(_, nodes)| nodes)
    }

    /// Nodes that reported another block than this.
    fn dissenters(&self, agreed: Option<BlockId>) -> impl Iterator<Item = &usize> {
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
        let made = words.into_iter().enumerate().map(|(node, word)| tally.add(node, word));
        assert_eq!(made.collect::<Vec<_>>(), [false, false, false, true]);
        assert_eq!(
            tally.dissenters(block(1)).collect::<Vec<_>>(),
            [&1],
            "who has dropped it contradicts nobody"
        );
    }
}
