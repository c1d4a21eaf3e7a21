//! Moves usage from the shards of the workers to the spool.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use resources::RepeatedWarning;

use super::entry::ENTRY_ROWS_MAX;
use super::recorder::UsageRecorder;
use super::spool::{AppendError, ProcessSpool};
use crate::ledger_text::shared_ledger_text;
use store::{UsageCounts, UsageGroup, UsageRow};

/// How often usage is written: a process that is killed loses what it counted since the last time.
pub(super) const COLLECTION_INTERVAL: Duration = Duration::from_millis(100);

/// Groups that wait in memory while the spool cannot be written: 25 MiB. Further groups are lost.
const PENDING_GROUPS_MAX: usize = 1 << 16;

pub(super) struct Collector {
    recorder: Arc<UsageRecorder>,
    spool: Arc<ProcessSpool>,
    network: Arc<str>,
    /// How many bytes may wait for the store, over all spools.
    spool_bytes_max: u64,
    /// What could not be written.
    pending: HashMap<UsageGroup, UsageCounts>,
    full: RepeatedWarning,
    lost: RepeatedWarning,
}

impl Collector {
    pub(super) fn new(
        recorder: Arc<UsageRecorder>,
        spool: Arc<ProcessSpool>,
        network: Arc<str>,
        spool_bytes_max: u64,
    ) -> Self {
        let network = shared_ledger_text(&network);
        let (full, lost) = (RepeatedWarning::default(), RepeatedWarning::default());
        Self { recorder, spool, network, spool_bytes_max, pending: HashMap::new(), full, lost }
    }

    /// Writes what was counted since the last time to the spool. It belongs to the minute of `unix_seconds`.
    pub(super) fn collect(&mut self, unix_seconds: u64) {
        let (mut lost_calls, mut lost_credits) = self.recorder.take_lost();
        for UsageRow { group, counts } in self.recorder.take(unix_seconds / 60 * 60, &self.network) {
            let is_full = self.pending.len() >= PENDING_GROUPS_MAX;
            match self.pending.entry(group) {
                Entry::Occupied(mut sum) => sum.get_mut().add(&counts),
                Entry::Vacant(new) if !is_full => drop(new.insert(counts)),
                Entry::Vacant(_) => {
                    lost_calls += counts.calls;
                    lost_credits += counts.credits;
                }
            }
        }
        self.write_pending();
        self.report_lost(lost_calls, lost_credits);
    }

    fn write_pending(&mut self) {
        let rows = self.pending.drain().map(|(group, counts)| UsageRow { group, counts });
        let mut rows: Vec<UsageRow> = rows.collect();
        while !rows.is_empty() {
            let rest = rows.len().saturating_sub(ENTRY_ROWS_MAX);
            match self.append(&rows[rest..]) {
                Ok(()) => rows.truncate(rest),
                Err(error) => {
                    self.report_failure(&error);
                    break;
                }
            }
        }
        self.pending.extend(rows.into_iter().map(|row| (row.group, row.counts)));
    }

    fn append(&self, rows: &[UsageRow]) -> Result<(), AppendError> {
        let counts = self.recorder.ledger();
        let of_others = counts.left_over_bytes.load(Relaxed);
        let bytes_max = self.spool_bytes_max.saturating_sub(of_others);
        self.spool.get_or_create()?.append(rows, bytes_max)?;
        counts.spooled_calls.fetch_add(rows.iter().map(|row| row.counts.calls).sum(), Relaxed);
        Ok(())
    }

