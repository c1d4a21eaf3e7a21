//! The threads that collect usage and store it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};

use resources::Clock;
use store::{Store, StoreLocation};
use tokio::sync::oneshot;

use super::collector::{COLLECTION_INTERVAL, Collector};
use super::day_credits::DayCredits;
use super::flusher::{Flusher, FlusherConfig};
use super::recorder::UsageRecorder;
use super::spool::{ProcessSpool, usage_dir};
use super::usage_settings::UsageSettings;
use crate::instance_id::InstanceId;

/// What a ledger is started with.
#[derive(Debug)]
pub struct LedgerConfig<'a> {
    pub data_dir: &'a Path,
    pub store: StoreLocation,
    pub network: &'a str,
    pub instance: InstanceId,
    pub settings: UsageSettings,
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
        let LedgerConfig { data_dir, store, network, instance, settings } = config;
        let clock = Clock::default();
        let spool = Arc::new(ProcessSpool::new(usage_dir(data_dir), instance));
        let (collector_stop, stopped) = mpsc::sync_channel(0);
        let (spool_bytes_max, network) = (settings.spool_bytes_max, network.into());
        let mut collector =
            Collector::new(Arc::clone(recorder), Arc::clone(&spool), network, spool_bytes_max);
        let (flusher_stop, stop) = oneshot::channel();
        let flusher = Flusher::new(FlusherConfig {
            store: Store::new(store),
            spool,
            recorder: Arc::clone(recorder),
            settings,
            on_day_credits: Box::new(on_day_credits),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let collect = move || {
            while stopped.recv_timeout(COLLECTION_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                collector.collect(clock.unix_seconds());
            }
            collector.collect(clock.unix_seconds());
        };
        recorder.start();
        Ok(Self {
            collector: thread::Builder::new().name("usage-collector".to_owned()).spawn(collect)?,
            collector_stop,
            flusher: thread::Builder::new()
                .name("usage-flusher".to_owned())
                .spawn(move || runtime.block_on(flusher.run(stop)))?,
            flusher_stop,
        })
    }

    /// Writes what was counted until now, and moves it to the store if that takes no more than a few seconds.
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
