//! The blocks that nodes have shown, linked by their parents.

use std::iter;
use std::sync::Arc;

use alloy_primitives::B256;
use alloy_primitives::map::{B256Map, B256Set};

use super::block::{BlockLists, SeenBlock};
use super::canonical_chain::WINDOW_BLOCKS;
use crate::NodeId;

/// Blocks by their hashes: a window below the head of each node and of the chain, and those that were reported since
/// blocks were last dropped.
#[derive(Debug, Default)]
pub(super) struct Tree {
    blocks: B256Map<TreeBlock>,
}

/// A block, and the lists that nodes report for it.
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
    nodes: Vec<NodeId>,
}

impl TreeBlock {
    fn new(block: Arc<SeenBlock>) -> Self {
        Self { block, reports: Vec::new() }
    }

    /// Counts a node's lists. The first lists that `majority` nodes report become those of the block.
    fn add_report(&mut self, node: NodeId, lists: Arc<BlockLists>, majority: usize) {
        let has_reported = self.reports.iter().any(|report| report.nodes.contains(&node));
        if has_reported || self.block.lists().is_some() {
            return;
        }
        let position = self.reports.iter().position(|report| report.lists == lists).unwrap_or_else(|| {
            self.reports.push(ListReport { lists, nodes: Vec::new() });
            self.reports.len() - 1
        });
        self.reports[position].nodes.push(node);
        if self.reports[position].nodes.len() >= majority {
            let agreed = self.reports.swap_remove(position).lists;
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

    /// Adds a block that a node has reported. The first header stays, because the hash proves that the second one is the same. The
    /// lists are counted, because nothing proves them.
    pub(super) fn insert(&mut self, node: NodeId, block: Arc<SeenBlock>, majority: usize) {
        let lists = Arc::clone(&block.reported);
        let shown = self.blocks.entry(block.id.hash).or_insert_with(|| TreeBlock::new(block));
        shown.add_report(node, lists, majority);
    }

    /// Forgets the lists that a node has reported, where none is agreed on yet.
    pub(super) fn forget_reports(&mut self, node: NodeId) {
        for report in self.blocks.values_mut().flat_map(|block| &mut block.reports) {
            report.nodes.retain(|reporter| *reporter != node);
        }
    }

    /// The block and its ancestors downwards, as far as they are known, at most a window of them.
    pub(super) fn ancestors(&self, hash: &B256) -> impl Iterator<Item = &Arc<SeenBlock>> {
        let parent = |child: &&Arc<SeenBlock>| {
            let below = child.id.number.checked_sub(1)?;
            self.get(&child.parent).filter(|parent| parent.id.number == below)
        };
        iter::successors(self.get(hash), parent).take(WINDOW_BLOCKS)
    }

    /// Drops all blocks that are not within a window below one of `heads`.
    pub(super) fn keep(&mut self, heads: impl Iterator<Item = B256>) {
        let mut kept = B256Set::default();
        for head in heads {
            kept.extend(self.ancestors(&head).map(|block| block.id.hash));
        }
        self.blocks.retain(|hash, _| kept.contains(hash));
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }
}