    fn report_failure(&self, error: &AppendError) {
        self.recorder.ledger().spool_failures.fetch_add(1, Relaxed);
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

    fn report_lost(&self, calls: u64, credits: u64) {
        if calls + credits == 0 {
            return;
        }
        let ledger = self.recorder.ledger();
        ledger.lose(calls, credits);
        if self.lost.count(Instant::now()).is_some() {
            let calls = ledger.lost_calls.load(Relaxed);
            tracing::error!(
                calls,
                "usage was lost, because it could neither be written nor held in memory; calls is the number since the start"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::account::Account;
    use crate::api_key::ApiKey;
    use crate::instance_id::InstanceId;
    use crate::plans::Plans;
    use crate::usage::outcome::Outcome;
    use crate::usage::recorder::{CallUsage, UsageMethod};

    const MINUTE: u64 = 1_800_000_000;

    fn key(name: &str) -> Arc<ApiKey> {
        let account = Account::new("a".into(), Plans::default().named("custom").unwrap().clone());
        Arc::new(ApiKey::configured(name, Arc::new(account), None))
    }

    fn call(outcome: Outcome) -> CallUsage {
        let (method, latency) = (UsageMethod::Other, Duration::from_micros(7));
        CallUsage { method, outcome, calls: 1, credits: 5, bytes_in: 100, bytes_out: 10, latency }
    }

    fn collector(folder: &std::path::Path, workers: usize, bytes_max: u64) -> Collector {
        let recorder = Arc::new(UsageRecorder::new(workers));
        recorder.start();
        let spool = Arc::new(ProcessSpool::new(folder.to_owned(), InstanceId::random()));
        Collector::new(recorder, spool, "demo".into(), bytes_max)
    }

    /// The rows that wait for the store.
    fn waiting(collector: &Collector) -> Option<Vec<UsageRow>> {
        collector.spool.get().unwrap().next_batch().unwrap().map(|batch| batch.rows)
    }

    #[test]
    fn calls_of_all_workers_are_summed_up_by_key_method_and_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let mut collector = collector(folder.path(), 2, u64::MAX);
        let (one, other) = (key("one"), key("other"));
        for worker in [0, 1, 1] {
            collector.recorder.shard(worker).record(&one, call(Outcome::Ok));
        }
        collector.recorder.shard(0).record(&one, call(Outcome::Abandoned));
        collector.recorder.shard(0).record(&other, call(Outcome::Ok));
        collector.collect(MINUTE + 59);
        collector.recorder.shard(0).record(&one, call(Outcome::Ok));
        collector.collect(MINUTE + 60);
        collector.collect(MINUTE + 61);
        assert_eq!(collector.recorder.ledger().spooled_calls.load(Relaxed), 6);
        let rows = waiting(&collector).unwrap();
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

    /// PostgreSQL refuses texts with the character NUL, so a key with one in its name kept all usage from being stored.
    #[test]
    fn no_text_of_a_row_has_nul() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Arc::new(UsageRecorder::new(1));
        recorder.start();
        let spool = Arc::new(ProcessSpool::new(folder.path().to_owned(), InstanceId::random()));
        let mut collector = Collector::new(recorder, spool, "de\0mo".into(), u64::MAX);
        let account = Account::new("a\0b".into(), Plans::default().named("custom").unwrap().clone());
        let key = Arc::new(ApiKey::configured("o\0ne", Arc::new(account), None));
        collector.recorder.shard(0).record(&key, call(Outcome::Ok));
        collector.collect(MINUTE);
        let group = &waiting(&collector).unwrap()[0].group;
        assert_eq!((&*group.network, &*group.account, &*group.key), ("demo", "ab", "static:one"));
    }

    #[test]
    fn usage_waits_in_memory_while_the_spool_takes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut collector = collector(folder.path(), 1, 1);
        let key = key("one");
        for _ in 0..3 {
            collector.recorder.shard(0).record(&key, call(Outcome::Ok));
            collector.collect(MINUTE);
        }
        assert!(waiting(&collector).is_none());
        assert_eq!(collector.recorder.ledger().spool_failures.load(Relaxed), 3);
        collector.spool_bytes_max = u64::MAX;
        collector.collect(MINUTE);
        assert_eq!(waiting(&collector).unwrap()[0].counts.calls, 3);
        assert_eq!(collector.recorder.ledger().lost_calls.load(Relaxed), 0);
    }

    #[test]
    fn what_does_not_fit_into_memory_is_lost_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let mut collector = collector(folder.path(), 1, 1);
        for minute in 0..PENDING_GROUPS_MAX as u64 + 3 {
            collector.recorder.shard(0).record(&key("one"), call(Outcome::Ok));
            // Only the last collection tries to write, because each attempt takes as long as what it writes.
            if collector.pending.len() < PENDING_GROUPS_MAX {
                let row = collector.recorder.take(minute * 60, &collector.network).remove(0);
                collector.pending.insert(row.group, row.counts);
            } else {
                collector.collect(minute * 60);
            }
        }
        let ledger = collector.recorder.ledger();
        assert_eq!((ledger.lost_calls.load(Relaxed), ledger.lost_credits.load(Relaxed)), (3, 15));
        assert_eq!(collector.pending.len(), PENDING_GROUPS_MAX);
    }

    #[test]
    fn nothing_is_counted_without_a_collector() {
        let recorder = UsageRecorder::new(1);
        recorder.shard(0).record(&key("one"), call(Outcome::Ok));
        assert!(recorder.take(MINUTE, &"demo".into()).is_empty());
    }

    /// Run with `cargo test --release -p chaingate-callers what_counting_costs -- --ignored --nocapture`.
    #[test]
    #[ignore = "measures; it tests nothing"]
    fn what_counting_costs() {
        const CALLS: u32 = 5_000_000;
        for keys in [1, 1_000, 10_000] {
            let recorder = UsageRecorder::new(1);
            recorder.start();
            let keys: Vec<_> = (0..keys).map(|number| key(&number.to_string())).collect();
            let shard = recorder.shard(0);
            let started = Instant::now();
            for call_number in 0..CALLS as usize {
                shard.record(&keys[call_number % keys.len()], call(Outcome::Ok));
            }
            eprintln!("{} keys: {:?} for each call", keys.len(), started.elapsed() / CALLS);
        }
    }
}
