//! Keeps the directory of callers equal to the store: loads everything at the start, and then follows the changes, also during a
//! load.
//!
//! It has a thread and a runtime of its own, so that nothing on the request path ever waits for the store. While the store
//! cannot be reached, what is in memory stays in use; at the start the local copy takes its place.
//!
//! Each round compares the last change that it saw with the store. If the store does not have it, a copy without the newest changes
//! has taken the place of the store, or a backup was restored, and everything is loaded again.

mod apply; // rows → accounts and keys in memory
mod changed_rows; // reads rows of the store
mod copy_file; // the file of the local copy
mod copy_queue; // changes that wait to be written to the copy
mod local_copy; // writes the copy
#[cfg(test)]
mod tests;

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use resources::{DiskHealth, Supervisor, WhenDown, unix_seconds};
use store::{AuditRecord, ChangeMark, HashKey, KeyStatus, Store, StoreFailure, StoreHistory, StoreLocation};
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::{sleep, sleep_until, timeout};

use self::apply::{RowApplier, RowSource};
use self::changed_rows::{Positions, RunningLoad};
use self::copy_file::read_copy;
use self::copy_queue::CopyQueue;
use self::local_copy::LocalCopy;
use crate::directory::Directory;
use crate::feed_status::KeysOrigin;
use crate::local_revocations::{LocalRevocation, LocalRevocations};
use crate::plans::CurrentPlans;
use crate::policy::{
    APPLY_TIMEOUT, COPY_STOP_TIMEOUT, FEED_POLL_INTERVAL, FEED_RETRY_INTERVAL, FEED_STORE_TIMEOUT,
    FIRST_LOAD_TIMEOUT, LISTEN_RETRY_INTERVAL, LISTEN_TIME_MAX, RECORD_USES_INTERVAL, RECORDED_USES_MAX,
    REVOCATION_RETRY_INTERVAL,
};

#[derive(Debug)]
pub struct FeedConfig {
    pub location: StoreLocation,
    pub data_dir: PathBuf,
    pub plans: CurrentPlans,
    /// The name of the network that this gateway serves.
    pub network: String,
    /// Whether the gateway is not ready without accounts and keys of the store.
    pub is_required: bool,
    /// How long accounts and keys are used without the store: a local copy that is older is not used at the start, and a gateway
    /// that has not followed the store for so long is not ready. `None` is for ever.
    pub copy_age_max: Option<Duration>,
}

/// The running feed. Dropping it ends its thread, and waits until the local copy has the last changes.
#[derive(Debug)]
pub struct CallersFeed {
    handle: FeedHandle,
    _stop: watch::Sender<()>,
    copy: Arc<CopyQueue>,
    copy_ended: Receiver<()>,
}

/// When a change takes effect on this gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeEffect {
    /// It has taken effect.
    Now,
    /// It is stored, and takes effect later for this reason.
    Later(String),
}

/// Wakes the feed, and waits until it has applied a change.
#[derive(Clone, Debug)]
pub struct FeedHandle {
    wake: Arc<Notify>,
    rounds: watch::Receiver<FeedRounds>,
    directory: Arc<Directory>,
}

/// Rounds of the feed, by their numbers.
#[derive(Clone, Copy, Debug, Default)]
struct FeedRounds {
    /// The newest one that has begun.
    begun: u64,
    /// The newest one after which every change that it found was in effect.
    applied: u64,
    /// Changes up to this revision take effect when the load is finished.
    load_from: Option<i64>,
}

impl FeedHandle {
    /// Waits until the directory of this process has the change with this revision, which is stored.
    pub(crate) async fn apply(&self, revision: i64) -> ChangeEffect {
        let mut rounds = self.rounds.clone();
        // A round that has begun may have missed the change. The revision alone would not do: after the store was replaced by an older
        // copy, the feed has seen higher ones than those of new changes.
        let begun = rounds.borrow().begun;
        self.wake.notify_one();
        let is_applied = |rounds: &FeedRounds| {
            rounds.applied > begun && rounds.load_from.is_none_or(|load_from| revision > load_from)
        };
        match timeout(APPLY_TIMEOUT, rounds.wait_for(is_applied)).await {
            Ok(Ok(_)) => ChangeEffect::Now,
            Ok(Err(_)) | Err(_) => ChangeEffect::Later(self.reason_for_delay()),
        }
    }

