use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callers::administration::{Administration, KeyCreation, NewKey};
use callers::{CallersFeed, CurrentPlans, Directory, FeedConfig, Plans};
use resources::{DiskHealth, Supervisor};
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use store::{Store, StoreLocation};
use tempfile::TempDir;

/// How long an event is waited for on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The data directory of a gateway, with a store in it.
pub(crate) struct Place {
    folder: TempDir,
    /// Knows the tasks of this gateway.
    pub(crate) supervisor: Supervisor,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), supervisor: Supervisor::default() }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn location(&self) -> StoreLocation {
        StoreLocation::in_data_dir(self.folder.path())
    }

    /// Changes the store without a gateway that runs.
    pub(crate) fn administration(&self) -> Administration {
        Administration::new(Store::new(self.location()), Plans::default())
    }

    /// A directory that follows the store for the network `demo`.
    pub(crate) fn follow(&self) -> (CallersFeed, Arc<Directory>) {
        self.follow_store(self.location(), None)
    }

    /// A directory that follows a store, with its files in the data directory.
    pub(crate) fn follow_store(
        &self,
        location: StoreLocation,
        copy_age_max: Option<Duration>,
    ) -> (CallersFeed, Arc<Directory>) {
        let directory = Arc::new(Directory::new(&[]));
        let config = FeedConfig {
            location,
            data_dir: self.folder.path().to_owned(),
            plans: CurrentPlans::default(),
            network: "demo".to_owned(),
            is_required: true,
            copy_age_max,
        };
        let disk = DiskHealth::new(self.folder.path());
        let feed = CallersFeed::start(config, Arc::clone(&directory), &self.supervisor, disk);
        (feed.unwrap(), directory)
    }

    /// Executes statements on the file, as an operator with a tool for SQLite could.
    pub(crate) async fn execute(&self, statements: &'static str) {
        let options = SqliteConnectOptions::new().filename(self.file("callers.sqlite"));
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql(statements).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Makes the store unreachable.
    pub(crate) fn hide_store(&self) {
        self.rename("callers.sqlite", "hidden");
        std::fs::create_dir(self.file("callers.sqlite")).unwrap();
    }

    pub(crate) fn show_store(&self) {
        std::fs::remove_dir(self.file("callers.sqlite")).unwrap();
        self.rename("hidden", "callers.sqlite");
    }

    /// Renames the database and the files beside it, which contain the newest changes.
    fn rename(&self, from: &str, to: &str) {
        for suffix in ["-wal", "-shm"] {
            let _absent =
                std::fs::rename(self.file(&format!("{from}{suffix}")), self.file(&format!("{to}{suffix}")));
        }
        std::fs::rename(self.file(from), self.file(to)).unwrap();
    }
}

pub(crate) fn creation(account: &str, name: &str) -> KeyCreation {
    KeyCreation { account: account.to_owned(), name: name.to_owned(), ..KeyCreation::default() }
}

/// An account on the plan `team` with one key.
pub(crate) async fn account_with_key(administration: &Administration, account: &str) -> NewKey {
    administration.create_account("test", account, "team").await.unwrap();
    administration.create_key("test", &creation(account, "first")).await.unwrap().made
}

pub(crate) fn run<T>(story: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(story)
}

/// Waits until something is true.
pub(crate) fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_true() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
