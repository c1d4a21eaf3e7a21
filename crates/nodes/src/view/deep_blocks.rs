//! Canonical blocks below the window, as far as they were needed.

use std::collections::VecDeque;

use alloy_primitives::B256;
use alloy_primitives::map::{B256Map, HashMap};
use parking_lot::{RwLock, RwLockReadGuard};

use crate::BlockId;

/// The most deep blocks that are remembered: about 10 MB, and nine days of blocks that come every twelve seconds.
const DEEP_BLOCKS_MAX: usize = 65_536;

/// The most side blocks that are remembered: about 10 KB, and those of a hundred usual reorganisations. They are searched linearly.
const SIDE_BLOCKS_MAX: usize = 256;

/// Numbers and hashes of deep blocks, all of one epoch: a new epoch starts with an empty one.
#[derive(Debug, Default)]
pub(super) struct DeepBlocks(RwLock<BlockMaps>);

#[derive(Debug, Default)]
struct BlockMaps {
    hashes: HashMap<u64, B256>,
    numbers: B256Map<u64>,
    /// Numbers in the order in which they were added, so that the oldest are dropped first.
    order: VecDeque<u64>,
    /// Blocks that were reorganised away, the oldest first.
    side_blocks: VecDeque<BlockId>,
}

impl DeepBlocks {
    /// Locks the blocks for several look-ups.
    pub(super) fn reader(&self) -> DeepReader<'_> {
        DeepReader(self.0.read())
    }

    pub(super) fn by_hash(&self, hash: &B256) -> Option<u64> {
        self.0.read().numbers.get(hash).copied()
    }

    /// Remembers a block. A known number keeps its block, because it cannot change within an epoch.
    pub(super) fn add(&self, block: BlockId) {
        self.0.write().put(block);
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

    /// Replaces the known block of a number.
    pub(super) fn correct(&self, block: BlockId) {
        let mut maps = self.0.write();
        let Some(hash) = maps.hashes.get_mut(&block.number).filter(|hash| **hash != block.hash) else {
            return;
        };
        let other = std::mem::replace(hash, block.hash);
        maps.numbers.remove(&other);
        maps.numbers.insert(block.hash, block.number);
    }
}

/// The blocks, unchanged for as long as this is held.
pub(super) struct DeepReader<'a>(RwLockReadGuard<'a, BlockMaps>);

impl DeepReader<'_> {
    pub(super) fn by_number(&self, number: u64) -> Option<B256> {
        self.0.hashes.get(&number).copied()
    }
}

impl BlockMaps {
    fn put(&mut self, block: BlockId) {
        if self.hashes.contains_key(&block.number) {
            return;
        }
        if self.order.len() >= DEEP_BLOCKS_MAX {
            self.forget_oldest();
        }
        self.order.push_back(block.number);
        self.hashes.insert(block.number, block.hash);
        self.numbers.insert(block.hash, block.number);
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.order.pop_front() else { return };
        if let Some(hash) = self.hashes.remove(&oldest) {
            self.numbers.remove(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u64) -> BlockId {
        BlockId { number, hash: B256::left_padding_from(&number.to_be_bytes()) }
    }

    #[test]
    fn the_oldest_knowledge_makes_room() {
        let blocks = DeepBlocks::default();
        (0..=DEEP_BLOCKS_MAX as u64).for_each(|number| blocks.add(block(number)));
        assert_eq!(blocks.reader().by_number(0), None);
        assert_eq!(blocks.by_hash(&block(0).hash), None);
        assert_eq!(blocks.reader().by_number(1), Some(block(1).hash));
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
    fn a_number_that_was_told_wrong_can_be_corrected() {
        let (blocks, other) = (DeepBlocks::default(), BlockId { number: 7, hash: B256::repeat_byte(9) });
        blocks.add(other);
        blocks.correct(block(7));
        assert_eq!(blocks.reader().by_number(7), Some(block(7).hash));
        assert_eq!((blocks.by_hash(&other.hash), blocks.by_hash(&block(7).hash)), (None, Some(7)));
    }

    #[test]
    fn a_number_keeps_its_first_hash() {
        let blocks = DeepBlocks::default();
        blocks.add(block(7));
        blocks.add(BlockId { number: 7, hash: B256::repeat_byte(9) });
        assert_eq!(blocks.reader().by_number(7), Some(block(7).hash));
        assert_eq!(blocks.by_hash(&B256::repeat_byte(9)), None);
    }
}