    /// Makes the feed look for something to do.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Lets the accounts of the store have the limits of the plans that are in force now.
    pub fn apply_plans(&self) {
        self.wake.notify_one();
    }

    /// Whether the configuration has an account that the ledger cannot tell from one with this name.
    pub(crate) fn has_configured_account(&self, name: &str) -> bool {
        self.directory.has_configured_account(name)
    }

    /// Keys that were revoked on this gateway alone.
    pub(crate) fn local_revocations(&self) -> Option<&Arc<LocalRevocations>> {
        self.directory.local_revocations()
    }

    /// The ids of the keys of the store that an account has with this name.
    pub(crate) fn ids_named(&self, account: &str, name: &str) -> Vec<String> {
        let mut ids = Vec::new();
        self.directory.each_key(|key| {
            if key.account.stored_id.is_some() && key.account.name == account && &*key.name == name {
                ids.push(key.id.to_string());
            }
        });
        ids
    }

    fn reason_for_delay(&self) -> String {
        let facts = self.directory.feed_status().facts();
        match (facts.error, facts.origin) {
            (Some(error), _) => format!("this gateway cannot follow the store: {error}"),
            (None, KeysOrigin::Store) => {
                format!("this gateway has not read the change within {} seconds", APPLY_TIMEOUT.as_secs())
            }
            (None, KeysOrigin::Nothing | KeysOrigin::Copy) => {
                "this gateway is still loading accounts and keys".to_owned()
            }
        }
    }
}

impl CallersFeed {
    /// Starts the feed and waits until it has loaded the store, or has failed to do so for the first time.
    ///
    /// Only a store that a newer version has made is an error: a newer Chaingate is needed.
    pub fn start(
        config: FeedConfig,
        directory: Arc<Directory>,
        supervisor: &Supervisor,
        disk: DiskHealth,
    ) -> Result<Self, String> {
        let (wake, (rounds_sender, rounds)) =
            (Arc::new(Notify::new()), watch::channel(FeedRounds::default()));
        let (stop_sender, mut stop) = watch::channel(());
        let (first_sender, first) = sync_channel(1);
        directory.feed_status().update(|facts| {
            (facts.is_required, facts.age_max) = (config.is_required, config.copy_age_max);
        });
        directory.refuse_revoked_here(Arc::new(LocalRevocations::open(&config.data_dir)?));
        let copy = Arc::<CopyQueue>::default();
        let copy_ended = start_copy(&config, &directory, &copy, supervisor, disk)?;
        // Without it, revocations do not take effect.
        let when_down = if config.is_required { WhenDown::NotReady } else { WhenDown::Degraded };
        let task = supervisor.task("feed of accounts and keys", when_down);
        let feed =
            Feed::new(config, Arc::clone(&directory), Arc::clone(&copy), Arc::clone(&wake), rounds_sender);
        let listening = supervisor.task("notifications of the store", WhenDown::Degraded);
        let (store, woken) = (feed.store.clone(), Arc::clone(&wake));
        let (feed, status) = (Mutex::new(feed), Arc::clone(&directory));
        let failed = |error| format!("cannot start the feed of accounts and keys: {error}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let follow = move || {
            runtime.block_on(async {
                let start = || async { feed.lock().await.run(&first_sender).await };
                let notified = async {
                    listening.run(|| listen(store.clone(), Arc::clone(&woken))).await;
                    // It ends where the store has no notifications.
                    drop(listening);
                    pending::<()>().await;
                };
                tokio::select! {
                    // The sender goes away with the handle of the feed.
                    _ = stop.changed() => {}
                    () = task.run_with(start, || status.feed_status().record_panic()) => {}
                    () = notified => {}
                }
            });
        };
        thread::Builder::new().name("callers-feed".to_owned()).spawn(follow).map_err(failed)?;
        // Other failures are logged, and tried again.
        let result = first.recv_timeout(FIRST_LOAD_TIMEOUT);
        if let Ok(Err(failure @ StoreFailure::NewerVersion { .. })) = result {
            return Err(failure.to_string());
        }
        Ok(Self { handle: FeedHandle { wake, rounds, directory }, _stop: stop_sender, copy, copy_ended })
    }

