//! Moves usage from the shards of the workers to the spool.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use resources::RepeatedWarning;

use super::memory_queue::MemoryQueue;
use super::recorder::UsageRecorder;
use super::spool::AppendError;
use crate::policy::COLLECTIONS_SKIPPED_MAX;

pub(super) struct Collector {
    recorder: Arc<UsageRecorder>,
    memory: Arc<MemoryQueue>,
    network: Arc<str>,
    /// Collections until usage is written again; more after each failure.
    skipped: u32,
    skips: u32,
    /// Calls that were lost, as far as the log says.
    logged_lost_calls: u64,
    full: RepeatedWarning,
    lost: RepeatedWarning,
}

impl Collector {
    pub(super) fn new(recorder: Arc<UsageRecorder>, memory: Arc<MemoryQueue>, network: &str) -> Self {
        let (full, lost) = (RepeatedWarning::default(), RepeatedWarning::default());
        Self {
            recorder,
            memory,
            network: network.into(),
            skipped: 0,
            skips: 0,
            logged_lost_calls: 0,
            full,
            lost,
        }
    }

    /// Writes what was counted since the last time to the spool, unless that has just failed. It belongs to the minute of
    /// `unix_seconds`.
    pub(super) fn collect(&mut self, unix_seconds: u64) {
        self.take(unix_seconds);
        if self.skipped < self.skips {
            self.skipped += 1;
        } else {
            self.write();
        }
        self.report_lost();
    }

    /// Writes all that was counted when the process ends.
    pub(super) fn collect_last(&mut self, unix_seconds: u64) {
        self.take(unix_seconds);
        self.write();
        self.report_lost();
    }

    fn take(&self, unix_seconds: u64) {
        let (calls, credits) = self.recorder.take_lost();
        self.recorder.ledger().lose(calls, credits);
        self.memory.add(self.recorder.take(unix_seconds / 60 * 60, &self.network));
    }

    fn write(&mut self) {
        self.skipped = 0;
        match self.memory.write_to_spool() {
            Ok(()) => self.skips = 0,
            Err(error) => {
                self.skips = (2 * self.skips + 1).min(COLLECTIONS_SKIPPED_MAX);
                self.report_failure(&error);
            }
        }
    }

    fn report_failure(&self, error: &AppendError) {
        let Some(times) = self.full.count(Instant::now()) else { return };
        match error {
            AppendError::Full => tracing::error!(
                times,
                "usage waits in memory: the store does not accept it, and its files in data_dir have reached spool_bytes_max"
            ),
            AppendError::Io(error) => {
                tracing::error!(%error, times, "usage waits in memory: its file in data_dir cannot be written");
            }
        }
    }

