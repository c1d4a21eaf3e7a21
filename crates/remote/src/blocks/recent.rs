//! Blocks that may still be reorganised: those of the canonical chain, and those that were on it.

use std::cmp::Reverse;
use std::sync::Arc;

use alloy_primitives::B256;
use alloy_primitives::map::B256Map;
use methods::BlockRef;
use nodes::CanonicalChain;
use nodes::proven::{ProvenBody, ProvenReceipts, ProvenUncles};
use nodes::view::WINDOW_BLOCKS;

use crate::block_ids::block_of;

/// Blocks that are kept in memory: the window, and as many that have lost their place.
const RECENT_BLOCKS_MAX: usize = 2 * WINDOW_BLOCKS;

/// Bytes of blocks in memory: a window of the largest blocks that mainnet has had. Of larger ones, fewer are kept in memory.
pub(crate) const RECENT_BYTES_MAX: usize = 512 << 20;

/// A proven block with all its parts.
#[derive(Clone, Debug)]
pub(crate) struct RecentBlock {
    pub(crate) body: Arc<ProvenBody>,
    pub(crate) uncles: Arc<ProvenUncles>,
    pub(crate) receipts: Arc<ProvenReceipts>,
}

impl RecentBlock {
    pub(crate) fn block(&self) -> BlockRef {
        block_of(&self.body)
    }

    /// Its approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.body.bytes() + self.receipts.bytes() + size_of_val(self.uncles.headers())
    }
}

#[derive(Debug, Default)]
pub(crate) struct RecentBlocks {
    blocks: B256Map<RecentBlock>,
    /// Bytes of all of them.
    bytes: usize,
    /// The newest canonical block that a transaction was in.
    places: B256Map<BlockRef>,
}

impl RecentBlocks {
    pub(crate) fn get(&self, hash: &B256) -> Option<&RecentBlock> {
        self.blocks.get(hash)
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The block of a transaction. It need not be canonical any more.
    pub(crate) fn place(&self, transaction: &B256) -> Option<BlockRef> {
        self.places.get(transaction).copied()
    }

    /// Adds a block that is canonical, or says again that it is.
    pub(crate) fn put(&mut self, block: RecentBlock) {
        let place = block.block();
        for transaction in block.body.transactions() {
            self.places.insert(*transaction.tx_hash(), place);
        }
        self.bytes += block.bytes();
        let before = self.blocks.insert(place.hash, block);
        self.bytes -= before.map_or(0, |before| before.bytes());
    }

    /// Forgets blocks below a number. When there are too many, or they take too much memory, it also forgets those that are not
    /// canonical, and then the lowest ones. Returns the lowest number of which blocks may be in memory.
    pub(crate) fn tidy(&mut self, lowest: u64, bytes_max: usize, chain: &CanonicalChain) -> u64 {
        let is_full = self.blocks.len() > RECENT_BLOCKS_MAX || self.bytes > bytes_max;
        let before = self.blocks.len();
        self.retain(|block| block.number >= lowest && (!is_full || chain.by_hash(&block.hash).is_some()));
        let lowest = self.lowest_within(bytes_max).max(lowest);
        self.retain(|block| block.number >= lowest);
        if self.blocks.len() < before {
            let blocks = &self.blocks;
            self.places.retain(|_, block| blocks.contains_key(&block.hash));
        }
        lowest
    }

    fn retain(&mut self, stays: impl Fn(&BlockRef) -> bool) {
        let bytes = &mut self.bytes;
        self.blocks.retain(|_, block| {
            let stays = stays(&block.block());
            *bytes -= if stays { 0 } else { block.bytes() };
            stays
        });
    }

    /// The lowest number such that blocks from it on take no more than this. The newest block stays whatever it takes.
    fn lowest_within(&self, bytes_max: usize) -> u64 {
        if self.bytes <= bytes_max {
            return 0;
        }
        let mut sizes: Vec<_> =
            self.blocks.values().map(|block| (block.block().number, block.bytes())).collect();
        sizes.sort_unstable_by_key(|(number, _)| Reverse(*number));
        let mut bytes = 0;
        let fitting = sizes.iter().take_while(|(_, size)| {
            bytes += size;
            bytes <= bytes_max
        });
        fitting.last().or(sizes.first()).map_or(0, |(number, _)| *number)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use alloy_consensus::Header;
    use nodes::NodesView;
    use nodes::view::SeenBlock;

    use super::*;

    /// Blocks 0 to 9, each with so many withdrawals that it takes some 100 KB.
    fn blocks() -> Vec<RecentBlock> {
        let mut parent_hash = B256::ZERO;
        (0..10)
            .map(|number| {
                let header = Header { number, parent_hash, ..Header::default() };
                parent_hash = header.hash_slow();
                let withdrawals = vec![Default::default(); 2_000];
                let body = ProvenBody::restored(parent_hash, header, Vec::new(), Some(withdrawals.into()));
                let uncles = Arc::new(ProvenUncles::restored(Vec::new()));
                RecentBlock {
                    body: Arc::new(body),
                    uncles,
                    receipts: Arc::new(ProvenReceipts::restored(Vec::new())),
                }
            })
            .collect()
    }

    #[test]
    fn large_blocks_are_bounded_by_what_they_take() {
        let blocks = blocks();
        let view = NodesView::new(nodes::ViewSettings::default());
        let seen = |block: &RecentBlock| SeenBlock::restored(block.body.hash(), block.body.header());
        view.restore(seen(&blocks[9]), blocks[..9].iter().rev().map(seen).collect());
        let chain = view.canonical_chain().unwrap();
        let mut recent = RecentBlocks::default();
        blocks.iter().for_each(|block| recent.put(block.clone()));
        let (all, each) = (recent.bytes(), blocks[0].bytes());
        assert!(each > 50_000 && all == 10 * each, "{each} {all}");
        assert_eq!(recent.tidy(2, usize::MAX, &chain), 2);
        assert_eq!((recent.len(), recent.bytes()), (8, 8 * each));
        assert_eq!(recent.tidy(2, 3 * each + 1, &chain), 7, "the newest stay");
        assert_eq!((recent.len(), recent.bytes()), (3, 3 * each));
        assert_eq!(recent.tidy(2, 0, &chain), 9, "and one of them whatever it takes");
        assert_eq!((recent.len(), recent.bytes()), (1, each));
    }
}