    pub fn handle(&self) -> FeedHandle {
        self.handle.clone()
    }
}

impl Drop for CallersFeed {
    fn drop(&mut self) {
        self.copy.stop();
        // A disk that hangs must not keep the gateway from ending.
        let _hangs = self.copy_ended.recv_timeout(COPY_STOP_TIMEOUT);
    }
}

/// Starts the thread that writes the local copy. The returned channel is closed when the thread ends.
fn start_copy(
    config: &FeedConfig,
    directory: &Arc<Directory>,
    queue: &Arc<CopyQueue>,
    supervisor: &Supervisor,
    disk: DiskHealth,
) -> Result<Receiver<()>, String> {
    let path = copy_file::path(&config.data_dir);
    let mut copy = LocalCopy::new(path, Arc::clone(directory), Arc::clone(queue), disk);
    let task = supervisor.task("local copy of accounts and keys", WhenDown::Degraded);
    let (running, ended) = sync_channel(0);
    let run = move || {
        let _running: SyncSender<()> = running;
        task.run_blocking(|task| copy.run(task));
    };
    let thread = thread::Builder::new().name("callers-copy".to_owned());
    thread.spawn(run).map_err(|error| format!("cannot start the copy of accounts and keys: {error}"))?;
    Ok(ended)
}

/// How far changes were followed.
#[derive(Debug)]
struct FollowedChanges {
    positions: Positions,
    /// All changes up to this revision were applied.
    revision: i64,
    /// The newest change that rows of it may have been read of.
    seen: ChangeMark,
}

struct Feed {
    store: Store,
    applier: RowApplier,
    copy: Arc<CopyQueue>,
    copy_path: PathBuf,
    /// `None` before the first load.
    followed: Option<FollowedChanges>,
    load: Option<RunningLoad>,
    wake: Arc<Notify>,
    rounds: watch::Sender<FeedRounds>,
    uses_recorded_at: Instant,
    /// When a key that was revoked here is sent to the store again, after a failure.
    revocation_retry_at: Option<Instant>,
    /// Whether the local copy was tried; one try is enough, because nothing else changes it.
    is_copy_read: bool,
}

impl Feed {
    fn new(
        config: FeedConfig,
        directory: Arc<Directory>,
        copy: Arc<CopyQueue>,
        wake: Arc<Notify>,
        rounds: watch::Sender<FeedRounds>,
    ) -> Self {
        Self {
            store: Store::new(config.location),
            applier: RowApplier::new(directory, Arc::clone(&copy), config.plans, config.network),
            copy,
            copy_path: copy_file::path(&config.data_dir),
            followed: None,
            load: None,
            wake,
            rounds,
            uses_recorded_at: Instant::now(),
            revocation_retry_at: None,
            is_copy_read: false,
        }
    }

    /// Follows the store for ever. It begins with a load; what is in memory stays in use until everything is loaded. After a panic
    /// it begins anew.
    async fn run(&mut self, first: &SyncSender<Result<(), StoreFailure>>) {
        (self.followed, self.load) = (None, None);
        self.applier.give_up_load();
        let wake = Arc::clone(&self.wake);
        let mut next_round = tokio::time::Instant::now();
        loop {
            // Of what is ready, one is taken at random: neither changes nor a load wait until there are no others.
            tokio::select! {
                () = wake.notified() => {}
                () = sleep_until(next_round) => {}
                page = next_page(&mut self.load) => {
                    if !self.apply_page(page) {
                        continue;
                    }
                }
            }
            let result = self.round().await;
            let pause = if result.is_ok() { FEED_POLL_INTERVAL } else { FEED_RETRY_INTERVAL };
            next_round = tokio::time::Instant::now() + pause;
            if result.is_err() || self.is_loaded() {
                // Only the first result is waited for.
                let _unheard = first.try_send(result);
            }
        }
    }

