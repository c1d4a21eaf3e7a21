//! Blocks below the window: all nodes are asked, and what a quorum of them says is learned.

use std::collections::HashSet;
use std::time::Duration;

use alloy_primitives::B256;
use bytes::Bytes;
use tokio::time::Instant;

use super::Pool;
use crate::Family;
use crate::attempt::Failed;
use crate::call::{BlockId, Call, Class, Fault, Needs, Reply};
use crate::proof_failure::ProofFailure;
use crate::view::Canon;
use crate::watch::read_block;

/// Bytes of a block with the hashes of its transactions: 100,000 of them. It is read on the thread of a connection.
const BLOCK_BYTES_MAX: usize = 8 << 20;

/// How long the others have to show a block once a quorum of the nodes has said that there is none.
const NULL_KEPT_BACK_MAX: Duration = Duration::from_secs(2);

impl Pool {
    /// Asks which block has a number below the window. It is learned only if a quorum of the nodes says so.
    pub async fn learn_number(&self, canon: &Canon, number: u64, deadline: Instant) -> Result<(), Failed> {
        let found = self.agree_on_number(number, deadline).await?;
        found.into_iter().for_each(|block| canon.learn(block));
        Ok(())
    }

    /// Asks again which block has a number below the window, because no node has the one that was learned: it may have been the
    /// lie of a quorum.
    pub async fn learn_number_again(
        &self,
        canon: &Canon,
        number: u64,
        deadline: Instant,
    ) -> Result<(), Failed> {
        let found = self.agree_on_number(number, deadline).await?;
        found.into_iter().for_each(|block| canon.correct(block));
        Ok(())
    }

    async fn agree_on_number(&self, number: u64, deadline: Instant) -> Result<Option<BlockId>, Failed> {
        let params = Bytes::from(format!("[\"{number:#x}\",false]"));
        self.agree("eth_getBlockByNumber", params, None, Some(number), deadline).await
    }

    /// Asks for the block of a hash. It is learned only if it turns out to be canonical.
    pub async fn learn_hash(&self, canon: &Canon, hash: B256, deadline: Instant) -> Result<(), Failed> {
        let Some(block) = self.with_hash(hash, deadline).await? else { return Ok(()) };
        if !canon.knows_number(block.number) {
            self.learn_number(canon, block.number, deadline).await?;
        }
        Ok(())
    }

    /// Whether a node has the block of a hash, canonical or not. That none has it takes a quorum.
    pub async fn has_block(&self, hash: B256, deadline: Instant) -> Result<bool, Failed> {
        Ok(self.with_hash(hash, deadline).await?.is_some())
    }

    async fn with_hash(&self, hash: B256, deadline: Instant) -> Result<Option<BlockId>, Failed> {
        let params = Bytes::from(format!("[\"{hash}\",false]"));
        self.agree("eth_getBlockByHash", params, Some(hash), None, deadline).await
    }

    /// The block that a quorum of the nodes agrees on; none when a quorum says that there is none.
    async fn agree(
        &self,
        method: &'static str,
        params: Bytes,
        hash: Option<B256>,
        number: Option<u64>,
        deadline: Instant,
    ) -> Result<Option<BlockId>, Failed> {
        let call = Call { method, params, class: Class::Quick, needs: Needs::default(), may_hedge: false };
        let is_asked_for = |block: BlockId| {
            hash.is_none_or(|hash| hash == block.hash) && number.is_none_or(|number| number == block.number)
        };
        let mut tally = Tally::new(self.view.quorum());
        let mut unproven = Vec::new();
        let mut replies = self.ask_everyone(&call, &HashSet::new(), deadline);
        while let Some((node, reply)) = replies.next().await {
            let Ok(Reply::Result(result)) = reply else { continue };
            let is_readable = result.len() <= BLOCK_BYTES_MAX;
            let read = match is_readable {
                true => read_block(&result, self.family == Family::Ethereum),
                false => Err(ProofFailure::Malformed),
            };
            let block = match read.map(|block| block.map(|block| block.id)) {
                // The hash proves the block, so one node that has it is enough.
                Ok(Some(block)) if hash.is_some() && is_asked_for(block) => return Ok(Some(block)),
                Ok(Some(block)) if is_asked_for(block) => Some(block),
                // There is a block of every number below the head: this node has dropped it.
                Ok(None) if number.is_some() => continue,
                Ok(None) => None,
                Ok(Some(_)) | Err(_) => {
                    unproven.push(node);
                    continue;
                }
            };
            match (tally.add(node, block), block) {
                (false, _) => {}
                // However many do not have it: one may.
                (true, None) => replies.wait_at_most(NULL_KEPT_BACK_MAX),
                (true, Some(_)) => {
                    self.note_other_blocks(tally.dissenters(block));
                    self.convict_unproven(&unproven);
                    return Ok(block);
                }
            }
        }
        if tally.votes(None) >= tally.quorum { Ok(None) } else { Err(Failed::Unavailable) }
    }

    /// Nodes name another block than a quorum does. Nothing proves which one is canonical, so their word is left out of this
    /// question, and nobody is to blame.
    fn note_other_blocks<'a>(&self, nodes: impl Iterator<Item = &'a usize>) {
        for &node in nodes {
            tracing::info!(node = self.nodes[node].name(), "a node names another old block than a quorum");
        }
    }

    /// A quorum has delivered the block with its proof, and these nodes something that fails it. Where no quorum delivers one, the
    /// chain may have blocks that cannot be proven, and nobody is to blame.
    fn convict_unproven(&self, nodes: &[usize]) {
        for &node in nodes {
            let node = &self.nodes[node];
            tracing::warn!(node = node.name(), "a node delivered an old block that fails its proof");
            node.bad(Fault::Wrong, Instant::now());
        }
    }
}

/// Who says what about one block.
#[derive(Debug)]
struct Tally {
    quorum: usize,
    /// What was said, and by which nodes.
    said: Vec<(Option<BlockId>, Vec<usize>)>,
}

impl Tally {
    fn new(quorum: usize) -> Self {
        Self { quorum, said: Vec::new() }
    }

    /// Adds a word; says whether that makes a quorum.
    fn add(&mut self, node: usize, block: Option<BlockId>) -> bool {
        let place = self.said.iter().position(|(said, _)| *said == block).unwrap_or_else(|| {
            self.said.push((block, Vec::new()));
            self.said.len() - 1
        });
        self.said[place].1.push(node);
        self.said[place].1.len() >= self.quorum
    }

    fn votes(&self, block: Option<BlockId>) -> usize {
        self.said.iter().find(|(said, _)| *said == block).map_or(0, |(_, nodes)| nodes.len())
    }

    /// Nodes that named a block, and another one than this.
    fn dissenters(&self, agreed: Option<BlockId>) -> impl Iterator<Item = &usize> {
        let others = self.said.iter().filter(move |(said, _)| said.is_some() && *said != agreed);
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
