//! Times and limits of this crate: what happens at each, and why it has its value.

use std::time::Duration;

// Connections and statements.

/// Connections of one `Store`. A gateway has one store for each of the feed, the usage ledger, the admin API and the console, so 16
/// connections at most: a PostgreSQL with its default of 100 carries six gateways. The feed needs three.
pub(crate) const CONNECTIONS_MAX: u32 = 4;

/// How long an operation waits for a connection that others use.
pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long PostgreSQL may take for the first connection, and for a sign of life on a connection that is used again.
pub(crate) const ALIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long all migrations may take: tables with millions of rows are written anew, which would begin again for ever after the
/// limit on other operations.
pub(crate) const MIGRATION_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long a statement waits for another process that writes to the same SQLite file.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause between attempts to open a file that is locked.
pub(crate) const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Connections that were idle for so long are closed.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a statement may take with all waiting; longer than the limits that PostgreSQL and SQLite are given, so that those
/// report their reason.
pub(crate) const OPERATION_TIMEOUT: Duration = Duration::from_secs(15);

/// Rows that one statement reads at most, so that a large table never waits in one reply of the database.
pub(crate) const PAGE_ROWS: i64 = 5_000;

// Usage.

/// Rows that one statement deletes at most, so that it holds no locks for long.
pub(crate) const ROWS_DELETED_AT_ONCE: u64 = 5_000;

/// Steps that a statement names one by one. An index then finds the rows of some accounts or keys without reading others.
pub(crate) const STEPS_NAMED_MAX: u64 = 400;

/// Statements into which a report of single keys is divided, so that each names its steps; a longer report reads the whole time.
pub(crate) const PARTS_MAX: u64 = 200;

/// Days of which a statement looks for accounts and keys one by one.
pub(crate) const DAYS_NAMED_MAX: u64 = 400;

/// Networks of one store at most, as far as a report of single keys looks for them.
pub(crate) const NETWORKS_MAX: i64 = 100;
