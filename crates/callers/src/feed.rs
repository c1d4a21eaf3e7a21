//! Keeps the directory of callers equal to the store: loads everything at the start, and then follows the changes.
//!
//! It has a thread and a runtime of its own, so that nothing on the request path ever waits for the store. While the store
//! cannot be reached, what is in memory stays in use; at the start the local copy takes its place.

mod apply; // rows → accounts and keys in memory
mod local_copy; // the copy in the data directory
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use resources::unix_seconds;
use store::{ChangeListener, RowPosition, Store, StoreFailure, StoreLocation};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use self::apply::{RowApplier, StoredRow};
use self::local_copy::{CopyWriter, read_copy};
use crate::directory::Directory;
use crate::feed_status::KeysOrigin;
use crate::plans::Plans;

/// How often the store is asked for changes. Notifications are faster, but can get lost.
const POLL_INTERVAL: Duration = Duration::from_millis(400);

/// How long the feed waits after a failure.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// How long a lost connection for notifications is not opened again.
const LISTEN_RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// How often the times of the last use of keys are stored.
const RECORD_USES_INTERVAL: Duration = Duration::from_secs(10);

/// Keys whose last use is stored before changes have their turn again: one statement of some milliseconds.
const RECORDED_USES_MAX: usize = 1_000;

/// How long a copy that could not be written is not tried again.
const COPY_RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// How long the start of the gateway waits for the first attempt to load the store; a million keys take seconds.
const FIRST_LOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a change waits until the directory of this process has it. The change is stored by then in any case.
const APPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// What the feed has to know.
#[derive(Debug)]
pub struct FeedConfig {
    pub location: StoreLocation,
    pub data_dir: PathBuf,
    pub plans: Plans,
    /// The name of the network that this gateway serves.
    pub network: String,
    /// Whether the gateway is not ready without accounts and keys of the store.
    pub is_required: bool,
}

/// The running feed. Dropping it ends its thread.
#[derive(Debug)]
pub struct CallersFeed {
    handle: FeedHandle,
    _stop: watch::Sender<()>,
}

/// Wakes the feed, and waits until it has applied a change.
#[derive(Clone, Debug)]
pub struct FeedHandle {
    wake: Arc<Notify>,
    applied: watch::Receiver<i64>,
}

impl FeedHandle {
    /// Waits until the directory of this process has the changes up to `revision`.
    pub(crate) async fn apply(&self, revision: i64) {
        self.wake.notify_one();
        let mut applied = self.applied.clone();
        // Without the store, or if the feed has ended, the change takes effect later.
        let _late = timeout(APPLY_TIMEOUT, applied.wait_for(|applied| *applied >= revision)).await;
    }
}

impl CallersFeed {
    /// Starts the feed and waits until it has loaded the store, or has failed to do so for the first time.
    ///
    /// Only a store that a newer version has made is an error: nothing but another program helps.
    pub fn start(config: FeedConfig, directory: Arc<Directory>) -> Result<Self, String> {
        let (wake, (applied_sender, applied)) = (Arc::new(Notify::new()), watch::channel(0));
        let (stop_sender, stop) = watch::channel(());
        let (first_sender, first) = sync_channel(1);
        directory.feed_status().update(|facts| facts.is_required = config.is_required);
        let feed = Feed::new(config, directory, Arc::clone(&wake), applied_sender);
        thread::Builder::new()
            .name("callers-feed".to_owned())
            .spawn(move || feed.run_until(stop, &first_sender))
            .map_err(|error| format!("cannot start the feed of accounts and keys: {error}"))?;
        // Other failures are logged, and tried again.
        let result = first.recv_timeout(FIRST_LOAD_TIMEOUT);
        if let Ok(Err(failure @ StoreFailure::NewerVersion { .. })) = result {
            return Err(failure.to_string());
        }
        Ok(Self { handle: FeedHandle { wake, applied }, _stop: stop_sender })
    }

    pub fn handle(&self) -> FeedHandle {
        self.handle.clone()
    }
}

/// How far the rows of the store have been read.
#[derive(Clone, Debug, Default)]
struct Positions {
    accounts: RowPosition<i64>,
    keys: RowPosition<String>,
    /// The revision of the store that both have reached.
    revision: i64,
}

struct Feed {
    store: Store,
    applier: RowApplier,
    copy_path: PathBuf,
    /// `None` until everything was written once, and after a failure.
    copy: Option<CopyWriter>,
    copy_retry_at: Option<Instant>,
    positions: Positions,
    wake: Arc<Notify>,
    applied: watch::Sender<i64>,
    uses_recorded_at: Instant,
    /// Whether the local copy was tried; one try is enough, because nothing else changes it.
    is_copy_read: bool,
}

impl Feed {
    fn new(
        config: FeedConfig,
        directory: Arc<Directory>,
        wake: Arc<Notify>,
        applied: watch::Sender<i64>,
    ) -> Self {
        Self {
            store: Store::new(config.location),
            applier: RowApplier::new(directory, config.plans, config.network),
            copy_path: local_copy::path(&config.data_dir),
            copy: None,
            copy_retry_at: None,
            positions: Positions::default(),
            wake,
            applied,
            uses_recorded_at: Instant::now(),
            is_copy_read: false,
        }
    }

