//! New blocks that could not be fetched, and when each is tried again. Pure: the time is passed in.

use std::collections::BTreeMap;
use std::time::Duration;

use alloy_primitives::B256;
use methods::BlockRef;
use tokio::time::Instant;

use crate::policy::{TRIED_AGAIN_AFTER, UNDELIVERED_PAUSE_MAX, UNPROVEN_PAUSE_MAX};

/// Why a block was not fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FetchProblem {
    Undelivered,
    /// It cannot be proven, for this reason.
    Unproven(String),
}

impl FetchProblem {
    fn longest_pause(&self) -> Duration {
        match self {
            Self::Undelivered => UNDELIVERED_PAUSE_MAX,
            Self::Unproven(_) => UNPROVEN_PAUSE_MAX,
        }
    }
}

/// A block that could not be fetched.
#[derive(Clone, Debug)]
struct BlockRetry {
    hash: B256,
    problem: FetchProblem,
    pause: Duration,
    due_at: Instant,
}

/// A block that is waited for, as `/status` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedBlock {
    pub block: BlockRef,
    /// Why its data cannot be proven. `None` if no node has delivered it.
    pub unproven_because: Option<String>,
    pub tried_again_in: Duration,
}

/// The blocks that could not be fetched, by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockRetries(BTreeMap<u64, BlockRetry>);

impl BlockRetries {
    /// Whether a block may be fetched now.
    pub(super) fn is_due(&self, block: BlockRef, now: Instant) -> bool {
        self.0.get(&block.number).is_none_or(|retry| retry.hash != block.hash || retry.due_at <= now)
    }

    /// Records that a block was not fetched. The pause doubles as long as the problem is the same. Returns whether it is new.
    pub(super) fn record_failure(&mut self, block: BlockRef, problem: FetchProblem, now: Instant) -> bool {
        let before =
            self.0.get(&block.number).filter(|retry| retry.hash == block.hash && retry.problem == problem);
        let is_new = before.is_none();
        let pause = before.map_or(TRIED_AGAIN_AFTER, |retry| (retry.pause * 2).min(problem.longest_pause()));
        let retry = BlockRetry { hash: block.hash, problem, pause, due_at: now + pause };
        self.0.insert(block.number, retry);
        is_new
    }

    /// Forgets a block that was fetched.
    pub(super) fn remove(&mut self, number: u64) {
        self.0.remove(&number);
    }

    /// Forgets blocks below the lowest one that is wanted, and those of branches that were left.
    pub(super) fn retain(&mut self, lowest: u64, is_canonical: impl Fn(&B256) -> bool) {
        self.0.retain(|number, retry| *number >= lowest && is_canonical(&retry.hash));
    }

    /// How long it takes until the next one is due. `None` if there is none.
    pub(super) fn next_due_in(&self, now: Instant) -> Option<Duration> {
        let next = self.0.values().map(|retry| retry.due_at).min()?;
        Some(next.saturating_duration_since(now))
    }

    /// The lowest of them, at most so many.
    pub(super) fn lowest(&self, most: usize, now: Instant) -> Vec<AwaitedBlock> {
        let awaited = self.0.iter().take(most).map(|(number, retry)| AwaitedBlock {
            block: BlockRef { number: *number, hash: retry.hash },
            unproven_because: match &retry.problem {
                FetchProblem::Undelivered => None,
                FetchProblem::Unproven(reason) => Some(reason.clone()),
            },
            tried_again_in: retry.due_at.saturating_duration_since(now),
        });
        awaited.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The receipts of a block could not be proven, and were fetched again once a second without end.
    #[test]
    fn the_pause_doubles_for_each_block_and_cause() {
        let (mut retries, mut now) = (BlockRetries::default(), Instant::now());
        let block = BlockRef { number: 7, hash: B256::repeat_byte(7) };
        let unproven = || FetchProblem::Unproven("its receipts".to_owned());
        let mut pauses = Vec::new();
        for _ in 0..12 {
            assert!(retries.is_due(block, now));
            retries.record_failure(block, unproven(), now);
            let pause = retries.next_due_in(now).unwrap();
            assert!(!retries.is_due(block, now + pause - Duration::from_millis(1)));
            pauses.push(pause.as_secs());
            now += pause;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        retries.record_failure(block, FetchProblem::Undelivered, now);
        assert_eq!(retries.next_due_in(now), Some(TRIED_AGAIN_AFTER), "another cause");
        let other = BlockRef { hash: B256::repeat_byte(8), ..block };
        assert!(retries.is_due(other, now), "another block of the same number");
        retries.retain(0, |hash| *hash == other.hash);
        assert_eq!(retries.next_due_in(now), None);
    }
}