    fn is_loaded(&self) -> bool {
        self.applier.directory().feed_status().facts().origin == KeysOrigin::Store
    }

    /// Follows the changes once, and does what is due besides.
    async fn round(&mut self) -> Result<(), StoreFailure> {
        self.applier.apply_changed_plans();
        self.rounds.send_modify(|rounds| rounds.begun += 1);
        let followed = self.follow().await;
        self.applier.directory().feed_status().record_progress();
        match followed {
            Ok(()) => {
                if self.applier.directory().stored().is_some() && self.applier.has_applied_all() {
                    self.rounds.send_modify(|rounds| rounds.applied = rounds.begun);
                }
                self.connected();
                self.send_local_revocation().await;
                self.record_uses().await;
                Ok(())
            }
            Err(failure) => {
                self.disconnected(&failure);
                self.use_copy();
                Err(failure)
            }
        }
    }

    /// Applies what has changed since the last time, and begins or finishes a load where one is due.
    async fn follow(&mut self) -> Result<(), StoreFailure> {
        self.applier.directory().set_minute(u32::try_from(unix_seconds() / 60).unwrap_or(0));
        // The tables may have to be brought up to date first, which can take longer than a question about changes.
        self.store.prepare().await?;
        let Some(followed) = &mut self.followed else { return self.begin_first_load(false).await };
        let history = within_bound(self.store.history(&followed.seen)).await?;
        if !history.has_seen {
            return self.load_another_history(&history).await;
        }
        if history.newest.revision != followed.revision {
            loop {
                let rows = followed.positions.next_changes(&self.store).await?;
                if rows.is_empty() {
                    break;
                }
                self.applier.apply(rows, RowSource::Change);
            }
            // The rows can be newer than the change that was the newest before.
            let after = within_bound(self.store.history(&history.newest)).await?;
            if !after.has_seen || followed.positions.revision() > after.newest.revision {
                return self.load_another_history(&after).await;
            }
            (followed.revision, followed.seen) = (history.newest.revision, after.newest);
        }
        if let Some(load) = self.load.as_mut().filter(|load| load.is_read) {
            // Its pages can be older than changes that took effect meanwhile.
            loop {
                let rows = load.changes.next_changes(&self.store).await?;
                if rows.is_empty() {
                    break;
                }
                self.applier.apply(rows, RowSource::Load);
            }
            self.finish_load();
        } else if self.load.is_none() && self.applier.needs_load() {
            let (newest, hash_key) = within_bound(self.store.newest_change()).await?;
            self.begin_load(&newest, hash_key, false);
        }
        self.report();
        Ok(())
    }

    /// Begins to load a store that lacks a change which was in effect here, or has forgotten it.
    async fn load_another_history(&mut self, history: &StoreHistory) -> Result<(), StoreFailure> {
        let (seen, newest) =
            (self.followed.as_ref().map(|followed| followed.seen.revision), history.newest.revision);
        if history.has_forgotten {
            tracing::warn!(
                store = %self.store.location(), seen, newest,
                "so many changes of accounts and keys were missed that the store has forgotten the first of them; loading everything"
            );
            return self.begin_first_load(false).await;
        }
        tracing::error!(
            store = %self.store.location(), seen, newest,
            "the store of accounts and keys lacks changes that were in effect here: a copy without them took its place, or a backup \
             was restored; loading what it has"
        );
        self.applier.directory().feed_status().update(|facts| facts.lost_histories += 1);
        self.begin_first_load(true).await
    }

    /// Begins to read a store of which nothing is in effect. What changes from now on takes effect at once, and the rest with the load.
    async fn begin_first_load(&mut self, has_lost_changes: bool) -> Result<(), StoreFailure> {
        let (newest, hash_key) = within_bound(self.store.newest_change()).await?;
        let positions = Positions::after(newest.revision);
        self.rounds.send_modify(|rounds| rounds.load_from = Some(newest.revision));
        self.begin_load(&newest, hash_key, has_lost_changes);
        self.followed = Some(FollowedChanges { positions, revision: newest.revision, seen: newest });
        Ok(())
    }

