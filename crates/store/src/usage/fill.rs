//! Fills the tables of sums with the rows that an earlier version has stored.
//!
//! Rows are taken in the order of account and time, some thousand in one transaction. Until a row was reached, usage that is
//! added to it is not added to the sums, because it becomes part of them when it is reached.

use std::time::Duration;

use sqlx::AssertSqlSafe;
use tokio::time::timeout;

use super::count_columns::{add_on_conflict, count_columns};
use super::usage_row::UsageGroup;
use super::{UsageDetail, UsageStep};
use crate::backend::{BackendTransaction, OnBackend, each_backend};
use crate::failure::StoreFailure;
use crate::operation_timeout::within_timeout;
use crate::pool;
use crate::store::Store;

/// Rows that one transaction sums up, and those with the same account and time as the last of them.
const ROWS_FILLED_AT_ONCE: i64 = 5_000;

/// How long one of its statements may take: an account with very many keys is summed up at once.
const FILL_TIMEOUT: Duration = Duration::from_secs(120);

/// Up to which account and time the sums are filled, for each step that is not complete.
#[derive(Debug, Default)]
pub(super) struct FillProgress(Vec<(String, String, i64)>);

impl FillProgress {
    /// Reads the progress, and keeps it as it is until the transaction ends.
    pub(super) async fn read(transaction: &mut BackendTransaction) -> Result<Self, StoreFailure> {
        let select = match transaction {
            // A transaction of SQLite is the only one that writes.
            OnBackend::Sqlite(_) => "SELECT step, account, starts_at FROM usage_fills",
            OnBackend::Postgres(_) => {
                "SELECT step, account, starts_at FROM usage_fills ORDER BY step FOR SHARE"
            }
        };
        Ok(Self(each_backend!(transaction, connection => {
            within_timeout(sqlx::query_as(select).fetch_all(&mut **connection)).await?
        })))
    }

    /// Whether the sums have what is stored for a group of a minute.
    pub(super) fn has_filled(&self, step: UsageStep, group: &UsageGroup) -> bool {
        let starts_at = super::column(step.start(group.starts_at));
        let reached = self.0.iter().find(|(name, ..)| name == step.name());
        reached.is_none_or(|(_, account, reached_at)| {
            (&*group.account, starts_at) <= (account.as_str(), *reached_at)
        })
    }
}

impl Store {
    /// Whether the tables of sums have everything that is stored.
    pub async fn has_usage_sums(&self) -> Result<bool, StoreFailure> {
        let select = "SELECT COUNT(*) FROM usage_fills";
        let (fills,): (i64,) = each_backend!(self.pool().await?, pool => {
            within_timeout(sqlx::query_as(select).fetch_one(pool)).await?
        });
        Ok(fills == 0)
    }

    /// Fills the tables of sums with some rows of an earlier version. Returns whether there may be more.
    pub async fn fill_usage_sums(&self) -> Result<bool, StoreFailure> {
        let mut transaction = within_timeout(pool::begin(self.pool().await?)).await?;
        let Some((step, reached)) = begin_fill(&mut transaction).await? else { return Ok(false) };
        let last = last_of_rows(&mut transaction, step, &reached).await?;
        for statement in statements(step, last.is_some()) {
            each_backend!(&mut transaction, connection => {
                let mut fill = sqlx::query(AssertSqlSafe(statement)).bind(&reached.0).bind(reached.1);
                if let Some((account, starts_at)) = &last {
                    fill = fill.bind(account).bind(starts_at);
                }
                let filled = timeout(FILL_TIMEOUT, fill.execute(&mut **connection)).await;
                filled.map_err(|_| StoreFailure::TimedOut(format!("no answer within {FILL_TIMEOUT:?}")))??;
            });
        }
        each_backend!(&mut transaction, connection => {
            let update = match &last {
                Some((account, starts_at)) => {
                    let update = "UPDATE usage_fills SET account = $2, starts_at = $3 WHERE step = $1";
                    sqlx::query(update).bind(step.name()).bind(account).bind(starts_at)
                }
                None => sqlx::query("DELETE FROM usage_fills WHERE step = $1").bind(step.name()),
            };
            within_timeout(update.execute(&mut **connection)).await.map(drop)
        })?;
        within_timeout(pool::commit(transaction)).await?;
        Ok(true)
    }
}

