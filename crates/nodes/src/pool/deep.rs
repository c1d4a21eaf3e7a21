//! Blocks below the window: all nodes are asked, and what a quorum of them reports is added to the canonical chain.

use std::collections::HashSet;
use std::time::Duration;

use alloy_primitives::B256;
use bytes::Bytes;
use resources::AccountId;
use tokio::time::Instant;

use super::Pool;
use crate::ChainFamily;
use crate::attempt::CallFailure;
use crate::call::{BlockId, Class, Fault, Needs, RpcCall, RpcReply};
use crate::view::CanonicalChain;
use crate::watch::read_block;

/// How long other nodes have to report a block once a quorum of the nodes has reported that there is none.
const NULL_WAIT_MAX: Duration = Duration::from_secs(2);

impl Pool {
    /// Asks which block has a number below the window. It is added to the chain only if a quorum of the nodes reports it.
    pub async fn learn_number(
        &self,
        account: AccountId,
        canonical: &CanonicalChain,
        number: u64,
        deadline: Instant,
    ) -> Result<(), CallFailure> {
        let found = self.agree_on_number(account, number, deadline).await?;
        found.into_iter().for_each(|block| canonical.add_deep_block(block));
        Ok(())
    }

    /// Asks again which block has a number below the window, because no node has the known one: a quorum may have reported a wrong
    /// one.
    pub async fn learn_number_again(
        &self,
        account: AccountId,
        canonical: &CanonicalChain,
        number: u64,
        deadline: Instant,
    ) -> Result<(), CallFailure> {
        let found = self.agree_on_number(account, number, deadline).await?;
        found.into_iter().for_each(|block| canonical.correct_deep_block(block));
        Ok(())
    }

    async fn agree_on_number(
        &self,
        account: AccountId,
        number: u64,
        deadline: Instant,
    ) -> Result<Option<BlockId>, CallFailure> {
        let params = Bytes::from(format!("[\"{number:#x}\",false]"));
        self.agree(lookup(account, "eth_getBlockByNumber", params), None, Some(number), deadline).await
    }

    /// Asks for the block of a hash. It is added to the chain only if it is canonical.
    pub async fn learn_hash(
        &self,
        account: AccountId,
        canonical: &CanonicalChain,
        hash: B256,
        deadline: Instant,
    ) -> Result<(), CallFailure> {
        let Some(block) = self.with_hash(account, hash, deadline).await? else { return Ok(()) };
        if !canonical.knows_number(block.number) {
            self.learn_number(account, canonical, block.number, deadline).await?;
        }
        Ok(())
    }

    /// Whether a node has the block of a hash, canonical or not. It takes a quorum to find that none has it.
    pub async fn has_block(
        &self,
        account: AccountId,
        hash: B256,
        deadline: Instant,
    ) -> Result<bool, CallFailure> {
        Ok(self.with_hash(account, hash, deadline).await?.is_some())
    }

    async fn with_hash(
        &self,
        account: AccountId,
        hash: B256,
        deadline: Instant,
    ) -> Result<Option<BlockId>, CallFailure> {
        let params = Bytes::from(format!("[\"{hash}\",false]"));
        self.agree(lookup(account, "eth_getBlockByHash", params), Some(hash), None, deadline).await
    }

    /// The block that a quorum of the nodes reports, or `None` if a quorum reports that there is none.
    async fn agree(
        &self,
        call: RpcCall,
        hash: Option<B256>,
        number: Option<u64>,
        deadline: Instant,
    ) -> Result<Option<BlockId>, CallFailure> {
        let is_asked_for = |block: BlockId| {
            hash.is_none_or(|hash| hash == block.hash) && number.is_none_or(|number| number == block.number)
        };
        let mut tally = Tally::new(self.view.quorum());
        let mut unproven = Vec::new();
        let mut replies = self.ask_everyone(&call, &HashSet::new(), deadline);
        while let Some((node, reply)) = replies.next().await {
            let Ok(RpcReply::Result(result)) = reply else { continue };
            let read = read_block(&result, self.family == ChainFamily::Ethereum);
            let block = match read.map(|block| block.map(|block| block.id)) {
                // The hash proves the block, so one node that has it is enough.
                Ok(Some(block)) if hash.is_some() && is_asked_for(block) => return Ok(Some(block)),
                Ok(Some(block)) if is_asked_for(block) => Some(block),
                // There is a block of every number below the head, so this node has dropped it.
                Ok(None) if number.is_some() => continue,
                Ok(None) => None,
                Ok(Some(_)) | Err(_) => {
                    unproven.push(node);
                    continue;
                }
            };
            match (tally.add(node, block), block) {
                (false, _) => {}
                // However many nodes do not have it, one may.
                (true, None) => replies.wait_at_most(NULL_WAIT_MAX),
                (true, Some(_)) => {
                    self.log_other_blocks(tally.dissenters(block));
                    self.blame_unproven(&unproven);
                    return Ok(block);
                }
            }
        }
        if tally.votes(None) >= tally.quorum { Ok(None) } else { Err(CallFailure::Unavailable) }
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
    fn blame_unproven(&self, nodes: &[usize]) {
        for &node in nodes {
            let node = &self.nodes[node];
            tracing::warn!(
                node = node.name(),
                "old block of a node fails its proof; excluding the node for minutes"
            );
            node.record_fault(Fault::Wrong, Instant::now());
        }
    }
}

/// A look-up in the share of the account that asks. Whatever it finds is known to all, but what is not there must be asked for
/// again and again.
fn lookup(account: AccountId, method: &'static str, params: Bytes) -> RpcCall {
    RpcCall { method, params, class: Class::Quick, needs: Needs::default(), may_hedge: false, account }
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

    fn votes(&self, block: Option<BlockId>) -> usize {
        self.reports.iter().find(|(reported, _)| *reported == block).map_or(0, |(_, nodes)| nodes.len())
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