    /// Begins to read everything.
    fn begin_load(&mut self, newest: &ChangeMark, hash_key: HashKey, has_lost_changes: bool) {
        let has_lost_changes = has_lost_changes || self.load.take().is_some_and(|load| load.has_lost_changes);
        self.applier.begin_load(hash_key);
        self.load = Some(RunningLoad::start(self.store.clone(), newest.revision, has_lost_changes));
    }

    /// Applies a page of the load. Returns whether a round is due, because the load has ended.
    fn apply_page(&mut self, page: Option<Result<Vec<apply::StoredRow>, StoreFailure>>) -> bool {
        match page {
            Some(Ok(rows)) => {
                self.applier.apply(rows, RowSource::Load);
                return false;
            }
            Some(Err(failure)) => {
                self.load = None;
                self.applier.give_up_load();
                self.disconnected(&failure);
                self.use_copy();
                return false;
            }
            None => {
                if let Some(load) = &mut self.load {
                    load.is_read = true;
                }
            }
        }
        true
    }

    /// Makes the loaded rows effective. The history of the store was compared after its last row was read.
    fn finish_load(&mut self) {
        let Some(load) = self.load.take() else { return };
        self.applier.finish_load(load.has_lost_changes);
        // A copy without a time would be too old for a start without the store.
        self.copy.set_followed_at(unix_seconds());
        self.copy.replace_all();
        self.rounds.send_modify(|rounds| rounds.load_from = None);
        self.applier.directory().feed_status().update(|facts| facts.origin = KeysOrigin::Store);
        self.report();
        let facts = self.applier.directory().feed_status().facts();
        let ms = load.started.elapsed().as_millis();
        tracing::info!(
            store = %self.store.location(), accounts = facts.accounts, keys = facts.keys, ms,
            "accounts and keys loaded"
        );
    }

    /// Uses the local copy if nothing is in memory.
    fn use_copy(&mut self) {
        let facts = self.applier.directory().feed_status().facts();
        if facts.origin != KeysOrigin::Nothing || self.is_copy_read {
            return;
        }
        self.is_copy_read = true;
        // The rows of a load that is not finished would get lost between those of the copy. The next round begins another one.
        (self.followed, self.load) = (None, None);
        match read_copy(&self.copy_path, &mut self.applier) {
            Ok(Some(followed_at)) if facts.is_too_old(followed_at) => {
                self.applier.give_up_load();
                self.applier.directory().feed_status().update(|facts| facts.followed_at = Some(followed_at));
                tracing::error!(
                    age_seconds = unix_seconds().abs_diff(followed_at),
                    "the local copy of accounts and keys is older than [store] copy_age_max_s and is not used: keys in it may have been \
                     revoked; waiting for the store"
                );
            }
            Ok(Some(followed_at)) => {
                self.applier.finish_load(false);
                self.copy.set_followed_at(followed_at);
                self.applier.directory().feed_status().update(|facts| {
                    (facts.origin, facts.followed_at) = (KeysOrigin::Copy, Some(followed_at));
                });
                self.report();
                let facts = self.applier.directory().feed_status().facts();
                let (accounts, keys) = (facts.accounts, facts.keys);
                tracing::warn!(accounts, keys, "the local copy of accounts and keys is used");
            }
            Ok(None) => tracing::warn!("there is no local copy of accounts and keys; waiting for the store"),
            Err(error) => {
                self.applier.give_up_load();
                tracing::error!(%error, "the local copy of accounts and keys cannot be used; waiting for the store");
            }
        }
    }