type Reached = (String, i64);

/// Locks the progress of a step that is not complete, days first. No usage is added meanwhile. `None` if all are complete, or
/// another process has just completed this one.
async fn begin_fill(
    transaction: &mut BackendTransaction,
) -> Result<Option<(UsageStep, Reached)>, StoreFailure> {
    let select = match transaction {
        OnBackend::Sqlite(_) => "SELECT step, account, starts_at FROM usage_fills ORDER BY step LIMIT 1",
        OnBackend::Postgres(connection) => {
            let limit = format!("SET LOCAL statement_timeout = {}", FILL_TIMEOUT.as_millis());
            within_timeout(sqlx::raw_sql(AssertSqlSafe(limit)).execute(&mut **connection)).await?;
            "SELECT step, account, starts_at FROM usage_fills ORDER BY step LIMIT 1 FOR UPDATE"
        }
    };
    let found: Option<(String, String, i64)> = each_backend!(transaction, connection => {
        within_timeout(sqlx::query_as(select).fetch_optional(&mut **connection)).await?
    });
    let Some((name, account, starts_at)) = found else { return Ok(None) };
    let unknown = || StoreFailure::Refused(format!("unknown step {name} in the table usage_fills"));
    Ok(Some((UsageStep::named(&name).ok_or_else(unknown)?, (account, starts_at))))
}

/// The account and time of the last row of the next transaction; `None` if it takes all that are left.
async fn last_of_rows(
    transaction: &mut BackendTransaction,
    step: UsageStep,
    (account, starts_at): &Reached,
) -> Result<Option<Reached>, StoreFailure> {
    let select = format!(
        "SELECT account, starts_at FROM {} WHERE (account, starts_at) > ($1, $2) \
         ORDER BY account, starts_at LIMIT 1 OFFSET {ROWS_FILLED_AT_ONCE}",
        UsageDetail::Keys.table(step)
    );
    Ok(each_backend!(transaction, connection => {
        let select = sqlx::query_as(AssertSqlSafe(select)).bind(account).bind(starts_at);
        within_timeout(select.fetch_optional(&mut **connection)).await?
    }))
}

/// The statements that sum up the rows of one transaction.
fn statements(step: UsageStep, has_last: bool) -> Vec<String> {
    let to_last = if has_last { " AND (account, starts_at) <= ($3, $4)" } else { "" };
    let from =
        format!("FROM {} WHERE (account, starts_at) > ($1, $2){to_last}", UsageDetail::Keys.table(step));
    let sums: Vec<_> = count_columns().iter().map(|name| sum(name)).collect();
    let (counts, sums) = (count_columns().join(", "), sums.join(", "));
    let mut statements = Vec::new();
    for detail in [UsageDetail::Accounts, UsageDetail::Networks] {
        let (table, groups) = (detail.table(step), detail.group_columns().join(", "));
        let add = add_on_conflict(step, detail);
        statements.push(format!(
            "INSERT INTO {table} ({groups}, {counts}) SELECT {groups}, {sums} {from} GROUP BY {groups} {add}"
        ));
    }
    if step == UsageStep::Day {
        for (table, groups, columns) in [
            ("usage_day_accounts", "account, starts_at", "account, day"),
            ("usage_day_keys", "account, key_id, starts_at", "account, key_id, day"),
        ] {
            statements.push(format!(
                "INSERT INTO {table} ({columns}, credits) SELECT {groups}, {} {from} GROUP BY {groups} \
                 ON CONFLICT ({columns}) DO UPDATE SET credits = {table}.credits + excluded.credits",
                sum("credits")
            ));
        }
    }
    statements
}

/// The sum of a column. That of nanoseconds can exceed the largest number.
fn sum(name: &str) -> String {
    match name {
        "latency_ns" => format!(
            "CASE WHEN SUM(latency_ns / 1000) >= {} THEN {} \
             ELSE CAST(SUM(latency_ns / 1000) * 1000 + SUM(latency_ns % 1000) AS BIGINT) END",
            i64::MAX / 1_000,
            i64::MAX
        ),
        _ => format!("CAST(SUM({name}) AS BIGINT)"),
    }
}
