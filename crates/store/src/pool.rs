//! Opens a database: file permissions, connections, time limits and migrations.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tokio::time::Instant;

use crate::backend::{BackendPool, BackendTransaction, OnBackend};
use crate::failure::StoreFailure;
use crate::location::{LocationKind, StoreLocation};
use crate::migrations::{MIGRATIONS, migrate};

/// Connections of one `Store`. A gateway has one store for each of the feed, the usage ledger, the admin API and the console.
const CONNECTIONS_MAX: u32 = 6;

/// How long an operation waits for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long PostgreSQL may work on one statement, wait for a lock, and keep a transaction whose owner is gone. Notices are
/// switched off, because `sqlx` logs them. These are not parameters of the connection, which PgBouncer refuses.
const SESSION_SETTINGS: &str = "SET statement_timeout = '10s'; SET lock_timeout = '5s'; \
                                SET idle_in_transaction_session_timeout = '30s'; \
                                SET client_min_messages = warning";

/// How long a statement may take with all waiting; longer than the limits above, so that those report their reason.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a statement waits for another process that writes to the same SQLite file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Code of SQLite for a file that is locked; the higher bits of an extended code tell the details.
const SQLITE_BUSY: u32 = 5;

/// Pause between attempts to open a file that is locked.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Connections that were idle for so long are closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Waits for an operation no longer than [`OPERATION_TIMEOUT`]: a server that hangs keeps its connections open.
pub(crate) async fn within_timeout<T, E: Into<StoreFailure>>(
    operation: impl Future<Output = Result<T, E>>,
) -> Result<T, StoreFailure> {
    match tokio::time::timeout(OPERATION_TIMEOUT, operation).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(StoreFailure::Unavailable(format!("no answer within {OPERATION_TIMEOUT:?}"))),
    }
}

/// Connects to the database and brings its tables up to date.
pub(crate) async fn open(location: &StoreLocation) -> Result<BackendPool, StoreFailure> {
    let pool = match &location.kind {
        LocationKind::Sqlite(file) => open_sqlite(file).await?,
        LocationKind::Postgres(options) => open_postgres(options).await?,
    };
    let mut transaction = begin(&pool).await?;
    migrate(&mut transaction, MIGRATIONS).await?;
    commit(transaction).await?;
    Ok(pool)
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
    let pool = SqlitePoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(CONNECT_TIMEOUT)
        .idle_timeout(IDLE_TIMEOUT);
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
fn create_private(file: &Path) -> io::Result<()> {
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
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(CONNECT_TIMEOUT)
        .idle_timeout(IDLE_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move { sqlx::raw_sql(SESSION_SETTINGS).execute(connection).await.map(drop) })
        });
    Ok(OnBackend::Postgres(pool.connect_with(options.disable_statement_logging()).await?))
}
