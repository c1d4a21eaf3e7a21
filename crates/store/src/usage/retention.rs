//! Deletes old usage.

use sqlx::AssertSqlSafe;

use super::{UsageDetail, UsageStep, column};
use crate::backend::{OnBackend, execute};
use crate::failure::StoreFailure;
use crate::operation_timeout::within_timeout;
use crate::policy::ROWS_DELETED_AT_ONCE;
use crate::store::Store;

impl Store {
    /// Deletes usage of one step that starts before `cutoff`, but not all at once if there is much. Returns how many rows it has
    /// deleted.
    pub async fn delete_usage_before(&self, step: UsageStep, cutoff: u64) -> Result<u64, StoreFailure> {
        let mut deleted = 0;
        for detail in UsageDetail::ALL {
            let primary_key = detail.group_columns().join(", ");
            deleted +=
                self.delete_some(detail.table(step), &primary_key, "starts_at", column(cutoff)).await?;
        }
        if step == UsageStep::Day {
            deleted += self.delete_day_credits_before(cutoff).await?;
        }
        Ok(deleted)
    }

    /// Deletes some rows of a table whose time is before `cutoff`.
    pub(super) async fn delete_some(
        &self,
        table: &str,
        primary_key: &str,
        time: &str,
        cutoff: i64,
    ) -> Result<u64, StoreFailure> {
        // The order makes the database use the index, also where most of its rows seem to be old.
        let some = format!("FROM {table} WHERE {time} < $1 ORDER BY {time} LIMIT {ROWS_DELETED_AT_ONCE}");
        match self.pool().await? {
            OnBackend::Sqlite(pool) => {
                let delete =
                    format!("DELETE FROM {table} WHERE ({primary_key}) IN (SELECT {primary_key} {some})");
                let delete = sqlx::query(AssertSqlSafe(delete)).bind(cutoff);
                within_timeout(delete.execute(pool)).await.map(|done| done.rows_affected())
            }
            OnBackend::Postgres(pool) => {
                // Rows that another gateway is deleting are left to it.
                let delete = format!(
                    "DELETE FROM {table} WHERE ctid = ANY(ARRAY(SELECT ctid {some} FOR UPDATE SKIP LOCKED))"
                );
                let delete = sqlx::query(AssertSqlSafe(delete)).bind(cutoff);
                within_timeout(delete.execute(pool)).await.map(|done| done.rows_affected())
            }
        }
    }

    /// Deletes the last sequence numbers of processes that have added nothing since `cutoff`. The entries of such a process
    /// must not be sent again, because they would count twice.
    pub async fn delete_usage_flushes_before(&self, cutoff: u64) -> Result<u64, StoreFailure> {
        let delete = "DELETE FROM usage_processes WHERE flushed_at < $1";
        execute!(self.pool().await?, delete, column(cutoff))
    }
}
