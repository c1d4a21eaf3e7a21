//! Whether the logs of a range are believed.
//!
//! Logs of a block that is not the view's are another fork's. Where a block of the view says by its bloom that there
//! may be logs, and the answer has none of it, another node is asked for its opinion, because blooms err only in that
//! direction. Those of busy blocks err often, so they are asked only about answers without any logs, and about the
//! newest blocks, which nodes are late with while the head is new.

use std::time::Duration;

use bytes::Bytes;
use nodes::check::{self, Expect, Facts, Verdict};
use nodes::{BlockId, Canon, Judgement, Judging};
use parking_lot::Mutex;

use super::super::Remote;
use super::super::checking::{CHECKED_AT_ONCE_BYTES_MAX, CheckedResult};
use super::super::expect;
use super::blooms::FilterBlooms;
use crate::answer::Failure;
use crate::callers::AccountId;
use crate::params::{Blocks, LogFilter};
use crate::resolve::BlockRef;

/// Blocks below the head that a node may be late with, or have another version of.
const NEWEST_BLOCKS: u64 = 4;

/// When the head has stood for this long, whoever has it has its logs, too.
const SETTLED: Duration = Duration::from_secs(2);

/// What an answer comes to.
pub(super) enum Sifted {
    Logs {
        result: Bytes,
        count: u64,
        /// Whether no other node might have known better.
        sure: bool,
    },
    /// Up to `to` they would fit.
    TooMany { to: Option<u64> },
    /// The node searches no more than `most` blocks at once.
    TooWide { most: Option<u64> },
}

pub(super) struct Sieve<'a> {
    remote: &'a Remote,
    canon: &'a Canon,
    filter: &'a LogFilter,
    blocks: Blocks<BlockRef>,
    expect: Expect,
    room: u64,
    seen: Mutex<Seen>,
}

/// What the last answer was like.
#[derive(Clone, Copy, Default)]
struct Seen {
    count: u64,
    too_many: Option<Option<u64>>,
    other_fork: bool,
}

impl<'a> Sieve<'a> {
    pub(super) fn new(
        remote: &'a Remote,
        canon: &'a Canon,
        filter: &'a LogFilter,
        blocks: Blocks<BlockRef>,
        room: u64,
    ) -> Self {
        let expect = expect::logs(filter, blocks, room);
        Self { remote, canon, filter, blocks, expect, room, seen: Mutex::default() }
    }

    pub(super) fn judge(&self, account: AccountId, result: &Bytes) -> Judging<'_> {
        self.remote.checking(account, &self.expect, result, move |checked| self.conclude(checked))
    }

    /// What follows from a check. Counting is not a matter of trust: the limit holds whatever the mode.
    fn conclude(&self, checked: CheckedResult) -> Judgement {
        match checked.verdict {
            Verdict::Sound(facts) => self.weigh(&facts),
            Verdict::Empty => self.weigh(&Facts::default()),
            Verdict::TooMany { to, blocks } => {
                let seen = self.too_many(to, &blocks);
                self.note(seen, !self.remote.judge.enforces() || !seen.other_fork)
            }
            Verdict::Null => Judgement::Wrong("no list"),
            Verdict::Contradicted => Judgement::Late,
            Verdict::Wrong(lie) if self.remote.judge.refuses(lie) => Judgement::Wrong(lie.name()),
            Verdict::Wrong(_) if !checked.is_json => Judgement::Wrong("no JSON"),
            Verdict::Wrong(_) => {
                let too_many = (checked.logs > self.room).then_some(None);
                self.note(Seen { count: checked.logs, too_many, other_fork: false }, true)
            }
        }
    }

    fn weigh(&self, facts: &Facts) -> Judgement {
        let seen = self.seen(facts);
        let sure = !self.remote.judge.enforces() || !seen.other_fork && !self.may_lack(&facts.blocks);
        self.note(seen, sure)
    }

    fn seen(&self, facts: &Facts) -> Seen {
        let other_fork = self.canon.contradicts(&facts.blocks);
        Seen { count: facts.count as u64, other_fork, too_many: None }
    }

    fn too_many(&self, to: Option<u64>, blocks: &[BlockId]) -> Seen {
        Seen { count: 0, other_fork: self.canon.contradicts(blocks), too_many: Some(to) }
    }

    async fn look_again(&self, account: AccountId, result: &Bytes) -> Result<Seen, Failure> {
        let (expect, family, bytes) = (self.expect.clone(), self.remote.family, result.clone());
        let check = move || check::check(&expect, &bytes, family);
        Ok(match self.remote.run_sized(account, result.len(), CHECKED_AT_ONCE_BYTES_MAX, check).await? {
            Verdict::Sound(facts) => self.seen(&facts),
            Verdict::TooMany { to, blocks } => self.too_many(to, &blocks),
            _ => Seen::default(),
        })
    }

    fn note(&self, seen: Seen, sure: bool) -> Judgement {
        *self.seen.lock() = seen;
        match sure {
            true => Judgement::Believed,
            // Another fork's logs are never delivered, so they are nothing to fall back on.
            false if seen.other_fork => Judgement::Late,
            false => Judgement::Doubtful,
        }
    }

    /// Whether some block of the range may have logs that are not in the answer.
    fn may_lack(&self, found: &[BlockId]) -> bool {
        let (from, to) = match self.blocks {
            Blocks::One(block) => (block.number, block.number),
            Blocks::Range { from, to } => (from.number, to.number),
        };
        // Below the window nothing is known of the blocks, so a list with anything in it has to do.
        if from < self.canon.lowest() && found.is_empty() {
            return true;
        }
        if !found.is_empty() && self.remote.pool.view().head_age().is_some_and(|age| age >= SETTLED) {
            return false;
        }
        let mut blooms = FilterBlooms::of(self.filter);
        let newest = self.canon.head().number.saturating_sub(NEWEST_BLOCKS - 1);
        let doubted = if found.is_empty() { self.canon.lowest() } else { newest.max(self.canon.lowest()) };
        (from.max(doubted)..=to)
            .filter_map(|number| self.canon.block(number))
            .any(|block| !found.contains(&block.id) && blooms.may_match(&block.logs_bloom))
    }

    /// The logs, once no other node is going to be asked.
    pub(super) async fn settle(
        &self,
        account: AccountId,
        result: Bytes,
        sure: bool,
    ) -> Result<Sifted, Failure> {
        // A doubtful answer that is delivered need not be the one that was looked at last.
        let seen = if sure { *self.seen.lock() } else { self.look_again(account, &result).await? };
        match seen.too_many {
            _ if seen.other_fork && !sure => Err(Failure::Unavailable),
            Some(to) => Ok(Sifted::TooMany { to }),
            None => Ok(Sifted::Logs { count: seen.count, result, sure }),
        }
    }
}
