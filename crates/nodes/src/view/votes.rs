//! Who has which head, and what a quorum of them has.

use std::time::Duration;

use alloy_primitives::map::B256Map;
use tokio::time::Instant;

use super::tree::Tree;
use crate::BlockId;

/// One node, as far as the view is concerned.
#[derive(Clone, Debug)]
pub(super) struct Voter {
    /// Up, of this chain, and not syncing. A node not heard of yet counts, so that whoever answers first at the
    /// start does not decide alone.
    pub(super) counted: bool,
    pub(super) head: Option<BlockId>,
    /// Since when others are ahead of it, without its head having moved. Only while those behind are no majority.
    pub(super) behind_since: Option<Instant>,
    pub(super) safe: Option<BlockId>,
    pub(super) finalized: Option<BlockId>,
}

impl Voter {
    pub(super) fn new() -> Self {
        Self { counted: true, head: None, behind_since: None, safe: None, finalized: None }
    }

    fn number(&self) -> Option<u64> {
        self.head.map(|head| head.number)
    }
}

/// Notes who is behind from now on, and who is not any more.
///
/// When the majority is behind, it is the chain that rests, and whoever runs ahead is the one to be doubted: then
/// nobody's patience is being tried.
pub(super) fn note_behind(voters: &mut [Voter], now: Instant) {
    let counted = || voters.iter().filter(|voter| voter.counted);
    let highest = counted().map(Voter::number).max().flatten();
    let behind = counted().filter(|voter| voter.number() < highest).count();
    let is_minority = behind * 2 <= counted().count();
    for voter in voters {
        let is_behind = is_minority && voter.counted && voter.number() < highest;
        voter.behind_since = is_behind.then(|| voter.behind_since.unwrap_or(now));
    }
}

/// Those who decide, and how many of them it takes.
#[derive(Debug)]
pub(super) struct Electorate<'a> {
    pub(super) voters: Vec<&'a Voter>,
    pub(super) quorum: usize,
}

impl<'a> Electorate<'a> {
    /// A node that is idle does not hold the others up, unless the idle ones are the majority.
    pub(super) fn of(voters: &'a [Voter], quorum: Option<usize>, now: Instant, patience: Duration) -> Self {
        let counted: Vec<_> = voters.iter().filter(|voter| voter.counted).collect();
        let highest = counted.iter().filter_map(|voter| voter.number()).max();
        let is_idle = |voter: &&Voter| {
            // At zero while others have blocks: it has only begun.
            let at_zero = voter.number() == Some(0) && highest > Some(0);
            at_zero || voter.behind_since.is_some_and(|since| now.duration_since(since) > patience)
        };
        let busy: Vec<_> = counted.iter().copied().filter(|voter| !is_idle(voter)).collect();
        let voters = if busy.len() * 2 >= counted.len() { busy } else { counted };
        let majority = voters.len() / 2 + 1;
        Self { quorum: quorum.unwrap_or(majority).max(1), voters }
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
