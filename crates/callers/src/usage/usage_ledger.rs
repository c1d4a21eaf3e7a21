//! The threads that collect usage and store it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};

use resources::{Clock, DiskHealth, Supervisor, WhenDown};
use store::{Store, StoreLocation};
use tokio::sync::oneshot;

use super::collector::Collector;
use super::day_credits::DayCredits;
use super::flusher::{Flusher, FlusherConfig};
use super::memory_queue::MemoryQueue;
use super::recorder::UsageRecorder;
use super::spool::{ProcessSpool, usage_dir};
use super::usage_settings::UsageSettings;
use crate::instance_id::InstanceId;
use crate::policy::COLLECTION_INTERVAL;

#[derive(Debug)]
pub struct LedgerConfig<'a> {
    pub data_dir: &'a Path,
    pub store: StoreLocation,
    pub network: &'a str,
    pub instance: InstanceId,
    pub settings: UsageSettings,
    pub supervisor: &'a Supervisor,
    pub disk: DiskHealth,
}

/// The running ledger. Neither thread is ever waited for by a call.
#[derive(Debug)]
pub struct UsageLedger {
    collector: JoinHandle<()>,
    /// Dropped when the collector has to stop.
    collector_stop: mpsc::SyncSender<()>,
    flusher: JoinHandle<()>,
    flusher_stop: oneshot::Sender<()>,
}

impl UsageLedger {
    /// Begins to count. `on_day_credits` is told from time to time what was used today.
    pub fn start(
        config: LedgerConfig<'_>,
        recorder: &Arc<UsageRecorder>,
        on_day_credits: impl Fn(&DayCredits) + Send + 'static,
    ) -> io::Result<Self> {
        let LedgerConfig { data_dir, store, network, instance, settings, supervisor, disk } = config;
        let clock = Clock::default();
        let spool = Arc::new(ProcessSpool::new(usage_dir(data_dir), instance));
        let (collector_stop, stopped) = mpsc::sync_channel(0);
        let (queue_recorder, queue_spool) = (Arc::clone(recorder), Arc::clone(&spool));
        let memory = Arc::new(MemoryQueue::new(queue_recorder, queue_spool, settings.spool_bytes_max, disk));
        let mut collector = Collector::new(Arc::clone(recorder), Arc::clone(&memory), network);
        let (flusher_stop, stop) = oneshot::channel();
        let flusher = Flusher::new(FlusherConfig {
            store: Store::new(store),
            spool,
            memory,
            recorder: Arc::clone(recorder),
            settings,
            on_day_credits: Box::new(on_day_credits),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let collecting = supervisor.task("collector of usage", WhenDown::Degraded);
        let collect = move || {
            // After a panic it goes on with what it has not written yet.
            collecting.run_blocking(|task| {
                while stopped.recv_timeout(COLLECTION_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    task.alive();
                    collector.collect(clock.unix_seconds());
                }
            });
            collector.collect_last(clock.unix_seconds());
        };
        let flushing = supervisor.task("flusher of usage", WhenDown::Degraded);
        recorder.start();
        Ok(Self {
            collector: thread::Builder::new().name("usage-collector".to_owned()).spawn(collect)?,
            collector_stop,
            flusher: thread::Builder::new()
                .name("usage-flusher".to_owned())
                .spawn(move || runtime.block_on(flusher.run(&flushing, stop)))?,
            flusher_stop,
        })
    }

    /// Writes what was counted until now, and moves it to the store within some seconds.
    pub fn stop(self) {
        let Self { collector, collector_stop, flusher, flusher_stop } = self;
        drop(collector_stop);
        let collected = collector.join();
        // A flusher that has ended is waited for all the same.
        let _ended = flusher_stop.send(());
        if collected.and(flusher.join()).is_err() {
            tracing::error!("a thread of the usage ledger has panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::{Duration, Instant};

    use store::{UsageQuery, UsageStep};

    use super::*;
    use crate::account::Account;
    use crate::api_key::ApiKey;
    use crate::plans::Plans;
    use crate::usage::outcome::Outcome;
    use crate::usage::recorder::{CallUsage, UsageMethod};

    const TASKS: [&str; 2] = ["collector of usage", "flusher of usage"];

    fn wait_until(what: &str, is_true: impl Fn() -> bool) {
        let late = Instant::now() + Duration::from_secs(120);
        while !is_true() {
            assert!(Instant::now() < late, "never: {what}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// A thread of the ledger that had panicked was gone for good, and usage was neither collected nor stored any more.
    #[test]
    fn usage_is_collected_and_stored_after_panics() {
        let folder = tempfile::tempdir().unwrap();
        let (supervisor, recorder) = (Supervisor::default(), Arc::new(UsageRecorder::new(1)));
        let config = LedgerConfig {
            data_dir: folder.path(),
            store: StoreLocation::in_data_dir(folder.path()),
            network: "demo",
            instance: InstanceId::random(),
            settings: UsageSettings::default(),
            supervisor: &supervisor,
            disk: DiskHealth::new(folder.path()),
        };
        let ledger = UsageLedger::start(config, &recorder, |_| {}).unwrap();
        let account = Account::new("a".into(), Plans::default().named("custom").unwrap().clone());
        let key = Arc::new(ApiKey::configured("k", Arc::new(account), None));
        let call = || {
            let (method, outcome, latency) = (UsageMethod::Other, Outcome::Ok, Duration::ZERO);
            let usage =
                CallUsage { method, outcome, calls: 1, credits: 5, bytes_in: 1, bytes_out: 1, latency };
            recorder.shard(0).record(&key, None, usage);
        };
        for task in TASKS {
            supervisor.inject_panics(task, 1);
        }
        wait_until("both panic", || supervisor.report().iter().all(|task| task.panics == 1));
        call();
        wait_until("usage is stored", || recorder.ledger().flushes.load(Relaxed) == 1);
        for task in TASKS {
            supervisor.inject_panics(task, u32::MAX);
        }
        wait_until("both are down", || supervisor.report().iter().all(|task| task.is_down));
        call();
        // Usage that nobody could collect meanwhile is stored at the end.
        ledger.stop();
        let query = UsageQuery {
            step: UsageStep::Day,
            since: 0,
            until: u64::MAX,
            account: Some("a".to_owned()),
            key: None,
            network: None,
            tag: None,
            by: [].into(),
            accounts: None,
            keys: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = Store::new(StoreLocation::in_data_dir(folder.path()));
        let rows = runtime.block_on(store.usage(&query, 1)).unwrap();
        assert_eq!(rows[0].counts.calls, 2);
    }
}
