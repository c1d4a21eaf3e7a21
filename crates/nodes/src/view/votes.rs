//! Which node has which head, and which block a quorum has.

use std::collections::BTreeMap;

use alloy_primitives::map::B256Map;

use super::canonical_chain::CanonicalChain;
use super::tree::Tree;
use crate::{BlockId, NodeId};

/// The reports of one node.
#[derive(Clone, Debug)]
pub(super) struct NodeVote {
    /// Whether the node is of this chain, not syncing, and not lost. It is true before its first report, which changes nothing.
    pub(super) is_counted: bool,
    pub(super) head: Option<BlockId>,
    pub(super) safe: Option<BlockId>,
    pub(super) finalized: Option<BlockId>,
    /// The newest request for polls after which it was polled.
    pub(super) polled_for: u64,
    /// Whether its program mines when it is told to, as far as is known.
    pub(super) mines_on_demand: bool,
}

impl Default for NodeVote {
    fn default() -> Self {
        Self {
            is_counted: true,
            head: None,
            safe: None,
            finalized: None,
            polled_for: 0,
            mines_on_demand: false,
        }
    }
}

/// The votes that count, and how many of them make a quorum. That number does not depend on how many nodes are up: otherwise whoever
/// makes the others fail decides alone.
#[derive(Debug)]
pub(super) struct Electorate<'a> {
    pub(super) votes: Vec<&'a NodeVote>,
    pub(super) quorum: usize,
    /// More than half of the configured nodes.
    pub(super) majority: usize,
}

impl<'a> Electorate<'a> {
    pub(super) fn of(votes: &'a BTreeMap<NodeId, NodeVote>, quorum: usize) -> Self {
        let majority = votes.len() / 2 + 1;
        Self { quorum, majority, votes: votes.values().filter(|vote| vote.is_counted).collect() }
    }

    /// Whether the heads of a quorum are blocks of this chain below its head, or below its window.
    pub(super) fn is_below_head(&self, chain: &CanonicalChain) -> bool {
        let is_below =
            |head: &BlockId| head.number < chain.lowest() || (chain.has(&head.hash) && *head != chain.head());
        self.votes.iter().filter_map(|vote| vote.head).filter(is_below).count() >= self.quorum
    }

    /// The highest block that a quorum has as its head or below it. Among several, the present head is preferred, then the one with
    /// more support; the hash makes the choice deterministic.
    pub(super) fn best(&self, tree: &Tree, present: Option<BlockId>) -> Option<BlockId> {
        let mut heads = B256Map::<usize>::default();
        for head in self.votes.iter().filter_map(|vote| vote.head) {
            *heads.entry(head.hash).or_default() += 1;
        }
        let mut support = B256Map::<(BlockId, usize)>::default();
        for (head, votes) in heads {
            for block in tree.ancestors(&head) {
                support.entry(block.id.hash).or_insert((block.id, 0)).1 += votes;
            }
        }
        let enough = support.into_values().filter(|&(_, votes)| votes >= self.quorum);
        let best = enough.max_by_key(|&(id, votes)| (id.number, Some(id) == present, votes, id.hash));
        best.map(|(id, _)| id)
    }
}
