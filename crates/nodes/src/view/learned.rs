//! Canonical blocks below the window, as far as someone has needed them.

use std::collections::VecDeque;

use alloy_primitives::B256;
use alloy_primitives::map::{B256Map, HashMap};
use parking_lot::{RwLock, RwLockReadGuard};

use crate::BlockId;

/// Deep numbers that are remembered: some 10 MB when full, and nine days of blocks that come every twelve seconds.
pub const LEARNED_BLOCKS_MAX: usize = 65_536;

/// Side blocks that are remembered, some 10 KB: those of a hundred usual reorganisations. They are looked through one by one.
const SIDE_BLOCKS_MAX: usize = 256;

/// Number ↔ hash of deep blocks, all of one epoch: a new epoch starts with a new, empty one.
#[derive(Debug, Default)]
pub(super) struct Learned(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    hashes: HashMap<u64, B256>,
    numbers: B256Map<u64>,
    /// In the order in which they came, so that the oldest knowledge goes first.
    order: VecDeque<u64>,
    /// Blocks that were reorganised away, in the order in which they were.
    side_blocks: VecDeque<BlockId>,
}

impl Learned {
    /// All of it, for one who has several questions.
    pub(super) fn deep(&self) -> Deep<'_> {
        Deep(self.0.read())
    }

    pub(super) fn by_hash(&self, hash: &B256) -> Option<u64> {
        self.0.read().numbers.get(hash).copied()
    }

    /// Remembers a block. What is known of a number already stays: within an epoch it cannot change.
    pub(super) fn add(&self, block: BlockId) {
        self.0.write().put(block);
    }

    /// A block that was reorganised away. It may be canonical again.
    pub(super) fn side_block(&self, hash: &B256) -> Option<BlockId> {
        self.0.read().side_blocks.iter().find(|block| block.hash == *hash).copied()
    }

    /// Remembers a block that was reorganised away.
    pub(super) fn add_side_block(&self, block: BlockId) {
        let mut known = self.0.write();
        if known.side_blocks.contains(&block) {
            return;
        }
        if known.side_blocks.len() >= SIDE_BLOCKS_MAX {
            known.side_blocks.pop_front();
        }
        known.side_blocks.push_back(block);
    }

    pub(super) fn forget_side_block(&self, hash: &B256) {
        self.0.write().side_blocks.retain(|block| block.hash != *hash);
    }

    /// Remembers a block in place of another one that has its number.
    pub(super) fn correct(&self, block: BlockId) {
        let mut known = self.0.write();
        let Some(hash) = known.hashes.get_mut(&block.number).filter(|hash| **hash != block.hash) else {
            return;
        };
        let other = std::mem::replace(hash, block.hash);
        known.numbers.remove(&other);
        known.numbers.insert(block.hash, block.number);
    }
}

/// What is known, and stays as it is for as long as this is held.
pub(super) struct Deep<'a>(RwLockReadGuard<'a, Known>);

impl Deep<'_> {
    pub(super) fn by_number(&self, number: u64) -> Option<B256> {
        self.0.hashes.get(&number).copied()
    }
}

impl Known {
    fn put(&mut self, block: BlockId) {
        if self.hashes.contains_key(&block.number) {
            return;
        }
        if self.order.len() >= LEARNED_BLOCKS_MAX {
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
        let learned = Learned::default();
        (0..=LEARNED_BLOCKS_MAX as u64).for_each(|number| learned.add(block(number)));
        assert_eq!(learned.deep().by_number(0), None);
        assert_eq!(learned.by_hash(&block(0).hash), None);
        assert_eq!(learned.deep().by_number(1), Some(block(1).hash));
        assert_eq!(learned.0.read().order.len(), LEARNED_BLOCKS_MAX);
    }

    #[test]
    fn the_oldest_side_block_makes_room() {
        let learned = Learned::default();
        (0..=SIDE_BLOCKS_MAX as u64).for_each(|number| learned.add_side_block(block(number)));
        learned.add_side_block(block(1));
        assert_eq!(learned.side_block(&block(0).hash), None);
        assert_eq!(learned.side_block(&block(1).hash), Some(block(1)));
        assert_eq!(learned.0.read().side_blocks.len(), SIDE_BLOCKS_MAX);
        learned.forget_side_block(&block(1).hash);
        assert_eq!(learned.side_block(&block(1).hash), None);
    }

    #[test]
    fn a_number_that_was_told_wrong_can_be_corrected() {
        let (learned, other) = (Learned::default(), BlockId { number: 7, hash: B256::repeat_byte(9) });
        learned.add(other);
        learned.correct(block(7));
        assert_eq!(learned.deep().by_number(7), Some(block(7).hash));
        assert_eq!((learned.by_hash(&other.hash), learned.by_hash(&block(7).hash)), (None, Some(7)));
    }

    #[test]
    fn a_number_keeps_its_first_hash() {
        let learned = Learned::default();
        learned.add(block(7));
        learned.add(BlockId { number: 7, hash: B256::repeat_byte(9) });
        assert_eq!(learned.deep().by_number(7), Some(block(7).hash));
        assert_eq!(learned.by_hash(&B256::repeat_byte(9)), None);
    }
}
