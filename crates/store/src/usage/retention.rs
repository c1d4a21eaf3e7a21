//! Deletes old usage.

use sqlx::AssertSqlSafe;

use super::{UsageStep, column};
use crate::backend::each_backend;
use crate::failure::StoreFailure;
use crate::pool::within_timeout;
use crate::store::Store;

/// Steps that one statement deletes at most, so that it does not hold locks for long after the gateways were down.
const STEPS_DELETED_AT_ONCE: u64 = 60;

impl Store {
    /// Deletes rows of one table that start before `cutoff`, but not all at once if there are many. Returns how many it has
    /// deleted.
    pub async fn delete_usage_before(&self, step: UsageStep, cutoff: u64) -> Result<u64, StoreFailure> {
        let (table, most) = (step.table(), STEPS_DELETED_AT_ONCE * step.seconds());
        let delete = format!(
            "DELETE FROM {table} WHERE starts_at < $1 AND starts_at < (SELECT MIN(starts_at) FROM {table}) + {most}"
        );
        each_backend!(self.pool().await?, pool => {
            let delete = sqlx::query(AssertSqlSafe(delete)).bind(column(cutoff));
            within_timeout(delete.execute(pool)).await.map(|done| done.rows_affected())
        })
    }

    /// Deletes the last sequence numbers of processes that have added nothing since `cutoff`. The entries of such a process
    /// must not be sent again, because they would count twice.
    pub async fn delete_usage_flushes_before(&self, cutoff: u64) -> Result<u64, StoreFailure> {
        let delete = "DELETE FROM usage_flushes WHERE flushed_at < $1";
        each_backend!(self.pool().await?, pool => {
            let delete = sqlx::query(delete).bind(column(cutoff));
            within_timeout(delete.execute(pool)).await.map(|done| done.rows_affected())
        })
    }
}