    fn run_until(mut self, mut stop: watch::Receiver<()>, first: &SyncSender<Result<(), StoreFailure>>) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::error!(%error, "cannot follow the store of accounts and keys");
                return;
            }
        };
        runtime.block_on(async {
            tokio::select! {
                // The sender goes away with the handle of the feed.
                _ = stop.changed() => {}
                () = self.run(first) => {}
            }
        });
    }

    async fn run(&mut self, first: &SyncSender<Result<(), StoreFailure>>) {
        while let Err(failure) = self.load().await {
            self.disconnected(&failure);
            self.use_copy();
            // Only the first result is waited for.
            let _unheard = first.try_send(Err(failure));
            sleep(RETRY_INTERVAL).await;
        }
        let _unheard = first.try_send(Ok(()));
        let mut listening = Listening::default();
        loop {
            self.wait(&mut listening).await;
            match self.follow().await {
                Ok(()) => {
                    self.connected();
                    self.record_uses().await;
                }
                Err(failure) => {
                    self.disconnected(&failure);
                    sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    /// Waits for a change, or until it is time to look for one.
    async fn wait(&self, listening: &mut Listening) {
        listening.connect(&self.store).await;
        tokio::select! {
            () = self.wake.notified() => {}
            () = listening.changed() => {}
            () = sleep(POLL_INTERVAL) => {}
        }
    }

    /// Reads everything, and replaces what is in memory and the local copy.
    async fn load(&mut self) -> Result<(), StoreFailure> {
        let loaded = self.load_from_store().await;
        if loaded.is_err() {
            self.applier.give_up_load();
        }
        loaded
    }

    async fn load_from_store(&mut self) -> Result<(), StoreFailure> {
        let started = Instant::now();
        let hash_key = self.store.hash_key().await?;
        let mut copy = CopyWriter::create(&self.copy_path, &hash_key);
        self.applier.begin_load(hash_key);
        let revision = self.store.revision().await?;
        let mut positions = Positions::default();
        let rows = &mut |rows: &[StoredRow]| write_rows(&mut copy, rows);
        read_changes(&self.store, &mut positions, &mut self.applier, rows).await?;
        positions.revision = revision;
        self.applier.finish_load();
        self.copy_written(copy.and_then(CopyWriter::replace_old));
        self.positions = positions;
        self.loaded(KeysOrigin::Store);
        self.connected();
        let facts = self.applier.directory().feed_status().facts();
        let ms = started.elapsed().as_millis();
        tracing::info!(
            store = %self.store.location(), accounts = facts.accounts, keys = facts.keys, ms,
            "accounts and keys loaded"
        );
        Ok(())
    }

    /// Applies what has changed since the last time.
    async fn follow(&mut self) -> Result<(), StoreFailure> {
        self.applier.directory().set_minute(u32::try_from(unix_seconds() / 60).unwrap_or(0));
        let revision = self.store.revision().await?;
        let is_another_store = revision < self.positions.revision || !self.has_same_hash_key().await?;
        let is_copy_due = self.copy_retry_at.is_some_and(|at| at <= Instant::now());
        let is_copy_long = self.copy.as_ref().is_some_and(CopyWriter::is_long);
        if is_another_store || is_copy_due || is_copy_long || self.applier.needs_load() {
            return self.load().await;
        }
        if revision == self.positions.revision {
            return Ok(());
        }
        let mut appended = Ok(());
        let copy = &mut self.copy;
        let rows = &mut |rows: &[StoredRow]| {
            if let (Some(copy), Ok(())) = (copy.as_mut(), &appended) {
                appended = copy.append(rows);
            }
        };
        read_changes(&self.store, &mut self.positions, &mut self.applier, rows).await?;
        self.positions.revision = revision;
        if let Some(copy) = self.copy.take() {
            self.copy_written(appended.and_then(|()| copy.sync()));
        }
        self.loaded(KeysOrigin::Store);
        Ok(())
    }

    /// Whether the store is still the one that was loaded; asked only after an outage, in which it may have been replaced.
    async fn has_same_hash_key(&self) -> Result<bool, StoreFailure> {
        let directory = self.applier.directory();
        if directory.feed_status().facts().is_connected {
            return Ok(true);
        }
        let hash_key = self.store.hash_key().await?;
        Ok(directory.stored().is_some_and(|keys| *keys.hash_key() == hash_key))
    }

    /// Uses the local copy if nothing is in memory.
    fn use_copy(&mut self) {
        if self.applier.directory().feed_status().facts().origin != KeysOrigin::Nothing || self.is_copy_read {
            return;
        }
        self.is_copy_read = true;
        match read_copy(&self.copy_path, &mut self.applier) {
            Ok(true) => {
                self.loaded(KeysOrigin::Copy);
                let facts = self.applier.directory().feed_status().facts();
                let (accounts, keys) = (facts.accounts, facts.keys);
                tracing::warn!(accounts, keys, "the local copy of accounts and keys is used");
            }
            Ok(false) => tracing::warn!("there is no local copy of accounts and keys; waiting for the store"),
            Err(error) => {
                tracing::error!(%error, "the local copy of accounts and keys cannot be used; waiting for the store");
            }
        }
    }

    /// Stores when some keys were used last. A failure is only logged: changes can be followed all the same.
    async fn record_uses(&mut self) {
        if self.uses_recorded_at.elapsed() < RECORD_USES_INTERVAL {
            return;
        }
        let directory = self.applier.directory();
        let (used, others_wait) = directory.take_used(RECORDED_USES_MAX);
        let ids: Vec<&str> = used.iter().map(|key| &*key.id).collect();
        let recorded = match ids.as_slice() {
            [] => Ok(()),
            ids => self.store.record_key_uses(ids, unix_seconds()).await,
        };
        if let Err(error) = &recorded {
            tracing::warn!(%error, "cannot store when keys were used last; trying again");
            directory.put_back_used(used);
        }
        if recorded.is_err() || !others_wait {
            self.uses_recorded_at = Instant::now();
        }
    }

    fn copy_written(&mut self, written: io::Result<CopyWriter>) {
        match written {
            Ok(copy) => (self.copy, self.copy_retry_at) = (Some(copy), None),
            Err(error) => {
                // An old copy would let revoked keys in again.
                local_copy::remove(&self.copy_path);
                (self.copy, self.copy_retry_at) = (None, Some(Instant::now() + COPY_RETRY_INTERVAL));
                self.applier.directory().feed_status().update(|facts| facts.copy_failures += 1);
                tracing::error!(%error, path = %self.copy_path.display(), "cannot write the local copy of accounts and keys");
            }
        }
    }

    fn loaded(&self, origin: KeysOrigin) {
        let (accounts, keys, bad_rows) = self.applier.counts();
        let revision = self.positions.revision;
        self.applier.directory().feed_status().update(|facts| {
            (facts.origin, facts.accounts, facts.keys) = (origin, accounts, keys);
            (facts.bad_rows, facts.revision) = (bad_rows, revision);
        });
        self.applied.send_replace(revision);
    }

    fn connected(&self) {
        self.applier.directory().feed_status().update(|facts| {
            if !facts.is_connected {
                if facts.error.is_some() {
                    tracing::info!("the store of accounts and keys can be reached again");
                }
                (facts.is_connected, facts.since, facts.error) = (true, Some(Instant::now()), None);
            }
        });
    }

    fn disconnected(&self, failure: &StoreFailure) {
        self.applier.directory().feed_status().update(|facts| {
            if facts.is_connected || facts.error.is_none() {
                tracing::error!(store = %self.store.location(), error = %failure, "accounts and keys cannot be read; trying again");
                (facts.is_connected, facts.since) = (false, Some(Instant::now()));
            }
            facts.error = Some(failure.to_string());
        });
    }
}

/// Rows of a copy that could not be begun are not written.
fn write_rows(copy: &mut io::Result<CopyWriter>, rows: &[StoredRow]) {
    if let Ok(writer) = copy
        && let Err(error) = writer.append(rows)
    {
        *copy = Err(error);
    }
}

/// Reads all rows that were changed after `positions` and applies them.
///
/// Of each page of keys, the accounts are read after the keys and applied before them, so that the account of a key is always
/// known.
async fn read_changes(
    store: &Store,
    positions: &mut Positions,
    applier: &mut RowApplier,
    written: &mut impl FnMut(&[StoredRow]),
) -> Result<(), StoreFailure> {
    loop {
        let keys = store.keys_changed_after(&positions.keys).await?;
        loop {
            let accounts = store.accounts_changed_after(&positions.accounts).await?;
            let Some((last, _)) = accounts.last() else { break };
            let last = last.clone();
            written(&applier.apply(accounts.into_iter().map(|(_, row)| StoredRow::Account(row)).collect()));
            positions.accounts = last;
        }
        let Some((last, _)) = keys.last() else { return Ok(()) };
        let last = last.clone();
        written(&applier.apply(keys.into_iter().map(|(_, row)| StoredRow::Key(row)).collect()));
        positions.keys = last;
    }
}

/// The connection for notifications, which is opened again when it is lost.
#[derive(Debug, Default)]
struct Listening {
    listener: Option<ChangeListener>,
    not_before: Option<Instant>,
}

impl Listening {
    async fn connect(&mut self, store: &Store) {
        if self.listener.is_some() || self.not_before.is_some_and(|at| at > Instant::now()) {
            return;
        }
        // Without notifications, polling finds the changes.
        self.listener = store.listen().await.ok().flatten();
        self.not_before = Some(Instant::now() + LISTEN_RETRY_INTERVAL);
    }

    /// Waits for a notification; for ever without a connection.
    async fn changed(&mut self) {
        let Some(listener) = &mut self.listener else { return std::future::pending().await };
        if listener.changed().await.is_err() {
            self.listener = None;
        }
    }
}
