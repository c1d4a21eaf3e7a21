//! Who has which head, and what a quorum of them has.

use alloy_primitives::map::B256Map;

use super::tree::Tree;
use crate::BlockId;

/// One node, as far as the view is concerned.
#[derive(Clone, Debug)]
pub(super) struct Voter {
    /// Of this chain, not syncing, and not lost. One that is not heard of yet has shown no block that could count.
    pub(super) counted: bool,
    pub(super) head: Option<BlockId>,
    pub(super) safe: Option<BlockId>,
    pub(super) finalized: Option<BlockId>,
    /// The newest look for which it was polled.
    pub(super) looked_at: u64,
}

impl Voter {
    pub(super) fn new() -> Self {
        Self { counted: true, head: None, safe: None, finalized: None, looked_at: 0 }
    }
}

/// Those whose word counts, and how many of them it takes. That number does not depend on how many are left: otherwise whoever
/// makes the others fail decides alone.
#[derive(Debug)]
pub(super) struct Electorate<'a> {
    pub(super) voters: Vec<&'a Voter>,
    pub(super) quorum: usize,
    /// More than half of the configured nodes.
    pub(super) majority: usize,
}

impl<'a> Electorate<'a> {
    pub(super) fn of(voters: &'a [Voter], quorum: usize) -> Self {
        let majority = voters.len() / 2 + 1;
        Self { quorum, majority, voters: voters.iter().filter(|voter| voter.counted).collect() }
    }

    /// The highest block that a quorum has as its head or below it. Of two the present head is preferred, then the
    /// one with more support; the hash only makes the choice a certain one.
    pub(super) fn best(&self, tree: &Tree, present: Option<BlockId>) -> Option<BlockId> {
        let mut heads = B256Map::<usize>::default();
        for head in self.voters.iter().filter_map(|voter| voter.head) {
            *heads.entry(head.hash).or_default() += 1;
        }
        let mut support = B256Map::<(BlockId, usize)>::default();
        for (head, votes) in heads {
            for block in tree.line(&head) {
                support.entry(block.id.hash).or_insert((block.id, 0)).1 += votes;
            }
        }
        let enough = support.into_values().filter(|&(_, votes)| votes >= self.quorum);
        let best = enough.max_by_key(|&(id, votes)| (id.number, Some(id) == present, votes, id.hash));
        best.map(|(id, _)| id)
    }
}
