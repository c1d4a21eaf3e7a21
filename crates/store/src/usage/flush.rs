//! Adds usage to the tables.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use resources::BUCKETS;
use sqlx::{AssertSqlSafe, Row};

use super::usage_row::{UsageCounts, UsageGroup, UsageRow};
use super::{UsageStep, column};
use crate::backend::{BackendTransaction, each_backend};
use crate::failure::StoreFailure;
use crate::pool::{self, within_timeout};
use crate::store::Store;

/// Rows that one statement adds. Few sizes, because each is a prepared statement of every connection.
const STATEMENT_ROWS: [usize; 3] = [64, 8, 1];

/// The columns that identify a row, in the order of the primary key.
const GROUP_COLUMNS: &str = "account, starts_at, network, key_id, method, outcome";

/// How many of them there are.
const GROUP_COLUMN_COUNT: usize = 6;

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
    /// The usage by minute; no group may be in two rows.
    pub rows: &'a [UsageRow],
}

impl Store {
    /// Adds usage, unless it was added before. Returns the sequence number up to which all entries of the process are stored:
    /// `through`, or another number if some entries were added before; then nothing is added, and the rest has to be sent alone.
    pub async fn add_usage(&self, flush: &UsageFlush<'_>, unix_seconds: u64) -> Result<u64, StoreFailure> {
        let mut transaction = within_timeout(pool::begin(self.pool().await?)).await?;
        let stored = begin_flush(&mut transaction, flush, unix_seconds).await?;
        if stored > flush.after {
            return Ok(stored);
        }
        for step in UsageStep::ALL {
            let rows = rolled_up(flush.rows, step);
            add_rows(&mut transaction, step, &rows).await?;
        }
        let update = "UPDATE usage_flushes SET through = $1 WHERE instance = $2 AND epoch = $3";
        each_backend!(&mut transaction, connection => {
            let update = sqlx::query(update)
                .bind(column(flush.through)).bind(flush.instance).bind(column(flush.epoch));
            within_timeout(update.execute(&mut **connection)).await.map(drop)
        })?;
        within_timeout(pool::commit(transaction)).await?;
        Ok(flush.through)
    }
}

/// Locks the row of a process, so that no other transaction adds its usage at the same time. Returns up to where its entries
/// are stored.
async fn begin_flush(
    transaction: &mut BackendTransaction,
    flush: &UsageFlush<'_>,
    unix_seconds: u64,
) -> Result<u64, StoreFailure> {
    let insert = "INSERT INTO usage_flushes (instance, epoch, through, flushed_at) VALUES ($1, $2, 0, $3) \
                  ON CONFLICT (instance, epoch) DO UPDATE SET flushed_at = excluded.flushed_at RETURNING through";
    let through: i64 = each_backend!(transaction, connection => {
        let insert = sqlx::query(insert)
            .bind(flush.instance).bind(column(flush.epoch)).bind(column(unix_seconds));
        within_timeout(insert.fetch_one(&mut **connection)).await?.try_get(0)?
    });
    Ok(u64::try_from(through).unwrap_or(0))
}

/// The rows by hour or day. They are in one order everywhere, so that two processes cannot wait for each other's locks.
fn rolled_up(rows: &[UsageRow], step: UsageStep) -> Vec<UsageRow> {
    let mut sums: BTreeMap<UsageGroup, UsageCounts> = BTreeMap::new();
    for UsageRow { group, counts } in rows {
        let starts_at = step.start(group.starts_at);
        sums.entry(UsageGroup { starts_at, ..group.clone() }).or_default().add(counts);
    }
    sums.into_iter().map(|(group, counts)| UsageRow { group, counts }).collect()
}

async fn add_rows(
    transaction: &mut BackendTransaction,
    step: UsageStep,
    mut rows: &[UsageRow],
) -> Result<(), StoreFailure> {
    for (size, statement) in STATEMENT_ROWS.iter().zip(&STATEMENTS[step as usize]) {
        while let Some((some, rest)) = rows.split_at_checked(*size) {
            add_some(transaction, statement, some).await?;
            rows = rest;
        }
    }
    Ok(())
}

async fn add_some(
    transaction: &mut BackendTransaction,
    statement: &'static str,
    rows: &[UsageRow],
) -> Result<(), StoreFailure> {
    each_backend!(transaction, connection => {
        let mut insert = sqlx::query(AssertSqlSafe(statement));
        for UsageRow { group, counts } in rows {
            insert = insert
                .bind(&*group.account).bind(column(group.starts_at)).bind(&*group.network).bind(&*group.key)
                .bind(&*group.method).bind(&*group.outcome);
            for number in numbers(counts) {
                insert = insert.bind(column(number));
            }
        }
        within_timeout(insert.execute(&mut **connection)).await.map(drop)
    })
}

/// What is counted, in the order of [`count_columns`].
fn numbers(counts: &UsageCounts) -> impl Iterator<Item = u64> {
    let UsageCounts { calls, credits, bytes_in, bytes_out, latency_ns, latency_buckets } = counts;
    [*calls, *credits, *bytes_in, *bytes_out, *latency_ns].into_iter().chain(*latency_buckets)
}

/// The columns that are summed up.
pub(super) fn count_columns() -> Vec<String> {
    let fixed = ["calls", "credits", "bytes_in", "bytes_out", "latency_ns"].map(str::to_owned);
    fixed.into_iter().chain((0..BUCKETS).map(|bucket| format!("latency_{bucket}"))).collect()
}

/// The statements that add rows, by table and by number of rows. They never change, so they live as long as the program.
static STATEMENTS: LazyLock<[[&'static str; STATEMENT_ROWS.len()]; UsageStep::ALL.len()]> =
    LazyLock::new(|| UsageStep::ALL.map(|step| STATEMENT_ROWS.map(|rows| &*statement(step, rows).leak())));

fn statement(step: UsageStep, rows: usize) -> String {
    let (table, counts) = (step.table(), count_columns());
    let width = GROUP_COLUMN_COUNT + counts.len();
    let values = (0..rows).map(|row| {
        let arguments: Vec<_> = (1..=width).map(|at| format!("${}", row * width + at)).collect();
        format!("({})", arguments.join(", "))
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let sums: Vec<_> =
        counts.iter().map(|name| format!("{name} = {table}.{name} + excluded.{name}")).collect();
    format!(
        "INSERT INTO {table} ({GROUP_COLUMNS}, {}) VALUES {values} ON CONFLICT ({GROUP_COLUMNS}) DO UPDATE SET {}",
        counts.join(", "),
        sums.join(", ")
    )
}
