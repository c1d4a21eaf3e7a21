//! Canonical blocks below the window, as far as they were needed.

use std::collections::VecDeque;

use alloy_primitives::B256;
use alloy_primitives::map::{B256Map, HashMap};
use parking_lot::{RwLock, RwLockReadGuard};

use crate::{BlockId, TrustMark};

/// The most deep blocks that are remembered: about 10 MB, and nine days of blocks that come every twelve seconds.
const DEEP_BLOCKS_MAX: usize = 65_536;

/// The most side blocks that are remembered: about 10 KB, and those of a hundred usual reorganisations. They are searched linearly.
const SIDE_BLOCKS_MAX: usize = 256;

/// Numbers and hashes of deep blocks, all of one epoch: a new epoch starts with an empty one.
#[derive(Debug, Default)]
pub(super) struct DeepBlocks(RwLock<BlockMaps>);

#[derive(Debug, Default)]
struct BlockMaps {
    blocks: HashMap<u64, DeepBlock>,
    numbers: B256Map<u64>,
    /// Numbers in the order in which they were added, so that the oldest are dropped first.
    order: VecDeque<u64>,
    /// Blocks that were reorganised away, the oldest first.
    side_blocks: VecDeque<BlockId>,
}

#[derive(Clone, Copy, Debug)]
struct DeepBlock {
    hash: B256,
    /// How far nodes are trusted that it has this number; `None` if it is an ancestor of the head.
    trust: Option<TrustMark>,
}

impl DeepBlocks {
    /// Locks the blocks for several look-ups.
    pub(super) fn reader(&self) -> DeepReader<'_> {
        DeepReader(self.0.read())
    }

    pub(super) fn by_hash(&self, hash: &B256) -> Option<u64> {
        self.0.read().numbers.get(hash).copied()
    }

    /// Remembers an ancestor of the head, whatever was reported. It cannot change within an epoch.
    pub(super) fn add_linked(&self, block: BlockId) {
        self.0.write().put(block, None);
    }

    /// Remembers a block that nodes have reported, unless an ancestor of the head has its number.
    pub(super) fn add_reported(&self, block: BlockId, trust: TrustMark) {
        let mut maps = self.0.write();
        let is_linked = maps.blocks.get(&block.number).is_some_and(|known| known.trust.is_none());
        if !is_linked {
            maps.put(block, Some(trust));
        }
    }

    /// Forgets the block of a number, unless it is an ancestor of the head.
    pub(super) fn forget_reported(&self, number: u64) {
        let mut maps = self.0.write();
        if maps.blocks.get(&number).is_some_and(|known| known.trust.is_some()) {
            maps.order.retain(|other| *other != number);
            maps.remove(number);
        }
    }

    /// A block that was reorganised away. It may have become canonical again.
    pub(super) fn side_block(&self, hash: &B256) -> Option<BlockId> {
        self.0.read().side_blocks.iter().find(|block| block.hash == *hash).copied()
    }

    /// Remembers a block that was reorganised away.
    pub(super) fn add_side_block(&self, block: BlockId) {
        let mut maps = self.0.write();
        if maps.side_blocks.contains(&block) {
            return;
        }
        if maps.side_blocks.len() >= SIDE_BLOCKS_MAX {
            maps.side_blocks.pop_front();
        }
        maps.side_blocks.push_back(block);
    }

    pub(super) fn forget_side_block(&self, hash: &B256) {
        self.0.write().side_blocks.retain(|block| block.hash != *hash);
    }
}

/// The blocks, unchanged for as long as this is held.
pub(super) struct DeepReader<'a>(RwLockReadGuard<'a, BlockMaps>);

impl DeepReader<'_> {
    /// A block, and how far nodes are trusted that it has this number.
    pub(super) fn by_number(&self, number: u64) -> Option<(BlockId, Option<TrustMark>)> {
        let DeepBlock { hash, trust } = *self.0.blocks.get(&number)?;
        Some((BlockId { number, hash }, trust))
    }
}

impl BlockMaps {
    fn put(&mut self, block: BlockId, trust: Option<TrustMark>) {
        let BlockId { number, hash } = block;
        match self.blocks.insert(number, DeepBlock { hash, trust }) {
            Some(before) => _ = self.numbers.remove(&before.hash),
            None => {
                self.order.push_back(number);
                if self.order.len() > DEEP_BLOCKS_MAX
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.remove(oldest);
                }
            }
        }
        self.numbers.insert(hash, number);
    }

    fn remove(&mut self, number: u64) {
        if let Some(block) = self.blocks.remove(&number) {
            self.numbers.remove(&block.hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u64) -> BlockId {
        BlockId { number, hash: B256::left_padding_from(&number.to_be_bytes()) }
    }

    fn hash_of(blocks: &DeepBlocks, number: u64) -> Option<B256> {
        blocks.reader().by_number(number).map(|(block, _)| block.hash)
    }

    #[test]
    fn the_oldest_knowledge_makes_room() {
        let blocks = DeepBlocks::default();
        (0..=DEEP_BLOCKS_MAX as u64).for_each(|number| blocks.add_linked(block(number)));
        assert_eq!(hash_of(&blocks, 0), None);
        assert_eq!(blocks.by_hash(&block(0).hash), None);
        assert_eq!(hash_of(&blocks, 1), Some(block(1).hash));
        assert_eq!(blocks.0.read().order.len(), DEEP_BLOCKS_MAX);
    }

    #[test]
    fn the_oldest_side_block_makes_room() {
        let blocks = DeepBlocks::default();
        (0..=SIDE_BLOCKS_MAX as u64).for_each(|number| blocks.add_side_block(block(number)));
        blocks.add_side_block(block(1));
        assert_eq!(blocks.side_block(&block(0).hash), None);
        assert_eq!(blocks.side_block(&block(1).hash), Some(block(1)));
        assert_eq!(blocks.0.read().side_blocks.len(), SIDE_BLOCKS_MAX);
        blocks.forget_side_block(&block(1).hash);
        assert_eq!(blocks.side_block(&block(1).hash), None);
    }

    #[test]
    fn what_nodes_report_is_replaced_by_what_they_report_later() {
        let (blocks, other) = (DeepBlocks::default(), BlockId { number: 7, hash: B256::repeat_byte(9) });
        blocks.add_reported(other, TrustMark::expired(0));
        blocks.add_reported(block(7), TrustMark::expired(0));
        assert_eq!(hash_of(&blocks, 7), Some(block(7).hash));
        assert_eq!((blocks.by_hash(&other.hash), blocks.by_hash(&block(7).hash)), (None, Some(7)));
        blocks.forget_reported(7);
        assert_eq!((hash_of(&blocks, 7), blocks.by_hash(&block(7).hash)), (None, None));
        assert!(blocks.0.read().order.is_empty());
    }

    #[test]
    fn an_ancestor_of_the_head_is_not_reported_away() {
        let (blocks, other) = (DeepBlocks::default(), BlockId { number: 7, hash: B256::repeat_byte(9) });
        blocks.add_reported(other, TrustMark::expired(0));
        blocks.add_linked(block(7));
        blocks.add_reported(other, TrustMark::expired(0));
        blocks.forget_reported(7);
        assert_eq!(hash_of(&blocks, 7), Some(block(7).hash));
        assert_eq!(blocks.by_hash(&B256::repeat_byte(9)), None);
    }
}
