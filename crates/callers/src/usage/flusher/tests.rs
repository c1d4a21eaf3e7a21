//! The flusher with a SQLite store.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use resources::{DiskHealth, Supervisor, WhenDown};
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use store::{StoreLocation, UsageCounts, UsageGroup, UsageQuery, UsageRow};
use tempfile::TempDir;

use super::*;
use crate::PartnerCalls;
use crate::directory::Directory;
use crate::instance_id::InstanceId;
use crate::key_rules::KeyRules;
use crate::plans::Plans;
use crate::static_key::StaticKey;
use crate::usage::entry::ENTRY_ROWS_MAX;
use crate::usage::outcome::Outcome;
use crate::usage::recorder::{CallUsage, UsageMethod};
use crate::usage::spool::SpoolId;

/// How long an event is waited for on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

const UNLIMITED: u64 = u64::MAX;

/// From now on the store refuses the usage of one account.
const REFUSE: &str = "CREATE TRIGGER refuse BEFORE INSERT ON usage_hours WHEN NEW.account = 'refused' \
                      BEGIN SELECT RAISE(ABORT, 'refused'); END";

/// A data directory with a store.
struct Place {
    folder: TempDir,
    spool: Arc<ProcessSpool>,
    recorder: Arc<UsageRecorder>,
    memory: Arc<MemoryQueue>,
}

impl Place {
    fn new() -> Self {
        Self::with_spool_of(UNLIMITED)
    }

    fn with_spool_of(bytes_max: u64) -> Self {
        let folder = TempDir::new().unwrap();
        let spool = Arc::new(ProcessSpool::new(usage_dir(folder.path()), InstanceId::random()));
        let recorder = Arc::new(UsageRecorder::new(1));
        let memory = Arc::new(MemoryQueue::new(
            Arc::clone(&recorder),
            Arc::clone(&spool),
            bytes_max,
            DiskHealth::new(folder.path()),
        ));
        Self { folder, spool, recorder, memory }
    }

    /// The disk is full: nothing can be created where the spool would be.
    fn fill_disk(&self) {
        fs::write(usage_dir(self.folder.path()), "not a folder").unwrap();
    }

    /// Does the same as the collector with a call of an account, whether or not the spool takes it.
    fn collect(&self, account: &str) {
        self.memory.add([row(account)]);
        let _refused = self.memory.write_to_spool();
    }

    fn lost_calls(&self) -> u64 {
        self.recorder.ledger().lost_calls.load(Relaxed)
    }

    /// Runs a flusher that is told to stop before it has done anything.
    async fn stop(&self) {
        let (stop, stopped) = oneshot::channel();
        stop.send(()).unwrap();
        let task = Supervisor::default().task("flusher of usage", WhenDown::Degraded);
        self.flusher().run(&task, stopped).await;
    }

    fn store(&self) -> Store {
        Store::new(StoreLocation::in_data_dir(self.folder.path()))
    }

    fn flusher(&self) -> Flusher {
        Flusher::new(FlusherConfig {
            store: self.store(),
            spool: Arc::clone(&self.spool),
            memory: Arc::clone(&self.memory),
            recorder: Arc::clone(&self.recorder),
            settings: UsageSettings::default(),
            on_day_credits: Box::new(|_| {}),
        })
    }

    /// The folder of an earlier process that has left over one call of an account.
    fn leave_over(&self, epoch: u64, account: &str) -> PathBuf {
        let id = SpoolId { instance: InstanceId::parse("00000000000000aa").unwrap(), epoch };
        let spool = Spool::create(&usage_dir(self.folder.path()), id).unwrap();
        spool.append(&[row(account)], UNLIMITED).unwrap();
        spool.folder().to_owned()
    }

    fn use_now(&self, account: &str) {
        self.spool.get_or_create().unwrap().append(&[row(account)], UNLIMITED).unwrap();
    }

