//! `safe` and `finalized`: the highest blocks that a quorum has marked so.

use super::canonical_chain::CanonicalChain;
use super::votes::{Electorate, NodeVote};
use crate::BlockId;

/// One of the two marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockMark {
    pub(super) name: &'static str,
    pub(super) of: fn(&NodeVote) -> Option<BlockId>,
}

pub(super) const SAFE: BlockMark = BlockMark { name: "safe", of: |vote| vote.safe };
pub(super) const FINALIZED: BlockMark = BlockMark { name: "finalized", of: |vote| vote.finalized };

/// How a mark changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkChange {
    Keep,
    To(BlockId),
    /// Most nodes report a lower block than before: the nodes that reported it were wrong or have lost blocks.
    Backwards(BlockId),
}

impl BlockMark {
    /// How the reports of the nodes change the mark that is at `present`.
    pub(super) fn change(
        self,
        present: Option<BlockId>,
        electorate: &Electorate<'_>,
        chain: &CanonicalChain,
    ) -> MarkChange {
        let reports: Vec<_> = electorate.votes.iter().filter_map(|vote| (self.of)(vote)).collect();
        let Some(agreed) = agreed(&reports, electorate.quorum, chain) else { return MarkChange::Keep };
        match present {
            Some(present) if agreed == present => MarkChange::Keep,
            // A node that reported it may be away, and others may be late with it.
            Some(present) if agreed.number <= present.number => {
                let below = reports.iter().filter(|report| report.number < present.number).count();
                if below >= electorate.majority { MarkChange::Backwards(agreed) } else { MarkChange::Keep }
            }
            _ => MarkChange::To(agreed),
        }
    }
}

/// The highest canonical block that a quorum has reached. Inside the window, a higher report includes all blocks below it. Below
/// the window nothing links two reports, so they must be equal.
fn agreed(reports: &[BlockId], quorum: usize, chain: &CanonicalChain) -> Option<BlockId> {
    let mut inside: Vec<_> = reports.iter().copied().filter(|report| chain.has(&report.hash)).collect();
    inside.sort_unstable_by_key(|report| std::cmp::Reverse(report.number));
    inside.get(quorum - 1).copied().or_else(|| agreed_below(reports, quorum, chain))
}

fn agreed_below(reports: &[BlockId], quorum: usize, chain: &CanonicalChain) -> Option<BlockId> {
    let deep = reports.iter().copied().filter(|report| report.number < chain.lowest());
    let possible = deep.filter(|report| chain.by_number(report.number).is_none_or(|known| known == *report));
    let enough = possible.filter(|report| reports.iter().filter(|other| *other == report).count() >= quorum);
    enough.max_by_key(|report| report.number)
}
