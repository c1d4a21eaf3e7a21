//! Blocks that may still be reorganised: those of the canonical chain, and those that were on it.

use std::sync::Arc;

use alloy_primitives::B256;
use alloy_primitives::map::B256Map;
use nodes::Canon;
use nodes::proven::{ProvenBody, ProvenReceipts, ProvenUncles};
use nodes::view::WINDOW_BLOCKS;

use crate::answer::remote::blocks::block_of;
use crate::resolve::BlockRef;

/// Blocks that are kept in memory: the window, and as many that have lost their place.
const RECENT_BLOCKS_MAX: usize = 2 * WINDOW_BLOCKS;

/// A proven block with all its parts.
#[derive(Clone, Debug)]
pub(in crate::answer::remote) struct RecentBlock {
    pub(in crate::answer::remote) body: Arc<ProvenBody>,
    pub(in crate::answer::remote) uncles: Arc<ProvenUncles>,
    pub(in crate::answer::remote) receipts: Arc<ProvenReceipts>,
}

impl RecentBlock {
    pub(super) fn block(&self) -> BlockRef {
        block_of(&self.body)
    }

    /// What it takes in memory, about.
    pub(super) fn bytes(&self) -> usize {
        self.body.bytes() + self.receipts.bytes() + size_of_val(self.uncles.headers())
    }
}

#[derive(Debug, Default)]
pub(super) struct RecentBlocks {
    blocks: B256Map<RecentBlock>,
    /// The newest canonical block that a transaction was in.
    places: B256Map<BlockRef>,
}

impl RecentBlocks {
    pub(super) fn get(&self, hash: &B256) -> Option<&RecentBlock> {
        self.blocks.get(hash)
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.blocks.values().map(RecentBlock::bytes).sum()
    }

    /// The block of a transaction. It need not be canonical any more.
    pub(super) fn place(&self, transaction: &B256) -> Option<BlockRef> {
        self.places.get(transaction).copied()
    }

    /// Adds a block that is canonical, or says again that it is.
    pub(super) fn put(&mut self, block: RecentBlock) {
        let place = block.block();
        for transaction in block.body.transactions() {
            self.places.insert(*transaction.tx_hash(), place);
        }
        self.blocks.insert(place.hash, block);
    }

    /// Forgets blocks below a number. When there are too many, those that are not canonical go, too.
    pub(super) fn tidy(&mut self, lowest: u64, canon: &Canon) {
        let is_full = self.blocks.len() > RECENT_BLOCKS_MAX;
        let stays =
            |block: &BlockRef| block.number >= lowest && (!is_full || canon.by_hash(&block.hash).is_some());
        let before = self.blocks.len();
        self.blocks.retain(|_, block| stays(&block.block()));
        if self.blocks.len() < before {
            let blocks = &self.blocks;
            self.places.retain(|_, block| blocks.contains_key(&block.hash));
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