    /// How many calls of an account are in the store.
    async fn stored(&self, account: &str) -> u64 {
        let query = UsageQuery {
            step: UsageStep::Day,
            since: 0,
            until: u64::MAX,
            account: Some(account.to_owned()),
            key: None,
            network: None,
            tag: None,
            by: [].into(),
            accounts: None,
            keys: None,
        };
        self.store().usage(&query, 1).await.unwrap()[0].counts.calls
    }

    async fn execute(&self, statement: &'static str) {
        let options = SqliteConnectOptions::new().filename(self.folder.path().join("callers.sqlite"));
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// The number that a statement returns.
    async fn count(&self, statement: &'static str) -> i64 {
        let options = SqliteConnectOptions::new().filename(self.folder.path().join("callers.sqlite"));
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        let (count,) = sqlx::query_as(statement).fetch_one(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        count
    }

    fn is_store_failing(&self) -> bool {
        self.recorder.ledger().is_store_failing.load(Relaxed)
    }
}

fn row(account: &str) -> UsageRow {
    let text = |text: &str| text.into();
    let group = UsageGroup {
        starts_at: Clock::default().unix_seconds() / 60 * 60,
        network: text("demo"),
        account: text(account),
        key: text("static:k"),
        method: text("eth_chainId"),
        outcome: text("ok"),
        tag: text(""),
    };
    UsageRow { group, counts: UsageCounts { calls: 1, credits: 5, ..UsageCounts::default() } }
}

fn run<T>(story: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(story)
}

/// The folder of a killed gateway had another file, and could not be removed. From then on nothing was stored any more.
#[test]
fn a_left_over_folder_with_another_file_does_not_stop_usage() {
    let place = Place::new();
    let folder = place.leave_over(1, "before");
    fs::write(folder.join("other"), "").unwrap();
    run(async {
        let mut flusher = place.flusher();
        for calls in 1..=3 {
            place.use_now("now");
            flusher.look_for_left_over_at = Instant::now();
            flusher.flush().await;
            assert_eq!((place.stored("now").await, place.stored("before").await), (calls, 1));
            assert!(!place.is_store_failing());
        }
        assert_eq!(flusher.left_over.len() + flusher.failed.len(), 0);
    });
}

/// One row that the database refused, in the spool of an earlier process, kept all usage from being stored.
#[test]
fn left_over_usage_that_the_store_refuses_does_not_stop_other_usage() {
    let place = Place::new();
    place.leave_over(1, "refused");
    place.leave_over(2, "before");
    run(async {
        place.store().prepare().await.unwrap();
        place.execute(REFUSE).await;
        let mut flusher = place.flusher();
        for calls in 1..=2 {
            place.use_now("now");
            flusher.flush().await;
            assert_eq!((place.stored("now").await, place.stored("before").await), (calls, 1));
            assert!(!place.is_store_failing());
        }
        let ledger = place.recorder.ledger();
        assert_eq!(ledger.flush_failures.load(Relaxed), 1, "it is not tried again at once");
        assert!(ledger.left_over_bytes.load(Relaxed) > 0);
        place.execute("DROP TRIGGER refuse").await;
        flusher.look_for_left_over_at = Instant::now();
        flusher.flush().await;
        assert_eq!(place.stored("refused").await, 1);
        assert_eq!(ledger.left_over_bytes.load(Relaxed), 0);
    });
}

/// One folder that could not be read kept `chaingate keys usage` from reporting anything.
#[test]
fn a_command_moves_what_it_can_and_names_the_rest() {
    let place = Place::new();
    let unreadable = place.leave_over(1, "unreadable");
    fs::remove_dir_all(&unreadable).unwrap();
    fs::write(&unreadable, "not a folder").unwrap();
    place.leave_over(2, "before");
    run(async {
        let now = Clock::default().unix_seconds();
        let failures = flush_left_over(&place.store(), place.folder.path(), now).await.unwrap();
        assert_eq!(place.stored("before").await, 1);
        let [failure] = failures.as_slice() else { panic!("{failures:?}") };
        assert!(failure.to_string().starts_with(&format!("usage stays in {}: ", unreadable.display())));
    });
}

/// An entry with the most rows; three entries that follow each other have no group in common.
fn long_entry(number: u64) -> Vec<UsageRow> {
    let first = number % 4 * ENTRY_ROWS_MAX as u64;
    let rows = first..first + ENTRY_ROWS_MAX as u64;
    rows.map(|key| {
        let UsageRow { group, counts } = row("now");
        UsageRow { group: UsageGroup { key: format!("static:{key}").into(), ..group }, counts }
    })
    .collect()
}

/// The end of the process waited until everything was stored: twenty minutes after hours without the store. Here a batch never
/// has everything, and what it had is written anew before it is stored.
#[test]
fn a_stop_does_not_wait_until_everything_is_stored() {
    let place = Place::new();
    let spool = place.spool.get_or_create().unwrap();
    spool.append(&long_entry(0), UNLIMITED).unwrap();
    let bytes_max = 6 * spool.waiting_bytes();
    let mut entries = 1;
    while spool.append(&long_entry(entries), bytes_max).is_ok() {
        entries += 1;
    }
    let flusher = place.flusher();
    let (stop, stopped) = oneshot::channel();
    let (ended_sender, ended) = mpsc::sync_channel(1);
    let is_over = AtomicBool::new(false);
    let entries = thread::scope(|scope| {
        scope.spawn(move || {
            run(flusher.run(&Supervisor::default().task("flusher", WhenDown::Degraded), stopped));
            ended_sender.send(()).unwrap();
        });
        let writer = scope.spawn(|| {
            while !is_over.load(Relaxed) {
                match spool.append(&long_entry(entries), bytes_max) {
                    Ok(()) => entries += 1,
                    Err(_) => thread::yield_now(),
                }
            }
            entries
        });
        while place.recorder.ledger().flushes.load(Relaxed) == 0 {
            thread::yield_now();
        }
        stop.send(()).unwrap();
        let has_ended = ended.recv_timeout(TIMEOUT).is_ok();
        is_over.store(true, Relaxed);
        assert!(has_ended, "the flusher goes on");
        writer.join().unwrap()
    });
    assert!(place.spool.get().unwrap().waiting_bytes() > 0);
    let Place { folder, spool, memory, .. } = place;
    // The lock of the spool ends with its process.
    drop((spool, memory));
    let place = Place { folder, ..Place::new() };
    run(async {
        let now = Clock::default().unix_seconds();
        assert!(flush_left_over(&place.store(), place.folder.path(), now).await.unwrap().is_empty());
        assert_eq!(place.stored("now").await, entries * ENTRY_ROWS_MAX as u64);
    });
}

/// A store that was well got nothing while the disk was full.
#[test]
fn usage_reaches_the_store_from_memory_while_the_disk_is_full() {
    let place = Place::new();
    place.fill_disk();
    run(async {
        let mut flusher = place.flusher();
        for calls in 1..=3 {
            place.collect("now");
            flusher.flush().await;
            assert_eq!(place.stored("now").await, calls);
        }
        let ledger = place.recorder.ledger();
        assert_eq!((place.lost_calls(), ledger.memory_bytes.load(Relaxed)), (0, 0));
    });
}

/// The usage of 3,802 of 7,500 calls was gone after an orderly stop with a full disk, and the log said that it stays on disk.
#[test]
fn a_stop_with_a_full_disk_moves_usage_from_memory_to_the_store() {
    let place = Place::new();
    place.fill_disk();
    place.collect("now");
    run(async {
        place.stop().await;
        assert_eq!((place.stored("now").await, place.lost_calls()), (1, 0));
    });
}

/// The same happened at `spool_bytes_max`: what was in memory was not moved, although what was on disk was.
#[test]
fn a_stop_with_a_full_spool_moves_usage_from_memory_and_disk_to_the_store() {
    let place = Place::with_spool_of(1);
    place.use_now("disk");
    place.collect("memory");
    run(async {
        place.stop().await;
        assert_eq!((place.stored("disk").await, place.stored("memory").await), (1, 1));
        assert_eq!(place.lost_calls(), 0);
    });
}

/// Usage that neither the store nor the disk takes is counted as lost.
#[test]
fn what_is_lost_at_a_stop_is_counted() {
    let place = Place::new();
    place.fill_disk();
    place.collect("refused");
    run(async {
        place.store().prepare().await.unwrap();
        place.execute(REFUSE).await;
        place.stop().await;
        assert_eq!(place.lost_calls(), 1);
    });
}

/// The store had taken a batch, but its reply was lost. The batch was sent again, after more calls had been counted.
#[test]
fn usage_of_memory_counts_once_although_a_reply_is_lost() {
    let place = Place::new();
    place.fill_disk();
    run(async {
        place.collect("now");
        let batch = place.memory.next_batch().unwrap();
        let now = Clock::default().unix_seconds();
        place.store().add_usage(&batch.flush(), now).await.unwrap();
        place.collect("now");
        let mut flusher = place.flusher();
        flusher.flush().await;
        assert_eq!(place.stored("now").await, 2);
    });
}

/// A batch was sent, and nobody knows whether it is stored. The disk has room again, and takes only what was counted since.
#[test]
fn a_batch_that_was_sent_from_memory_is_not_written_to_the_spool() {
    let place = Place::new();
    place.fill_disk();
    place.collect("now");
    let batch = place.memory.next_batch().unwrap();
    fs::remove_file(usage_dir(place.folder.path())).unwrap();
    place.collect("later");
    run(async {
        place.store().add_usage(&batch.flush(), Clock::default().unix_seconds()).await.unwrap();
        let mut flusher = place.flusher();
        flusher.flush().await;
        assert_eq!((place.stored("now").await, place.stored("later").await), (1, 1));
        assert_eq!(place.recorder.ledger().spooled_calls.load(Relaxed), 1);
    });
}

/// One row that the store refused kept old usage in the store for ever, and daily limits from being known.
#[test]
fn old_usage_is_deleted_although_the_store_refuses_new_usage() {
    let place = Place::new();
    place.use_now("before");
    run(async {
        let mut flusher = place.flusher();
        flusher.flush().await;
        place.execute("UPDATE usage_minutes SET starts_at = 0").await;
        place.execute(REFUSE).await;
        place.use_now("refused");
        flusher.keep_up_at = Instant::now();
        flusher.flush().await;
        assert!(place.is_store_failing());
        let minutes = "SELECT COUNT(*) FROM usage_minutes";
        assert_eq!(place.count(minutes).await, 0);
    });
}

/// A gateway with a key that may use 10,000 credits a day, and a partner that may be called five times a day.
struct Gateway {
    place: Place,
    directory: Arc<Directory>,
    partner: Arc<PartnerCalls>,
    flusher: Flusher,
}

impl Gateway {
    fn start(store: Store) -> Self {
        let place = Place::new();
        place.recorder.start();
        let rules = KeyRules { credits_per_day: Some(CREDITS_PER_DAY), ..KeyRules::default() };
        let settings = rules.compile(None, "demo").unwrap().map(Arc::new);
        let (plan, text) = (Plans::default().named("custom").unwrap().clone(), str::to_owned);
        let key = StaticKey { key: "k1".into(), name: text("n"), account: text("acme"), plan, settings };
        let directory = Arc::new(Directory::new(&[key]));
        let partner = Arc::new(PartnerCalls::new("acme", 5, Arc::clone(&place.recorder)));
        let raised = (Arc::clone(&directory), Arc::clone(&partner));
        let on_day_credits: OnDayCredits = Box::new(move |credits| {
            credits.raise_used(&raised.0);
            raised.1.raise_used(credits);
        });
        let flusher = Flusher::new(FlusherConfig { store, on_day_credits, ..place.flusher().config });
        Self { place, directory, partner, flusher }
    }

    fn take(&self, calls: u64) -> bool {
        self.partner.take(calls, Clock::default().unix_seconds())
    }

    /// Uses credits of the key. Returns whether they were granted.
    fn take_credits(&self, credits: u64) -> bool {
        let (key, clock) = (self.directory.find(b"k1").unwrap(), Clock::default());
        let limits = key.settings.as_deref().unwrap().credit_limits();
        let is_granted = limits.take(clock.now(), || clock.unix_seconds(), credits).is_ok();
        if is_granted {
            let (method, outcome, latency) = (UsageMethod::Other, Outcome::Ok, Duration::ZERO);
            let usage = CallUsage { method, outcome, calls: 1, credits, bytes_in: 1, bytes_out: 1, latency };
            self.place.recorder.shard(0).record(&key, None, usage);
        }
        is_granted
    }

    /// Collects and stores what was used, and passes on what the store says, as every second.
    async fn flush(&mut self) {
        let minute = Clock::default().unix_seconds() / 60 * 60;
        self.place.memory.add(self.place.recorder.take(minute, &"demo".into()));
        self.place.memory.write_to_spool().unwrap();
        self.flusher.flush().await;
        assert!(!self.place.is_store_failing());
    }
}

const CREDITS_PER_DAY: u64 = 10_000;

/// The calls to a partner cost money, and each restart granted those of the day again.
#[test]
fn a_restart_does_not_grant_the_calls_of_a_partner_again() {
    let shared = Place::new();
    run(async {
        let mut before = Gateway::start(shared.store());
        assert!(before.take(3));
        before.flush().await;
        let mut after = Gateway::start(shared.store());
        after.flush().await;
        assert_eq!((after.take(3), after.take(2)), (false, true));
        assert_eq!(shared.stored("").await, 0, "they are no usage of an account");
    });
}

/// Each gateway granted the calls of the day for itself.
#[test]
fn gateways_with_one_store_do_not_grant_the_calls_of_a_partner_each() {
    let shared = Place::new();
    run(async {
        let (mut one, mut other) = (Gateway::start(shared.store()), Gateway::start(shared.store()));
        one.flush().await;
        other.flush().await;
        assert!(one.take(3));
        one.flush().await;
        assert!(other.take(1));
        other.flush().await;
        assert_eq!((other.take(2), other.take(1)), (false, true));
    });
}

/// A day that is used up ends on all gateways within the credits of two seconds.
#[test]
fn gateways_with_one_store_share_the_credits_of_a_day() {
    const CALL: u64 = 10;
    const CALLS_PER_SECOND: u64 = 30;
    let shared = Place::new();
    run(async {
        let mut gateways: Vec<_> = (0..3).map(|_| Gateway::start(shared.store())).collect();
        let used_per_second = 3 * CALLS_PER_SECOND * CALL;
        let mut granted = 0;
        for _second in 0..CREDITS_PER_DAY / used_per_second + 5 {
            for gateway in &gateways {
                granted += (0..CALLS_PER_SECOND).filter(|_| gateway.take_credits(CALL)).count() as u64 * CALL;
            }
            for gateway in &mut gateways {
                gateway.flush().await;
            }
        }
        assert!((CREDITS_PER_DAY..=CREDITS_PER_DAY + 2 * used_per_second).contains(&granted), "{granted}");
        assert!(gateways.iter().all(|gateway| !gateway.take_credits(CALL)));
        // A gateway that was started later knows it, too, as soon as it has read the store.
        let mut later = Gateway::start(shared.store());
        later.flush().await;
        assert!(!later.take_credits(CALL));
    });
}