    fn report_lost(&mut self) {
        let calls = self.recorder.ledger().lost_calls.load(Relaxed);
        if calls > self.logged_lost_calls && self.lost.count(Instant::now()).is_some() {
            self.logged_lost_calls = calls;
            tracing::error!(
                calls,
                "usage was lost, because it could neither be written nor held in memory; calls is the number since the start"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use std::time::Duration;

    use resources::DiskHealth;
    use store::UsageRow;

    use super::*;
    use crate::account::Account;
    use crate::api_key::ApiKey;
    use crate::instance_id::InstanceId;
    use crate::plans::Plans;
    use crate::policy::WAITING_GROUPS_MAX;
    use crate::usage::outcome::Outcome;
    use crate::usage::recorder::{CallUsage, UsageMethod};
    use crate::usage::spool::ProcessSpool;

    const MINUTE: u64 = 1_800_000_000;

    fn key(name: &str) -> Arc<ApiKey> {
        let account = Account::new("a".into(), Plans::default().named("custom").unwrap().clone());
        Arc::new(ApiKey::configured(name, Arc::new(account), None))
    }

    fn call(outcome: Outcome) -> CallUsage {
        let (method, latency) = (UsageMethod::Other, Duration::from_micros(7));
        CallUsage { method, outcome, calls: 1, credits: 5, bytes_in: 100, bytes_out: 10, latency }
    }

    /// A collector and its spool.
    fn collector(
        folder: &Path,
        workers: usize,
        bytes_max: u64,
        network: &str,
    ) -> (Collector, Arc<ProcessSpool>) {
        let recorder = Arc::new(UsageRecorder::new(workers));
        recorder.start();
        let spool = Arc::new(ProcessSpool::new(folder.to_owned(), InstanceId::random()));
        let memory =
            MemoryQueue::new(Arc::clone(&recorder), Arc::clone(&spool), bytes_max, DiskHealth::new(folder));
        (Collector::new(recorder, Arc::new(memory), network), spool)
    }

    /// The rows that wait for the store.
    fn waiting(spool: &ProcessSpool) -> Option<Vec<UsageRow>> {
        spool.get().unwrap().next_batch().unwrap().map(|batch| batch.rows)
    }

    #[test]
    fn calls_of_all_workers_are_summed_up_by_key_method_and_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let (mut collector, spool) = collector(folder.path(), 2, u64::MAX, "demo");
        let (one, other) = (key("one"), key("other"));
        for worker in [0, 1, 1] {
            collector.recorder.shard(worker).record(&one, None, call(Outcome::Ok));
        }
        collector.recorder.shard(0).record(&one, None, call(Outcome::Abandoned));
        collector.recorder.shard(0).record(&other, None, call(Outcome::Ok));
        collector.collect(MINUTE + 59);
        collector.recorder.shard(0).record(&one, None, call(Outcome::Ok));
        collector.collect(MINUTE + 60);
        collector.collect(MINUTE + 61);
        assert_eq!(collector.recorder.ledger().spooled_calls.load(Relaxed), 6);
        let rows = waiting(&spool).unwrap();
        let shown: Vec<_> = rows
            .iter()
            .map(|row| (row.group.starts_at, &*row.group.key, &*row.group.outcome, row.counts.calls))
            .collect();
        let expected = [
            (MINUTE, "static:one", "abandoned", 1),
            (MINUTE, "static:one", "ok", 3),
            (MINUTE, "static:other", "ok", 1),
            (MINUTE + 60, "static:one", "ok", 1),
        ];
        assert_eq!(shown, expected);
        let three = &rows[1].counts;
        assert_eq!((three.credits, three.bytes_in, three.bytes_out, three.latency_ns), (15, 300, 30, 21_000));
        assert_eq!(three.latency_buckets[1], 3);
    }

    #[test]
    fn usage_waits_in_memory_while_the_spool_takes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let usage_dir = folder.path().join("usage");
        fs::write(&usage_dir, "not a folder").unwrap();
        let (mut collector, spool) = collector(&usage_dir, 1, u64::MAX, "demo");
        let key = key("one");
        for _ in 0..3 {
            collector.recorder.shard(0).record(&key, None, call(Outcome::Ok));
            collector.collect(MINUTE);
        }
        let ledger = collector.recorder.ledger();
        assert_eq!(ledger.waiting_bytes.load(Relaxed), 0);
        assert!(ledger.memory_bytes.load(Relaxed) > 0);
        fs::remove_file(&usage_dir).unwrap();
        collector.collect_last(MINUTE);
        assert_eq!(waiting(&spool).unwrap()[0].counts.calls, 3);
        let ledger = collector.recorder.ledger();
        assert_eq!((ledger.lost_calls.load(Relaxed), ledger.memory_bytes.load(Relaxed)), (0, 0));
    }

    /// All that waited was sorted and encoded ten times a second while the disk was full.
    #[test]
    fn a_spool_that_takes_nothing_is_tried_ever_less_often() {
        let folder = tempfile::tempdir().unwrap();
        let (mut collector, _spool) = collector(folder.path(), 1, 1, "demo");
        let mut failures = Vec::new();
        for _ in 0..10 * COLLECTIONS_SKIPPED_MAX {
            collector.recorder.shard(0).record(&key("one"), None, call(Outcome::Ok));
            collector.collect(MINUTE);
            failures.push(collector.recorder.ledger().spool_failures.load(Relaxed));
        }
        assert_eq!(failures[..11], [1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3]);
        assert!((10..20).contains(failures.last().unwrap()), "{failures:?}");
    }

    #[test]
    fn what_does_not_fit_into_memory_is_lost_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let (collector, _spool) = collector(folder.path(), 1, 1, "demo");
        let row = |minute: u64| {
            collector.recorder.shard(0).record(&key("one"), None, call(Outcome::Ok));
            collector.recorder.take(minute * 60, &collector.network).remove(0)
        };
        collector.memory.add((0..WAITING_GROUPS_MAX as u64 + 3).map(row));
        let ledger = collector.recorder.ledger();
        assert_eq!((ledger.lost_calls.load(Relaxed), ledger.lost_credits.load(Relaxed)), (3, 15));
        assert_eq!(collector.memory.lose_rest(), WAITING_GROUPS_MAX as u64);
        assert_eq!(ledger.lost_calls.load(Relaxed), 3 + WAITING_GROUPS_MAX as u64);
    }

    #[test]
    fn nothing_is_counted_without_a_collector() {
        let recorder = UsageRecorder::new(1);
        recorder.shard(0).record(&key("one"), None, call(Outcome::Ok));
        assert!(recorder.take(MINUTE, &"demo".into()).is_empty());
    }
}
