//! Adds usage to the tables.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use sqlx::AssertSqlSafe;

use super::count_columns::{add_on_conflict, count_columns};
use super::day_credits::{DayTotal, add_day_credits};
use super::usage_row::{UsageCounts, UsageGroup, UsageRow};
use super::{UsageDetail, UsageStep, column};
use crate::backend::{BackendTransaction, each_backend, execute, fetch_value};
use crate::failure::StoreFailure;
use crate::operation_timeout::within_timeout;
use crate::pool;
use crate::store::Store;

/// Rows that one statement adds. Few sizes, because each is a prepared statement of every connection.
const STATEMENT_ROWS: [usize; 3] = [64, 8, 1];

/// Entries of usage that are added together.
#[derive(Clone, Copy, Debug)]
pub struct UsageFlush<'a> {
    /// The process that has counted the usage.
    pub instance: &'a str,
    /// When that process was started, in milliseconds since 1970.
    pub epoch: u64,
    /// The sequence number before the first entry.
    pub after: u64,
    /// The sequence number of the last entry.
    pub through: u64,
    /// The usage by minute; no group may be in two rows. Rows without an account are usage of the gateway itself, such as calls
    /// to a partner: they count in the credits of the day only.
    pub rows: &'a [UsageRow],
}

/// The result of adding usage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredUsage {
    /// The sequence number up to which all entries of the process are stored: that of the flush, or another one if some entries
    /// were added before. Then nothing is added, and the rest has to be sent alone.
    pub through: u64,
    /// The credits that all processes have used today, of each account and key of the flush.
    pub day_totals: Vec<DayTotal>,
}

impl Store {
    /// Adds usage, unless it was added before.
    pub async fn add_usage(
        &self,
        flush: &UsageFlush<'_>,
        unix_seconds: u64,
    ) -> Result<StoredUsage, StoreFailure> {
        let mut transaction = within_timeout(pool::begin(self.pool().await?)).await?;
        let stored = begin_flush(&mut transaction, flush, unix_seconds).await?;
        if stored > flush.after {
            return Ok(StoredUsage { through: stored, ..StoredUsage::default() });
        }
        let (of_gateway, rows): (Vec<_>, Vec<_>) =
            flush.rows.iter().cloned().partition(|row| row.group.account.is_empty());
        for detail in [UsageDetail::Keys, UsageDetail::Tags] {
            for step in UsageStep::ALL {
                add_rows(&mut transaction, step, detail, &rolled_up(&rows, step, detail)).await?;
            }
        }
        let day_totals = add_day_credits(&mut transaction, rows.iter().chain(&of_gateway)).await?;
        // All processes add to the same rows of networks. They come last, so that others wait only for the commit.
        for detail in [UsageDetail::Accounts, UsageDetail::Networks] {
            for step in UsageStep::ALL {
                add_rows(&mut transaction, step, detail, &rolled_up(&rows, step, detail)).await?;
            }
        }
        let update = "UPDATE usage_processes SET through = $1 WHERE instance = $2 AND epoch = $3";
        execute!(&mut transaction, update, column(flush.through), flush.instance, column(flush.epoch))
            .map(drop)?;
        within_timeout(pool::commit(transaction)).await?;
        Ok(StoredUsage { through: flush.through, day_totals })
    }
}

/// Locks the row of a process, so that no other transaction adds its usage at the same time. Returns up to where its entries
/// are stored.
async fn begin_flush(
    transaction: &mut BackendTransaction,
    flush: &UsageFlush<'_>,
    unix_seconds: u64,
) -> Result<u64, StoreFailure> {
    let insert = "INSERT INTO usage_processes (instance, epoch, through, flushed_at) VALUES ($1, $2, 0, $3) \
                  ON CONFLICT (instance, epoch) DO UPDATE SET flushed_at = excluded.flushed_at RETURNING through";
    let through: i64 =
        fetch_value!(transaction, insert, flush.instance, column(flush.epoch), column(unix_seconds))?;
    Ok(u64::try_from(through).unwrap_or(0))
}