    /// Sends one key that was revoked on this gateway to the store; changes of others have their turn before the next one.
    async fn send_local_revocation(&mut self) {
        if self.revocation_retry_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        let Some(revoked) = self.applier.directory().local_revocations() else { return };
        let Some((id, revocation)) = revoked.first_unsent() else { return };
        match within_bound(Box::pin(revoke_in_store(&self.store, &id, &revocation))).await {
            Ok(is_known) => {
                revoked.sent(&id);
                tracing::info!(
                    key = id,
                    is_known,
                    "a key that was revoked on this gateway is revoked in the store"
                );
                self.wake.notify_one();
            }
            Err(error) => {
                self.revocation_retry_at = Some(Instant::now() + REVOCATION_RETRY_INTERVAL);
                tracing::warn!(%error, key = id, "cannot revoke in the store a key that was revoked here; trying again");
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
            ids => within_bound(self.store.record_key_uses(ids, unix_seconds())).await,
        };
        if let Err(error) = &recorded {
            tracing::warn!(%error, "cannot store when keys were used last; trying again");
            directory.put_back_used(used);
        }
        if recorded.is_err() || !others_wait {
            self.uses_recorded_at = Instant::now();
        }
    }

    /// Shows what is in effect.
    fn report(&self) {
        let (accounts, keys, bad_rows) = self.applier.counts();
        let revision = self.followed.as_ref().map_or(0, |followed| followed.revision);
        self.applier.directory().feed_status().update(|facts| {
            (facts.accounts, facts.keys) = (accounts, keys);
            (facts.bad_rows, facts.revision) = (bad_rows, revision);
        });
    }

    fn connected(&self) {
        let now = unix_seconds();
        // While another history is loaded, not all of memory is what the store says.
        let is_loaded = self.is_loaded() && self.rounds.borrow().load_from.is_none();
        self.applier.directory().feed_status().update(|facts| {
            if !facts.is_connected {
                if facts.error.is_some() {
                    tracing::info!("the store of accounts and keys can be reached again");
                }
                (facts.is_connected, facts.since, facts.error) = (true, Some(Instant::now()), None);
            }
            if is_loaded {
                facts.followed_at = Some(now);
            }
        });
        if is_loaded {
            self.copy.set_followed_at(now);
        }
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

/// Revokes a key in the store that was revoked on this gateway. Returns whether the store knows the key.
async fn revoke_in_store(
    store: &Store,
    id: &str,
    revocation: &LocalRevocation,
) -> Result<bool, StoreFailure> {
    let mut change = store.begin_change().await?;
    let Some(mut key) = change.key(id).await? else { return Ok(false) };
    if key.status == KeyStatus::Active {
        key.status = KeyStatus::Revoked;
        change.update_key(&key).await?;
        let entry = AuditRecord {
            id: 0,
            at: unix_seconds(),
            actor: revocation.actor.clone(),
            action: "key.revoke".to_owned(),
            subject: id.to_owned(),
            details: serde_json::json!({ "revoked_locally_at": revocation.at }).to_string(),
        };
        change.add_audit_entry(&entry).await?;
        change.commit().await?;
    }
    Ok(true)
}

/// Waits for a question about changes no longer than [`FEED_STORE_TIMEOUT`].
async fn within_bound<T>(question: impl Future<Output = Result<T, StoreFailure>>) -> Result<T, StoreFailure> {
    match timeout(FEED_STORE_TIMEOUT, question).await {
        Ok(answer) => answer,
        Err(_) => Err(StoreFailure::Unavailable(format!("no answer within {FEED_STORE_TIMEOUT:?}"))),
    }
}

/// The next page of the load; waits for ever if none is read.
async fn next_page(load: &mut Option<RunningLoad>) -> Option<Result<Vec<apply::StoredRow>, StoreFailure>> {
    match load {
        Some(load) if !load.is_read => load.next().await,
        _ => pending().await,
    }
}

/// Wakes the feed when the store announces a change. Without notifications, polling finds the changes.
async fn listen(store: Store, wake: Arc<Notify>) {
    loop {
        match store.listen().await {
            Ok(Some(mut listener)) => {
                let listening = async {
                    while listener.changed().await.is_ok() {
                        wake.notify_one();
                    }
                };
                let _opened_again = timeout(LISTEN_TIME_MAX, listening).await;
            }
            // SQLite has no notifications.
            Ok(None) => return,
            Err(_) => {}
        }
        sleep(LISTEN_RETRY_INTERVAL).await;
    }
}
