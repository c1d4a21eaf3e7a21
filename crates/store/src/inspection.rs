//! One look at a store, for an operator who asks what is wrong before a gateway starts. It creates and changes nothing.

use std::time::Duration;

use tokio::time::Instant;

use crate::backend::{BackendTransaction, OnBackend, each_backend, execute, fetch_value};
use crate::failure::StoreFailure;
use crate::location::StoreLocation;
use crate::migrations::{self, MIGRATIONS};
use crate::operation_timeout::within_timeout;
use crate::pool;

/// The tables of the newest version, which a gateway reads and writes. Others in the same schema belong to somebody else.
const TABLES: &[&str] = &[
    "accounts",
    "api_keys",
    "audit_entries",
    "links",
    "sessions",
    "store_changes",
    "store_state",
    "store_version",
    "usage_account_days",
    "usage_account_hours",
    "usage_account_minutes",
    "usage_day_accounts",
    "usage_day_keys",
    "usage_days",
    "usage_fills",
    "usage_hours",
    "usage_minutes",
    "usage_network_days",
    "usage_network_hours",
    "usage_network_minutes",
    "usage_processes",
    "usage_tag_days",
    "usage_tag_hours",
    "usage_tag_minutes",
    "users",
];

/// The result of looking at a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreInspection {
    /// The version of its tables; 0 if there are none, which a gateway makes when it starts.
    pub version: i64,
    /// The version that this program makes of it when it starts.
    pub known_version: i64,
    /// How long a statement takes. `None` if there is no file yet.
    pub latency: Option<Duration>,
}

impl StoreInspection {
    fn new(version: i64, latency: Option<Duration>) -> Self {
        Self { version, known_version: MIGRATIONS.len() as i64, latency }
    }
}

/// Connects to a store, reads its version, and tries whether it can be written.
pub async fn inspect(location: &StoreLocation) -> Result<StoreInspection, StoreFailure> {
    if location.is_missing_file() {
        return Ok(StoreInspection::new(0, None));
    }
    let pool = pool::connect(location).await?;
    let asked_at = Instant::now();
    let _one: i32 = fetch_value!(&pool, "SELECT 1")?;
    let latency = asked_at.elapsed();
    // It is never committed.
    let mut transaction = within_timeout(pool::begin(&pool)).await?;
    let version = if has_tables(&mut transaction).await? {
        within_timeout(migrations::version(&mut transaction)).await?
    } else {
        0
    };
    let known = MIGRATIONS.len() as i64;
    if version > known {
        return Err(StoreFailure::NewerVersion { found: version, known });
    }
    check_rights(&mut transaction, version < known).await?;
    if version > 0 {
        // A server that only follows another one refuses this.
        execute!(&mut transaction, "UPDATE store_state SET revision = revision WHERE id = 1")?;
    }
    drop(transaction);
    each_backend!(&pool, pool => pool.close().await);
    Ok(StoreInspection::new(version, Some(latency)))
}

async fn has_tables(transaction: &mut BackendTransaction) -> Result<bool, StoreFailure> {
    let query = match transaction {
        OnBackend::Sqlite(_) => "SELECT COUNT(*) FROM sqlite_master WHERE name = 'store_version'",
        OnBackend::Postgres(_) => {
            "SELECT COUNT(*) FROM pg_tables WHERE tablename = 'store_version' AND schemaname = current_schema()"
        }
    };
    let tables: i64 = fetch_value!(transaction, query)?;
    Ok(tables > 0)
}

/// Whether the user of a PostgreSQL may do what a gateway does: read and write all tables, and make new ones if it `migrates`. SQLite
/// has no users.
async fn check_rights(transaction: &mut BackendTransaction, migrates: bool) -> Result<(), StoreFailure> {
    if matches!(transaction, OnBackend::Sqlite(_)) {
        return Ok(());
    }
    let query = "SELECT COALESCE(string_agg(tablename, ', ' ORDER BY tablename), '') \
                 FROM pg_tables, LATERAL (SELECT quote_ident(schemaname) || '.' || quote_ident(tablename)) AS t (name) \
                 WHERE schemaname = current_schema() AND position(' ' || tablename || ' ' IN $1) > 0 AND NOT ( \
                 has_table_privilege(name, 'SELECT') AND has_table_privilege(name, 'INSERT') AND \
                 has_table_privilege(name, 'UPDATE') AND has_table_privilege(name, 'DELETE'))";
    let forbidden: String = fetch_value!(&mut *transaction, query, format!(" {} ", TABLES.join(" ")))?;
    if !forbidden.is_empty() {
        return Err(StoreFailure::Refused(format!(
            "its user may not read and write these tables: {forbidden}; grant it SELECT, INSERT, UPDATE and DELETE"
        )));
    }
    let query = "SELECT COALESCE(has_schema_privilege(current_schema(), 'CREATE'), false)";
    let may_create: bool = if migrates { fetch_value!(transaction, query)? } else { true };
    if may_create {
        return Ok(());
    }
    let reason =
        "its user may not create tables, which a gateway does when it starts; grant it CREATE on the schema";
    Err(StoreFailure::Refused(reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::fetch;

    #[tokio::test]
    async fn rights_are_asked_for_on_every_table_that_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::in_data_dir(folder.path());
        assert_eq!(inspect(&location).await, Ok(StoreInspection::new(0, None)));
        let pool = pool::open(&location).await.unwrap();
        let query =
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name";
        let rows: Vec<(String,)> = fetch!(fetch_all, &pool, query).unwrap();
        let names: Vec<_> = rows.iter().map(|(name,)| name.as_str()).collect();
        assert_eq!(names, TABLES);
        let found = inspect(&location).await.unwrap();
        assert_eq!(found.version, found.known_version);
    }
}
