//! A head with those of its ancestors that had to be fetched, as a watcher reports it to the view.

use std::sync::Arc;

use alloy_primitives::B256;
use alloy_primitives::map::B256Map;

use super::block::SeenBlock;
use super::canonical_chain::WINDOW_BLOCKS;
use crate::BlockId;

#[derive(Clone, Debug)]
pub(crate) struct HeadBranch {
    pub(super) head: Arc<SeenBlock>,
    pub(super) blocks: B256Map<Arc<SeenBlock>>,
}

/// Whether a branch is linked to known blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BranchLink {
    /// It is linked to the canonical chain, to genesis, or through a whole window.
    Linked,
    /// This block is missing.
    Missing(BlockId),
    /// Its numbers are not consecutive, or its genesis is another one: this cannot be our chain.
    Broken,
}

impl HeadBranch {
    pub(crate) fn new(head: SeenBlock) -> Self {
        let head = Arc::new(head);
        let blocks = [(head.id.hash, Arc::clone(&head))].into_iter().collect();
        Self { head, blocks }
    }

    /// The same branch with a newer head. Blocks outside its window are dropped, so that the branch cannot grow without bound.
    pub(crate) fn with_head(mut self, head: SeenBlock) -> Self {
        let (top, bottom) = (head.id.number, head.id.number.saturating_sub(WINDOW_BLOCKS as u64));
        self.blocks.retain(|_, block| (bottom..top).contains(&block.id.number));
        if self.blocks.len() > WINDOW_BLOCKS {
            self.blocks.clear();
        }
        self.head = Arc::new(head);
        self.blocks.insert(self.head.id.hash, Arc::clone(&self.head));
        self
    }

    pub(crate) fn head(&self) -> BlockId {
        self.head.id
    }

    pub(crate) fn add(&mut self, block: SeenBlock) {
        self.blocks.entry(block.id.hash).or_insert_with(|| Arc::new(block));
    }

    pub(crate) fn has(&self, hash: &B256) -> bool {
        self.blocks.contains_key(hash)
    }
}
