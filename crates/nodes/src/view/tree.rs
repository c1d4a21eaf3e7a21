//! The blocks that nodes have shown, linked by their parents.

use std::iter;
use std::sync::Arc;

use alloy_primitives::B256;
use alloy_primitives::map::{B256Map, B256Set};

use super::block::SeenBlock;
use super::canon::WINDOW_BLOCKS;

/// Holds a window below each head that it is told to keep, and what has come since.
#[derive(Debug, Default)]
pub(super) struct Tree {
    blocks: B256Map<Arc<SeenBlock>>,
}

impl Tree {
    pub(super) fn get(&self, hash: &B256) -> Option<&Arc<SeenBlock>> {
        self.blocks.get(hash)
    }

    /// What was seen first stays: the hash says that the second one is the same block.
    pub(super) fn insert(&mut self, block: Arc<SeenBlock>) {
        self.blocks.entry(block.id.hash).or_insert(block);
    }

    /// The block and its ancestors downwards, as far as they are known, at most a window of them.
    pub(super) fn line(&self, hash: &B256) -> impl Iterator<Item = &Arc<SeenBlock>> {
        let parent = |child: &&Arc<SeenBlock>| {
            let below = child.id.number.checked_sub(1)?;
            self.blocks.get(&child.parent).filter(|parent| parent.id.number == below)
        };
        iter::successors(self.blocks.get(hash), parent).take(WINDOW_BLOCKS)
    }

    /// Forgets whatever is not within a window below one of `heads`.
    pub(super) fn keep(&mut self, heads: impl Iterator<Item = B256>) {
        let mut kept = B256Set::default();
        for head in heads {
            kept.extend(self.line(&head).map(|block| block.id.hash));
        }
        self.blocks.retain(|hash, _| kept.contains(hash));
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }
}
