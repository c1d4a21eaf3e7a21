//! The blocks that nodes have shown, linked by their parents.

use std::iter;
use std::sync::Arc;

use alloy_primitives::B256;
use alloy_primitives::map::{B256Map, B256Set};

use super::block::{BlockLists, SeenBlock};
use super::canon::WINDOW_BLOCKS;

/// Holds a window below each head that it is told to keep, and what has come since.
#[derive(Debug, Default)]
pub(super) struct Tree {
    blocks: B256Map<TreeBlock>,
}

/// A block, and what the nodes that have shown it say about its lists.
#[derive(Debug)]
struct TreeBlock {
    block: Arc<SeenBlock>,
    /// Empty once a list is agreed on.
    reports: Vec<ListReport>,
}

/// Lists that nodes report for one block.
#[derive(Debug)]
struct ListReport {
    lists: Arc<BlockLists>,
    nodes: Vec<usize>,
}

impl TreeBlock {
    fn new(block: Arc<SeenBlock>) -> Self {
        Self { block, reports: Vec::new() }
    }

    /// Counts a node's lists. The first lists that `majority` nodes report are those of the block from then on.
    fn add_report(&mut self, node: usize, lists: Arc<BlockLists>, majority: usize) {
        let has_reported = self.reports.iter().any(|report| report.nodes.contains(&node));
        if has_reported || self.block.lists().is_some() {
            return;
        }
        let place = self.reports.iter().position(|report| report.lists == lists).unwrap_or_else(|| {
            self.reports.push(ListReport { lists, nodes: Vec::new() });
            self.reports.len() - 1
        });
        self.reports[place].nodes.push(node);
        if self.reports[place].nodes.len() >= majority {
            let agreed = self.reports.swap_remove(place).lists;
            self.reports = Vec::new();
            // Only this function sets it, and it was empty above.
            let _first = self.block.agreed.set(agreed);
        }
    }
}

impl Tree {
    pub(super) fn get(&self, hash: &B256) -> Option<&Arc<SeenBlock>> {
        self.blocks.get(hash).map(|shown| &shown.block)
    }

    /// Adds a block as a node has shown it. The header that was seen first stays, because the hash proves that the second
    /// one is the same; the lists are counted, because nothing proves them.
    pub(super) fn insert(&mut self, node: usize, block: Arc<SeenBlock>, majority: usize) {
        let lists = Arc::clone(&block.reported);
        let shown = self.blocks.entry(block.id.hash).or_insert_with(|| TreeBlock::new(block));
        shown.add_report(node, lists, majority);
    }

    /// The block and its ancestors downwards, as far as they are known, at most a window of them.
    pub(super) fn line(&self, hash: &B256) -> impl Iterator<Item = &Arc<SeenBlock>> {
        let parent = |child: &&Arc<SeenBlock>| {
            let below = child.id.number.checked_sub(1)?;
            self.get(&child.parent).filter(|parent| parent.id.number == below)
        };
        iter::successors(self.get(hash), parent).take(WINDOW_BLOCKS)
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
