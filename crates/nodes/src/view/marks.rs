//! `safe` and `finalized`: the highest blocks that a quorum calls so.

use super::canon::Canon;
use super::votes::{Electorate, Voter};
use crate::BlockId;

/// One of the two marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) name: &'static str,
    pub(super) of: fn(&Voter) -> Option<BlockId>,
}

pub(super) const SAFE: Mark = Mark { name: "safe", of: |voter| voter.safe };
pub(super) const FINALIZED: Mark = Mark { name: "finalized", of: |voter| voter.finalized };

/// What becomes of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Keep,
    To(BlockId),
    /// Most nodes are below what it was, so that those who called it so were wrong or have lost blocks: an alarm.
    Backwards(BlockId),
}

impl Mark {
    /// Where the nodes want the mark that is at `present`, on the chain of `canon`.
    pub(super) fn step(self, present: Option<BlockId>, electorate: &Electorate<'_>, canon: &Canon) -> Step {
        let reports: Vec<_> = electorate.voters.iter().filter_map(|voter| (self.of)(voter)).collect();
        let Some(agreed) = agreed(&reports, electorate.quorum, canon) else { return Step::Keep };
        match present {
            Some(present) if agreed == present => Step::Keep,
            // One of those who made it so may be away, and others may be late with it.
            Some(present) if agreed.number <= present.number => {
                let below = reports.iter().filter(|report| report.number < present.number).count();
                if below >= electorate.majority { Step::Backwards(agreed) } else { Step::Keep }
            }
            _ => Step::To(agreed),
        }
    }
}

/// The highest block on the chain that a quorum has reached. Inside the window a higher report stands for all blocks
/// below it; below the window nothing links two reports, so they must be equal.
fn agreed(reports: &[BlockId], quorum: usize, canon: &Canon) -> Option<BlockId> {
    let mut inside: Vec<_> = reports.iter().copied().filter(|report| canon.has(&report.hash)).collect();
    inside.sort_unstable_by_key(|report| std::cmp::Reverse(report.number));
    inside.get(quorum - 1).copied().or_else(|| agreed_below(reports, quorum, canon))
}

fn agreed_below(reports: &[BlockId], quorum: usize, canon: &Canon) -> Option<BlockId> {
    let deep = reports.iter().copied().filter(|report| report.number < canon.lowest());
    let possible = deep.filter(|report| canon.by_number(report.number).is_none_or(|known| known == *report));
    let enough = possible.filter(|report| reports.iter().filter(|other| *other == report).count() >= quorum);
    enough.max_by_key(|report| report.number)
}
