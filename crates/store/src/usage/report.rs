//! Sums of usage.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::TryStreamExt;
use resources::BUCKETS;
use sqlx::{AssertSqlSafe, ColumnIndex, Decode, FromRow, Row, Type};

use super::flush::count_columns;
use super::usage_row::{UsageCounts, UsageGroup, UsageRow};
use super::{UsageStep, column};
use crate::backend::each_backend;
use crate::columns::is_storable;
use crate::failure::StoreFailure;
use crate::pool::within_timeout;
use crate::store::Store;

/// What usage can be summed up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UsageDimension {
    Time,
    Network,
    Account,
    Key,
    Method,
    Outcome,
}

impl UsageDimension {
    /// In the order of the columns of a report.
    pub const ALL: [Self; 6] =
        [Self::Time, Self::Network, Self::Account, Self::Key, Self::Method, Self::Outcome];

    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Network => "network",
            Self::Account => "account",
            Self::Key => "key",
            Self::Method => "method",
            Self::Outcome => "outcome",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.name() == name)
    }

    fn column(self) -> &'static str {
        match self {
            Self::Time => "starts_at",
            Self::Network => "network",
            Self::Account => "account",
            Self::Key => "key_id",
            Self::Method => "method",
            Self::Outcome => "outcome",
        }
    }

    /// The constant that a report selects instead of the column if it is not summed up by it.
    fn all_values(self) -> &'static str {
        match self {
            Self::Time => "CAST(0 AS BIGINT)",
            _ => "CAST('' AS TEXT)",
        }
    }
}

/// Which usage is summed up, and by what.
#[derive(Clone, Debug)]
pub struct UsageQuery {
    pub step: UsageStep,
    /// The first second, which is the start of a minute, hour or day.
    pub since: u64,
    /// The second after the last.
    pub until: u64,
    pub account: Option<String>,
    pub key: Option<String>,
    pub network: Option<String>,
    pub by: BTreeSet<UsageDimension>,
}

impl Store {
    /// The sums of usage in the order of their groups, at most `rows_max`. What usage is not summed up by is empty in their groups.
    pub async fn usage(&self, query: &UsageQuery, rows_max: usize) -> Result<Vec<UsageRow>, StoreFailure> {
        let statement = statement(query);
        let filters = [&query.account, &query.key, &query.network];
        // No row has a text that cannot be stored, so the time in which it is looked for is empty.
        let can_match = filters.into_iter().flatten().all(|filter| is_storable(filter));
        let until = if can_match { query.until } else { query.since };
        let rows: Vec<UsageColumns> = each_backend!(self.pool().await?, pool => {
            let mut select = sqlx::query_as(AssertSqlSafe(statement))
                .bind(column(query.since)).bind(column(until)).bind(column(rows_max as u64));
            for filter in filters.into_iter().flatten() {
                select = select.bind(filter.replace('\0', ""));
            }
            within_timeout(select.fetch_all(pool)).await?
        });
        Ok(rows.into_iter().map(|columns| columns.0).collect())
    }

    /// Calls `each` with every account and key that has used credits on a day, and their number. `day` is its first second.
    pub async fn credits_of_day(
        &self,
        day: u64,
        mut each: impl FnMut(String, String, u64),
    ) -> Result<(), StoreFailure> {
        let select = "SELECT account, key_id, CAST(SUM(credits) AS BIGINT) FROM usage_days WHERE starts_at = $1 \
                      GROUP BY account, key_id";
        each_backend!(self.pool().await?, pool => {
            let mut rows = sqlx::query_as::<_, (String, String, i64)>(select).bind(column(day)).fetch(pool);
            while let Some((account, key, credits)) = within_timeout(rows.try_next()).await? {
                each(account, key, u64::try_from(credits).unwrap_or(0));
            }
        });
        Ok(())
    }
}

fn statement(query: &UsageQuery) -> String {
    let columns = UsageDimension::ALL.map(|dimension| match query.by.contains(&dimension) {
        true => dimension.column(),
        false => dimension.all_values(),
    });
    let sum = |expression: String| format!("CAST(COALESCE(SUM({expression}), 0) AS BIGINT)");
    // The sum of nanoseconds can exceed the largest number of a column, so there is one of microseconds and one of the rests.
    let latencies = ["latency_ns / 1000", "latency_ns % 1000"].map(str::to_owned);
    let numbers = count_columns().into_iter().filter(|name| name != "latency_ns");
    let sums = numbers.chain(latencies).map(sum);
    let filters = [("account", &query.account), ("key_id", &query.key), ("network", &query.network)];
    let filters = filters.into_iter().filter(|(_, value)| value.is_some());
    let filters: String =
        filters.zip(4..).map(|((name, _), argument)| format!(" AND {name} = ${argument}")).collect();
    let by: Vec<_> = query.by.iter().map(|dimension| dimension.column()).collect();
    let by = match by.as_slice() {
        [] => String::new(),
        by => format!(" GROUP BY {0} ORDER BY {0}", by.join(", ")),
    };
    format!(
        "SELECT {}, {} FROM {} WHERE starts_at >= $1 AND starts_at < $2{filters}{by} LIMIT $3",
        columns.join(", "),
        sums.collect::<Vec<_>>().join(", "),
        query.step.table()
    )
}

/// One row of a report.
struct UsageColumns(UsageRow);

impl<'r, R: Row> FromRow<'r, R> for UsageColumns
where
    usize: ColumnIndex<R>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        let text = |at: usize| row.try_get::<String, _>(at).map(Arc::from);
        let number = |at: usize| row.try_get::<i64, _>(at).map(|number| u64::try_from(number).unwrap_or(0));
        let group = UsageGroup {
            starts_at: number(0)?,
            network: text(1)?,
            account: text(2)?,
            key: text(3)?,
            method: text(4)?,
            outcome: text(5)?,
        };
        let mut counts = UsageCounts {
            calls: number(6)?,
            credits: number(7)?,
            bytes_in: number(8)?,
            bytes_out: number(9)?,
            ..UsageCounts::default()
        };
        for (bucket, at) in counts.latency_buckets.iter_mut().zip(10..) {
            *bucket = number(at)?;
        }
        let (microseconds, rest) = (number(10 + BUCKETS)?, number(11 + BUCKETS)?);
        counts.latency_ns = microseconds.saturating_mul(1_000).saturating_add(rest);
        Ok(Self(UsageRow { group, counts }))
    }
}
