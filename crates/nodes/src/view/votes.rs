//! Who has which head, and what a quorum of them has.

use alloy_primitives::map::B256Map;
use tokio::time::{Duration, Instant};

use super::tree::Tree;
use crate::BlockId;

/// One node, as far as the view is concerned.
#[derive(Clone, Debug)]
pub(super) struct Voter {
    /// Up, of this chain, and not syncing. A node not heard of yet counts, so that whoever answers first at the
    /// start does not decide alone.
    pub(super) counted: bool,
    pub(super) head: Option<BlockId>,
    /// When the head changed last.
    pub(super) moved: Instant,
    pub(super) safe: Option<BlockId>,
    pub(super) finalized: Option<BlockId>,
}

impl Voter {
    pub(super) fn new(now: Instant) -> Self {
        Self { counted: true, head: None, moved: now, safe: None, finalized: None }
    }
}

/// Those who decide, and how many of them it takes.
#[derive(Debug)]
pub(super) struct Electorate<'a> {
    pub(super) voters: Vec<&'a Voter>,
    pub(super) quorum: usize,
}

impl<'a> Electorate<'a> {
    /// A node that is idle does not hold the others up, unless the idle ones are the majority: then it is the chain
    /// that rests, and whoever runs ahead is the one to be doubted.
    pub(super) fn of(voters: &'a [Voter], quorum: Option<usize>, now: Instant, patience: Duration) -> Self {
        let counted: Vec<_> = voters.iter().filter(|voter| voter.counted).collect();
        let (idle, busy): (Vec<_>, Vec<_>) =
            counted.iter().copied().partition(|voter| is_idle(voter, &counted, now, patience));
        let voters = if idle.len() * 2 <= counted.len() { busy } else { counted };
        let majority = voters.len() / 2 + 1;
        Self { quorum: quorum.unwrap_or(majority).max(1), voters }
    }

    /// The highest block that a quorum has as its head or below it. Of two the present head is preferred, then the
    /// one with more support; the hash only makes the choice a certain one.
    pub(super) fn best(&self, tree: &Tree, present: Option<BlockId>) -> Option<BlockId> {
        let mut support = B256Map::<(BlockId, usize)>::default();
        for head in self.voters.iter().filter_map(|voter| voter.head) {
            for block in tree.line(&head.hash) {
                support.entry(block.id.hash).or_insert((block.id, 0)).1 += 1;
            }
        }
        let enough = support.into_values().filter(|&(_, votes)| votes >= self.quorum);
        let best = enough.max_by_key(|&(id, votes)| (id.number, Some(id) == present, votes, id.hash));
        best.map(|(id, _)| id)
    }
}

/// A node at zero while others have blocks, or one that stands still while another goes on above it.
///
/// It is the head that grows old, not the node's report of it: nodes that have the same head grow idle together, and
/// not one after the other, which would leave the rest to those who run ahead.
fn is_idle(voter: &Voter, all: &[&Voter], now: Instant, patience: Duration) -> bool {
    let number = voter.head.map(|head| head.number);
    let mut passed = all.iter().filter(|other| other.head.map(|head| head.number) > number);
    if number == Some(0) {
        return passed.next().is_some();
    }
    let moving = |other: &&&Voter| now.duration_since(other.moved) <= patience;
    let mut equals = all.iter().filter(|other| other.head == voter.head);
    equals.all(|equal| !moving(&equal)) && passed.any(|other| moving(&other))
}