/// The rows of one table. They are in one order everywhere, so that two processes cannot wait for each other's locks.
fn rolled_up(rows: &[UsageRow], step: UsageStep, detail: UsageDetail) -> Vec<UsageRow> {
    let mut sums: BTreeMap<UsageGroup, UsageCounts> = BTreeMap::new();
    let is_of_table = |row: &&UsageRow| detail != UsageDetail::Tags || !row.group.tag.is_empty();
    for UsageRow { group, counts } in rows.iter().filter(is_of_table) {
        let group = detail.group(UsageGroup { starts_at: step.start(group.starts_at), ..group.clone() });
        sums.entry(group).or_default().add(counts);
    }
    sums.into_iter().map(|(group, counts)| UsageRow { group, counts }).collect()
}

async fn add_rows(
    transaction: &mut BackendTransaction,
    step: UsageStep,
    detail: UsageDetail,
    mut rows: &[UsageRow],
) -> Result<(), StoreFailure> {
    for (size, statement) in STATEMENT_ROWS.iter().zip(&STATEMENTS[detail as usize][step as usize]) {
        while let Some((some, rest)) = rows.split_at_checked(*size) {
            add_some(transaction, detail, statement, some).await?;
            rows = rest;
        }
    }
    Ok(())
}

async fn add_some(
    transaction: &mut BackendTransaction,
    detail: UsageDetail,
    statement: &'static str,
    rows: &[UsageRow],
) -> Result<(), StoreFailure> {
    each_backend!(transaction, connection => {
        let mut insert = sqlx::query(AssertSqlSafe(statement));
        for UsageRow { group, counts } in rows {
            for name in detail.group_columns() {
                insert = match *name {
                    "starts_at" => insert.bind(column(group.starts_at)),
                    "account" => insert.bind(&*group.account),
                    "network" => insert.bind(&*group.network),
                    "key_id" => insert.bind(&*group.key),
                    "method" => insert.bind(&*group.method),
                    "tag" => insert.bind(&*group.tag),
                    _ => insert.bind(&*group.outcome),
                };
            }
            for number in numbers(counts) {
                insert = insert.bind(column(number));
            }
        }
        within_timeout(insert.execute(&mut **connection)).await.map(drop)
    })
}

/// The counts, in the order of [`count_columns`].
fn numbers(counts: &UsageCounts) -> impl Iterator<Item = u64> {
    let UsageCounts { calls, credits, bytes_in, bytes_out, latency_ns, latency_buckets } = counts;
    [*calls, *credits, *bytes_in, *bytes_out, *latency_ns].into_iter().chain(*latency_buckets)
}

/// The statements that add rows, by table and by number of rows. They never change, so they live as long as the program.
static STATEMENTS: LazyLock<
    [[[&'static str; STATEMENT_ROWS.len()]; UsageStep::ALL.len()]; UsageDetail::ALL.len()],
> = LazyLock::new(|| {
    let of = |detail, step| STATEMENT_ROWS.map(|rows| &*statement(step, detail, rows).leak());
    UsageDetail::ALL.map(|detail| UsageStep::ALL.map(|step| of(detail, step)))
});

fn statement(step: UsageStep, detail: UsageDetail, rows: usize) -> String {
    let (table, groups, counts) = (detail.table(step), detail.group_columns(), count_columns());
    let width = groups.len() + counts.len();
    let values = (0..rows).map(|row| {
        let arguments: Vec<_> = (1..=width).map(|at| format!("${}", row * width + at)).collect();
        format!("({})", arguments.join(", "))
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let (groups, counts) = (groups.join(", "), counts.join(", "));
    format!("INSERT INTO {table} ({groups}, {counts}) VALUES {values} {}", add_on_conflict(step, detail))
}
