//! The tables, and how those of an earlier version are brought up to date. Migrations only go forwards.

use ring::rand::{SecureRandom, SystemRandom};
use sqlx::Row;

use crate::backend::{BackendTransaction, OnBackend, each_backend};
use crate::failure::StoreFailure;
use crate::hash_key::HASH_BYTES;
use crate::operation_timeout::within_timeout;

/// The statements that lead from one version to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    sqlite: &'static str,
    postgres: &'static str,
}

/// The migration to a version, which has a file for each kind of databases.
macro_rules! migration {
    ($version:literal) => {
        Migration {
            sqlite: include_str!(concat!("migrations/", $version, ".sqlite.sql")),
            postgres: include_str!(concat!("migrations/", $version, ".postgres.sql")),
        }
    };
}

/// All migrations; the first one leads to version 1. Published ones never change.
pub(crate) const MIGRATIONS: &[Migration] = &[
    migration!(1),
    migration!(2),
    migration!(3),
    migration!(4),
    migration!(5),
    migration!(6),
    Migration {
        sqlite: include_str!("migrations/7.sql"),
        // Gateways with version 6 add no usage meanwhile.
        postgres: concat!("LOCK TABLE usage_fills IN EXCLUSIVE MODE;", include_str!("migrations/7.sql")),
    },
    migration!(8),
];

/// Number of the lock of PostgreSQL that one process at a time holds while it migrates; any fixed number would do.
const MIGRATION_LOCK: i64 = 0x6368_6169_6e67_6174;

/// Lets the statements of migrations take longer than others: tables with millions of rows are written anew.
const LONG_STATEMENTS: &str = "SET LOCAL statement_timeout = '10min'";

/// Applies the missing migrations of `all`. The transaction must hold the only right to write (SQLite), or gets it here
/// (PostgreSQL), so that of two processes that start together one migrates and the other finds the result.
pub(crate) async fn migrate(
    transaction: &mut BackendTransaction,
    all: &[Migration],
) -> Result<(), StoreFailure> {
    if let OnBackend::Postgres(connection) = transaction {
        let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(MIGRATION_LOCK);
        within_timeout(lock.execute(&mut **connection)).await?;
    }
    let create = "CREATE TABLE IF NOT EXISTS store_version (version BIGINT NOT NULL)";
    within_timeout(execute(transaction, create)).await?;
    let (found, known) = (within_timeout(version(transaction)).await?, all.len() as i64);
    if found > known {
        return Err(StoreFailure::NewerVersion { found, known });
    }
    if found < known && matches!(transaction, OnBackend::Postgres(_)) {
        execute(transaction, LONG_STATEMENTS).await?;
    }
    for (migration, version) in all.iter().zip(1..).skip(found as usize) {
        let statements = match transaction {
            OnBackend::Sqlite(_) => migration.sqlite,
            OnBackend::Postgres(_) => migration.postgres,
        };
        execute(transaction, statements).await?;
        if version == 1 {
            create_state(transaction).await?;
        }
        tracing::info!(version, "the tables of the store of accounts and keys are brought up to date");
    }
    if found < known {
        execute(transaction, "DELETE FROM store_version").await?;
        let insert = "INSERT INTO store_version (version) VALUES ($1)";
        each_backend!(transaction, connection => {
            sqlx::query(insert).bind(known).execute(&mut **connection).await.map(drop)
        })?;
    }
    Ok(())
}

/// The version of the tables; 0 without any.
pub(crate) async fn version(transaction: &mut BackendTransaction) -> Result<i64, StoreFailure> {
    let query = "SELECT COALESCE(MAX(version), 0) FROM store_version";
    let version: i64 = each_backend!(transaction, connection => {
        sqlx::query(query).fetch_one(&mut **connection).await?.try_get(0)?
    });
    // A negative version can only come from outside; nothing is known about its tables.
    if version < 0 {
        return Err(StoreFailure::Refused(format!("invalid version {version} in the table store_version")));
    }
    Ok(version)
}

async fn create_state(transaction: &mut BackendTransaction) -> Result<(), StoreFailure> {
    let mut hash_key = [0; HASH_BYTES];
    SystemRandom::new()
        .fill(&mut hash_key)
        .map_err(|_| StoreFailure::Refused("the system has no random numbers".to_owned()))?;
    let insert = "INSERT INTO store_state (id, revision, hash_key) VALUES (1, 0, $1)";
    each_backend!(transaction, connection => {
        sqlx::query(insert).bind(&hash_key[..]).execute(&mut **connection).await.map(drop)
    })?;
    Ok(())
}

/// Executes statements without arguments.
async fn execute(transaction: &mut BackendTransaction, statements: &'static str) -> Result<(), StoreFailure> {
    each_backend!(transaction, connection => {
        sqlx::raw_sql(statements).execute(&mut **connection).await.map(drop)
    })?;
    Ok(())
}
