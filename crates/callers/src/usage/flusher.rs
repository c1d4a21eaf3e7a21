//! Moves usage from the spools to the store.

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use resources::{Clock, SupervisedTask};
use store::{DayTotal, Store, StoreFailure, UsageFlush, UsageStep};
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, sleep, timeout};

use super::day_credits::DayCredits;
use super::memory_queue::MemoryQueue;
use super::recorder::{UsageRecorder, UsedKeys};
use super::spool::{ProcessSpool, Spool, usage_dir};
use super::usage_settings::UsageSettings;

use crate::policy::{
    DELETIONS_MAX, FLUSH_INTERVAL, FLUSHER_STOP_TIMEOUT, FLUSHES_KEPT_SECONDS, MEMORY_STOP_TIMEOUT,
    USAGE_UPKEEP_INTERVAL,
};

/// Why usage was not moved.
#[derive(Debug, thiserror::Error)]
pub enum FlushFailure {
    #[error("{0}")]
    Store(#[from] StoreFailure),
    #[error("the spool of usage cannot be read: {0}")]
    Spool(#[from] io::Error),
}

/// A folder whose usage was not moved, while the others were.
#[derive(Debug, thiserror::Error)]
#[error("usage stays in {}: {failure}", folder.display())]
pub struct LeftOverFailure {
    folder: PathBuf,
    failure: FlushFailure,
}

/// Is called with the credits that were used today, each time that they are read.
pub(super) type OnDayCredits = Box<dyn Fn(&DayCredits) + Send>;

pub(super) struct Flusher {
    config: FlusherConfig,
    clock: Clock,
    /// Spools of processes that have ended, until they are stored.
    left_over: Vec<Spool>,
    /// Left-over spools that could not be stored, which are tried again when others are looked for.
    failed: Vec<Spool>,
    look_for_left_over_at: Instant,
    keep_up_at: Instant,
    /// The credits that were used today, as far as the store has said.
    day_credits: DayCredits,
    /// Keys that were used here, and whose limits do not know yet what the store has said.
    used_keys: UsedKeys,
}

pub(super) struct FlusherConfig {
    pub(super) store: Store,
    pub(super) spool: Arc<ProcessSpool>,
    pub(super) memory: Arc<MemoryQueue>,
    pub(super) recorder: Arc<UsageRecorder>,
    pub(super) settings: UsageSettings,
    pub(super) on_day_credits: OnDayCredits,
}

impl Flusher {
    pub(super) fn new(config: FlusherConfig) -> Self {
        let now = Instant::now();
        let (clock, left_over, failed) = (Clock::default(), Vec::new(), Vec::new());
        Self {
            config,
            clock,
            left_over,
            failed,
            look_for_left_over_at: now,
            keep_up_at: now,
            day_credits: DayCredits::default(),
            used_keys: UsedKeys::default(),
        }
    }

    /// Moves usage until `stop` says to stop, and then what is left, as long as that takes no more than [`FLUSHER_STOP_TIMEOUT`], and
    /// [`MEMORY_STOP_TIMEOUT`] for what would be lost.
    pub(super) async fn run(self, task: &SupervisedTask, mut stop: oneshot::Receiver<()>) {
        let flusher = Mutex::new(self);
        tokio::select! {
            biased;
            _ = &mut stop => {}
            // It can be given up anywhere: what is not marked as stored is sent again, and the store recognises it.
            () = task.run(|| async { flusher.lock().await.flush_repeatedly().await }) => {}
        }
        flusher.into_inner().finish().await;
    }

    /// Moves what is left when the gateway stops.
    async fn finish(mut self) {
        let is_reached = timeout(MEMORY_STOP_TIMEOUT, self.flush_memory_repeatedly()).await.is_ok();
        if is_reached {
            // The rest is stored after the next start.
            let _in_time = timeout(FLUSHER_STOP_TIMEOUT, self.flush()).await;
        }
        self.leave_rest();
        // Connections that do not end by then end with the process.
        let _in_time = timeout(FLUSHER_STOP_TIMEOUT, self.config.store.close()).await;
    }

    /// Says what becomes of the usage that is not in the store when the process ends.
    fn leave_rest(&self) {
        let FlusherConfig { memory, spool, .. } = &self.config;
        // The spool may have room by now.
        let refused = memory.write_to_spool().err();
        let lost_calls = memory.lose_rest();
        if lost_calls > 0 {
            tracing::error!(
                lost_calls,
                reason = refused.map(|error| error.to_string()),
                "usage is lost: neither the store nor data_dir has taken it before the gateway stopped"
            );
        }
        match spool.get().map(Spool::remove_if_stored) {
            None | Some(Ok(true)) => {}
            Some(Ok(false)) => {
                let bytes = spool.get().map(Spool::waiting_bytes);
                tracing::warn!(bytes, "usage stays on disk; the next start moves it to the store");
            }
            Some(Err(error)) => tracing::warn!(%error, "cannot remove the empty spool of usage"),
        }
    }

    async fn flush_repeatedly(&mut self) {
        loop {
            self.flush().await;
            sleep(FLUSH_INTERVAL).await;
        }
    }

    /// Moves everything that waits, and reports changes between success and failure.
    async fn flush(&mut self) {
        let flushed = self.try_flush().await;
        let ledger = self.config.recorder.ledger();
        let waiting = |spools: &[Spool]| spools.iter().map(Spool::waiting_bytes).sum::<u64>();
        ledger.left_over_bytes.store(waiting(&self.left_over) + waiting(&self.failed), Relaxed);
        ledger.waiting_bytes.store(self.config.spool.get().map_or(0, Spool::waiting_bytes), Relaxed);
        let was_failing = ledger.is_store_failing.swap(flushed.is_err(), Relaxed);
        match flushed {
            Ok(()) if was_failing => tracing::info!("usage is stored again"),
            Ok(()) => {}
            Err(error) => {
                ledger.flush_failures.fetch_add(1, Relaxed);
                if !was_failing {
                    tracing::warn!(%error, "usage waits until the store takes it");
                }
            }
        }
    }

    async fn try_flush(&mut self) -> Result<(), FlushFailure> {
        self.used_keys.extend(self.config.recorder.take_used_keys());
        let moved = self.move_usage().await;
        // Usage that the store refuses keeps neither old usage in it nor the credits of the day unknown.
        if matches!(moved, Err(FlushFailure::Store(StoreFailure::Unavailable(_)))) {
            return moved;
        }
        let (now, is_upkeep_due) = (self.clock.unix_seconds(), Instant::now() >= self.keep_up_at);
        let mut done = self.pass_on_day_credits(now, is_upkeep_due).await;
        if is_upkeep_due {
            let deleted = self.delete_old(now).await;
            done = done.and(deleted);
            if done.is_ok() {
                self.keep_up_at = Instant::now() + USAGE_UPKEEP_INTERVAL;
            }
        }
        moved.and(done.map_err(Into::into))
    }

    async fn move_usage(&mut self) -> Result<(), FlushFailure> {
        self.flush_memory().await?;
        let (FlusherConfig { store, spool, recorder, .. }, now) = (&self.config, self.clock.unix_seconds());
        if let Some(spool) = spool.get() {
            flush_spool(store, spool, now, |day_totals| {
                recorder.ledger().flushes.fetch_add(1, Relaxed);
                day_totals.into_iter().for_each(|total| self.day_credits.learn(total));
            })
            .await?;
        }
        Ok(self.flush_left_over(now).await?)
    }

    /// Moves what the spool has refused. It comes before the spool, because only the spool outlives the process.
    async fn flush_memory(&mut self) -> Result<(), StoreFailure> {
        let FlusherConfig { store, memory, recorder, .. } = &self.config;
        if !memory.is_refused() {
            return Ok(());
        }
        // A batch that was sent can no longer be written to the spool, so none is sent to a store that is known to be down.
        store.newest_change().await?;
        while let Some(batch) = memory.next_batch() {
            let stored = store.add_usage(&batch.flush(), self.clock.unix_seconds()).await?;
            memory.confirm();
            recorder.ledger().flushes.fetch_add(1, Relaxed);
            stored.day_totals.into_iter().for_each(|total| self.day_credits.learn(total));
        }
        Ok(())
    }

    /// Tries again while the store is down or too slow. Rows that the store refuses are not tried again.
    async fn flush_memory_repeatedly(&mut self) {
        while let Err(StoreFailure::Unavailable(_) | StoreFailure::TimedOut(_)) = self.flush_memory().await {
            sleep(FLUSH_INTERVAL).await;
        }
    }

    /// Moves what other processes have left over. What cannot be moved is tried again later, and nothing else waits for it.
    async fn flush_left_over(&mut self, now: u64) -> Result<(), StoreFailure> {
        let FlusherConfig { store, spool, recorder, .. } = &self.config;
        let report = |failure: LeftOverFailure| {
            recorder.ledger().flush_failures.fetch_add(1, Relaxed);
            tracing::warn!(%failure, "usage of an earlier process cannot be moved to the store; trying again");
        };
        if Instant::now() >= self.look_for_left_over_at {
            self.look_for_left_over_at = Instant::now() + USAGE_UPKEEP_INTERVAL;
            self.left_over.append(&mut self.failed);
            let unreadable =
                |folder, error: io::Error| report(LeftOverFailure { folder, failure: error.into() });
            self.left_over.extend(Spool::left_over(spool.usage_dir(), unreadable));
        }
        while let Some(spool) = self.left_over.first() {
            let failure = flush_and_remove(store, spool, now).await?;
            let spool = self.left_over.remove(0);
            if let Some(failure) = failure {
                report(failure);
                self.failed.push(spool);
            }
        }
        Ok(())
    }

    /// Raises the limits of the keys that were used here since the last time, or of all keys: the store has returned what all
    /// gateways have used of them.
    async fn pass_on_day_credits(&mut self, now: u64, of_all: bool) -> Result<(), StoreFailure> {
        self.day_credits.read(&self.config.store, now).await?;
        let used_keys = std::mem::take(&mut self.used_keys);
        self.day_credits.set_keys((!of_all).then_some(used_keys));
        (self.config.on_day_credits)(&self.day_credits);
        tracing::debug!(accounts = self.day_credits.accounts(), of_all, "credits used today are known");
        Ok(())
    }

    async fn delete_old(&self, now: u64) -> Result<(), StoreFailure> {
        let FlusherConfig { store, settings, .. } = &self.config;
        for step in UsageStep::ALL {
            let kept_since = settings.kept_since(step, now);
            for _ in 0..DELETIONS_MAX {
                if kept_since == 0 || store.delete_usage_before(step, kept_since).await? == 0 {
                    break;
                }
            }
        }
        store.delete_usage_flushes_before(now.saturating_sub(FLUSHES_KEPT_SECONDS)).await?;
        Ok(())
    }
}

/// Moves the usage of processes that have ended to the store, for commands that run without a gateway. Returns what stays
/// where it is.
pub async fn flush_left_over(
    store: &Store,
    data_dir: &Path,
    unix_seconds: u64,
) -> Result<Vec<LeftOverFailure>, StoreFailure> {
    let mut failures = Vec::new();
    let spools = Spool::left_over(&usage_dir(data_dir), |folder, error| {
        failures.push(LeftOverFailure { folder, failure: error.into() });
    });
    for spool in spools {
        failures.extend(flush_and_remove(store, &spool, unix_seconds).await?);
    }
    Ok(failures)
}

/// Moves a spool of another process to the store. Only a failure that every spool would have is an error.
async fn flush_and_remove(
    store: &Store,
    spool: &Spool,
    unix_seconds: u64,
) -> Result<Option<LeftOverFailure>, StoreFailure> {
    let flushed = flush_spool(store, spool, unix_seconds, drop).await;
    let removed = flushed.and_then(|()| Ok(spool.remove_if_stored()?));
    match removed {
        Ok(_) => Ok(None),
        Err(FlushFailure::Store(
            failure @ (StoreFailure::Unavailable(_)
            | StoreFailure::TimedOut(_)
            | StoreFailure::NewerVersion { .. }),
        )) => Err(failure),
        Err(failure) => Ok(Some(LeftOverFailure { folder: spool.folder().to_owned(), failure })),
    }
}

/// Moves everything in a spool to the store, and calls `flushed` after each transaction with the totals that it has returned.
async fn flush_spool(
    store: &Store,
    spool: &Spool,
    unix_seconds: u64,
    mut flushed: impl FnMut(Vec<DayTotal>),
) -> Result<(), FlushFailure> {
    while let Some(batch) = spool.next_batch()? {
        let newest = batch.rows.iter().map(|row| row.group.starts_at).max().unwrap_or(0);
        if newest < unix_seconds.saturating_sub(FLUSHES_KEPT_SECONDS) {
            tracing::error!(
                entries = batch.through - batch.after,
                "usage is lost: it waited for more than 400 days"
            );
            spool.store_through(batch.through)?;
            continue;
        }
        let instance = batch.id.instance.to_string();
        let (epoch, after, through, rows) = (batch.id.epoch, batch.after, batch.through, &batch.rows[..]);
        let flush = UsageFlush { instance: &instance, epoch, after, through, rows };
        let stored = store.add_usage(&flush, unix_seconds).await?;
        spool.store_through(stored.through)?;
        flushed(stored.day_totals);
    }
    Ok(())
}
