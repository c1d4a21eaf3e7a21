//! Opens a database: file permissions, connections, time limits and migrations.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::error::DatabaseError;
use sqlx::pool::PoolConnectionMetadata;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::time::{Instant, timeout};

use crate::backend::{BackendPool, BackendTransaction, OnBackend};
use crate::failure::StoreFailure;
use crate::location::{LocationKind, StoreLocation};
use crate::migrations::{MIGRATIONS, migrate};
use crate::operation_timeout::within_timeout;
use crate::policy::{
    ACQUIRE_TIMEOUT, ALIVE_TIMEOUT, BUSY_PAUSE, BUSY_TIMEOUT, CONNECTIONS_MAX, IDLE_TIMEOUT,
    MIGRATION_TIMEOUT,
};

/// How long PostgreSQL may work on one statement, wait for a lock, keep a transaction whose owner is gone, and keep a connection
/// whose other end is silent: its locks would stop all changes. Notices are switched off, because `sqlx` logs them. These are
/// not parameters of the connection, which PgBouncer refuses.
const SESSION_SETTINGS: &str = "SET statement_timeout = '10s'; SET lock_timeout = '5s'; \
                                SET idle_in_transaction_session_timeout = '30s'; \
                                SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; \
                                SET tcp_keepalives_count = 3; SET client_min_messages = warning";

/// Code of SQLite for a file that is locked; the higher bits of an extended code tell the details.
const SQLITE_BUSY: u32 = 5;

/// The connections of a pool that were opened before some moment, and are not used again.
#[derive(Clone, Debug, Default)]
struct OldConnections {
    opened_before: Arc<Mutex<Option<Instant>>>,
}

impl OldConnections {
    /// From now on, all connections that are open now are old.
    fn add_all(&self) {
        *self.opened_before.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn contain(&self, connection: &PoolConnectionMetadata) -> bool {
        let opened_before = *self.opened_before.lock().unwrap_or_else(PoisonError::into_inner);
        opened_before.is_some_and(|moment| connection.age > moment.elapsed())
    }
}

/// Connects to the database and brings its tables up to date.
pub(crate) async fn open(location: &StoreLocation) -> Result<BackendPool, StoreFailure> {
    let pool = connect(location).await?;
    let mut transaction = within_timeout(begin(&pool)).await?;
    let migrated = timeout(MIGRATION_TIMEOUT, migrate(&mut transaction, MIGRATIONS)).await;
    let unanswered = |_| StoreFailure::Unavailable(format!("no answer within {MIGRATION_TIMEOUT:?}"));
    migrated.map_err(unanswered)??;
    within_timeout(commit(transaction)).await?;
    Ok(pool)
}

/// Connects to the database. A file that does not exist is created.
pub(crate) async fn connect(location: &StoreLocation) -> Result<BackendPool, StoreFailure> {
    match &location.kind {
        LocationKind::Sqlite(file) => within_timeout(open_sqlite(file)).await,
        LocationKind::Postgres(options) => open_postgres(options).await,
    }
}

/// Begins a transaction. For SQLite it has the right to write from the start, so that it cannot fail half-way because
/// another process writes.
pub(crate) async fn begin(pool: &BackendPool) -> Result<BackendTransaction, StoreFailure> {
    Ok(match pool {
        OnBackend::Sqlite(pool) => OnBackend::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
        OnBackend::Postgres(pool) => OnBackend::Postgres(pool.begin().await?),
    })
}

pub(crate) async fn commit(transaction: BackendTransaction) -> Result<(), StoreFailure> {
    match transaction {
        OnBackend::Sqlite(transaction) => transaction.commit().await?,
        OnBackend::Postgres(transaction) => transaction.commit().await?,
    }
    Ok(())
}

async fn open_sqlite(file: &Path) -> Result<BackendPool, StoreFailure> {
    create_private(file)
        .map_err(|error| StoreFailure::Unavailable(format!("{}: {error}", file.display())))?;
    let options = SqliteConnectOptions::new()
        .filename(file)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging();
    let (old, opened) = (OldConnections::default(), Arc::new(Mutex::new(inode(file))));
    let path: Arc<Path> = Arc::from(file);
    let pool = SqlitePoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(IDLE_TIMEOUT)
        // The file can be replaced by a backup. The connections of before have the deleted file, and would read and write it for ever.
        .before_acquire(move |_, connection| {
            let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
            let found = inode(&path);
            if *opened != found {
                *opened = found;
                old.add_all();
            }
            let is_new = !old.contain(&connection);
            Box::pin(async move { Ok(is_new) })
        });
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match pool.clone().connect_with(options.clone()).await {
            Ok(pool) => return Ok(OnBackend::Sqlite(pool)),
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Distinguishes a file from another one with the same path; `None` if there is none.
fn inode(file: &Path) -> Option<(u64, u64)> {
    fs::metadata(file).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Whether another process has locked the file. SQLite waits for it by itself, but not while it changes a new file to
/// write-ahead logging, which only one of several processes that start together can do.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xff == SQLITE_BUSY)
}

/// Creates the file so that only its owner can read it; SQLite gives the same permissions to the files beside it.
///
/// A file that exists is never opened here: to close it would drop the locks that other connections of this process hold on
/// it, and another process could take the files of the running gateway away.
pub(crate) fn create_private(file: &Path) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    match OpenOptions::new().create_new(true).write(true).mode(0o600).open(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created.map(drop),
    }
}

async fn open_postgres(options: &PgConnectOptions) -> Result<BackendPool, StoreFailure> {
    let options = match options.get_application_name() {
        Some(_) => options.clone(),
        None => options.clone().application_name("chaingate"),
    };
    let old = OldConnections::default();
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(IDLE_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move { sqlx::raw_sql(SESSION_SETTINGS).execute(connection).await.map(drop) })
        })
        // Instead of the tests of `sqlx`, which wait for a connection that hangs for as long as the system keeps it open.
        .test_before_acquire(false)
        .before_acquire({
            let old = old.clone();
            move |connection, metadata| Box::pin(is_usable(connection, metadata, old.clone()))
        })
        .after_release(move |connection, metadata| Box::pin(is_usable(connection, metadata, old.clone())));
    let connected = timeout(ALIVE_TIMEOUT, pool.connect_with(options.disable_statement_logging())).await;
    let unanswered = |_| StoreFailure::Unavailable(format!("no connection within {ALIVE_TIMEOUT:?}"));
    Ok(OnBackend::Postgres(connected.map_err(unanswered)??))
}

/// Whether a connection answers. After one that does not, none of the same age is tried: what made it hang, such as a router that
/// has forgotten it, has mostly done so to all of them.
async fn is_usable(
    connection: &mut PgConnection,
    metadata: PoolConnectionMetadata,
    old: OldConnections,
) -> Result<bool, sqlx::Error> {
    if old.contain(&metadata) {
        return Ok(false);
    }
    match timeout(ALIVE_TIMEOUT, connection.ping()).await {
        // A connection that is broken is closed, and another one is used.
        Ok(answered) => Ok(answered.is_ok()),
        Err(_) => {
            old.add_all();
            Ok(false)
        }
    }
}
