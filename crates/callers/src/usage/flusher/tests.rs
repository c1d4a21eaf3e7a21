//! The flusher with a SQLite store.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;

use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use store::{StoreLocation, UsageCounts, UsageGroup, UsageQuery, UsageRow};
use tempfile::TempDir;

use super::*;
use crate::instance_id::InstanceId;
use crate::usage::entry::ENTRY_ROWS_MAX;
use crate::usage::spool::SpoolId;

/// How long an event is waited for on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

const UNLIMITED: u64 = u64::MAX;

/// A data directory with a store.
struct Place {
    folder: TempDir,
    spool: Arc<ProcessSpool>,
    recorder: Arc<UsageRecorder>,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let spool = Arc::new(ProcessSpool::new(usage_dir(folder.path()), InstanceId::random()));
        Self { folder, spool, recorder: Arc::new(UsageRecorder::new(1)) }
    }

    fn store(&self) -> Store {
        Store::new(StoreLocation::in_data_dir(self.folder.path()))
    }

    fn flusher(&self) -> Flusher {
        Flusher::new(FlusherConfig {
            store: self.store(),
            spool: Arc::clone(&self.spool),
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
            by: [].into(),
        };
        self.store().usage(&query, 1).await.unwrap()[0].counts.calls
    }

    async fn execute(&self, statement: &'static str) {
        let options = SqliteConnectOptions::new().filename(self.folder.path().join("callers.sqlite"));
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
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
        let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON usage_hours WHEN NEW.account = 'refused' \
                      BEGIN SELECT RAISE(ABORT, 'refused'); END";
        place.execute(refuse).await;
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
            run(flusher.run(stopped));
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
    let Place { folder, spool, recorder } = place;
    // The lock of the spool ends with its process.
    drop(spool);
    let place = Place { folder, recorder, ..Place::new() };
    run(async {
        let now = Clock::default().unix_seconds();
        assert!(flush_left_over(&place.store(), place.folder.path(), now).await.unwrap().is_empty());
        assert_eq!(place.stored("now").await, entries * ENTRY_ROWS_MAX as u64);
    });
}
