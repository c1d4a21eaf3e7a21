//! Copies of a SQLite file that is in use.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use crate::failure::StoreFailure;
use crate::policy::BUSY_TIMEOUT;
use crate::pool::create_private;

/// Writes the content of a SQLite store, as of one moment, into a new file that only its owner can read.
///
/// Gateways go on using the store. Its tables stay as they are, also if they are of another version of this program.
pub async fn copy_sqlite(store: &Path, copy: &Path) -> Result<(), StoreFailure> {
    let failed = |error: std::io::Error| StoreFailure::Unavailable(format!("{}: {error}", copy.display()));
    let copy_name = copy.to_str().ok_or_else(|| {
        StoreFailure::Refused(format!("{}: SQLite takes names in UTF-8 only", copy.display()))
    })?;
    let options = SqliteConnectOptions::new()
        .filename(store)
        .create_if_missing(false)
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging();
    let mut connection = options.connect().await?;
    create_private(copy).map_err(failed)?;
    sqlx::query("VACUUM INTO $1").bind(copy_name).execute(&mut connection).await?;
    connection.close().await?;
    std::fs::File::open(copy).and_then(|file| file.sync_all()).map_err(failed)
}
