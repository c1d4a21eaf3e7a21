//! Sums of usage.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use resources::BUCKETS;
use sqlx::{AssertSqlSafe, ColumnIndex, Decode, FromRow, Row, Type};

use super::count_columns::count_columns;
use super::usage_row::{UsageCounts, UsageGroup, UsageRow};
use super::{UsageDetail, UsageStep, column};
use crate::backend::{each_backend, fetch};
use crate::columns::is_storable;
use crate::failure::StoreFailure;
use crate::operation_timeout::within_timeout;
use crate::policy::{DAYS_NAMED_MAX, NETWORKS_MAX, PARTS_MAX, STEPS_NAMED_MAX};
use crate::store::Store;

/// The dimensions by which usage can be summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UsageDimension {
    Time,
    Network,
    Account,
    Key,
    Method,
    Outcome,
    Tag,
}

impl UsageDimension {
    /// In the order of the columns of a report.
    pub const ALL: [Self; 7] =
        [Self::Time, Self::Network, Self::Account, Self::Key, Self::Method, Self::Outcome, Self::Tag];

    /// Its name in reports, and its column.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Time => ("time", "starts_at"),
            Self::Network => ("network", "network"),
            Self::Account => ("account", "account"),
            Self::Key => ("key", "key_id"),
            Self::Method => ("method", "method"),
            Self::Outcome => ("outcome", "outcome"),
            Self::Tag => ("tag", "tag"),
        }
    }

    pub fn name(self) -> &'static str {
        self.names().0
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.name() == name)
    }

    fn column(self) -> &'static str {
        self.names().1
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
    /// Usage by tag is not distinguished by method and outcome.
    pub tag: Option<String>,
    pub by: BTreeSet<UsageDimension>,
    /// Only accounts after the first one, up to the second.
    pub accounts: Option<(String, String)>,
    /// Only keys after the first one, up to the second.
    pub keys: Option<(String, String)>,
}

/// A key that was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsedKey {
    pub account: String,
    pub key: String,
}

impl UsageQuery {
    /// Whether only what has a tag is summed up.
    fn is_of_tags(&self) -> bool {
        self.tag.is_some() || self.by.contains(&UsageDimension::Tag)
    }

    fn is_of_keys(&self) -> bool {
        self.key.is_some() || self.keys.is_some()
    }

    /// The first second of the first step, and how many steps there are.
    fn steps(&self) -> (u64, u64) {
        let first = self.step.start(self.since);
        (first, self.until.saturating_sub(first).div_ceil(self.step.seconds()))
    }

    /// The query, or several for one part of the time each if it is of keys and has many steps.
    fn parts(&self) -> Vec<Self> {
        let (first, steps) = self.steps();
        let parts = steps.div_ceil(STEPS_NAMED_MAX);
        if !self.is_of_keys() || !(2..=PARTS_MAX).contains(&parts) {
            return vec![self.clone()];
        }
        let start = |part: u64| first + part * STEPS_NAMED_MAX * self.step.seconds();
        let part = |number| {
            let (since, until) = (self.since.max(start(number)), self.until.min(start(number + 1)));
            Self { since, until, ..self.clone() }
        };
        (0..parts).map(part).collect()
    }

    /// The smallest table that can answer it.
    fn detail(&self) -> UsageDetail {
        if self.is_of_tags() {
            UsageDetail::Tags
        } else if self.by.contains(&UsageDimension::Key) || self.is_of_keys() {
            UsageDetail::Keys
        } else if self.by.contains(&UsageDimension::Account)
            || self.account.is_some()
            || self.accounts.is_some()
        {
            UsageDetail::Accounts
        } else {
            UsageDetail::Networks
        }
    }

    /// The arguments of the statement after the first three, in order, with the conditions that have them.
    fn filters(&self) -> Vec<(&'static str, &str)> {
        let equal = [
            ("account =", &self.account),
            ("key_id =", &self.key),
            ("network =", &self.network),
            ("tag =", &self.tag),
        ];
        let mut filters: Vec<_> =
            equal.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).collect();
        for (after, through, range) in
            [("account >", "account <=", &self.accounts), ("key_id >", "key_id <=", &self.keys)]
        {
            if let Some((first, last)) = range {
                filters.extend([(after, first.as_str()), (through, last.as_str())]);
            }
        }
        filters
    }
}

impl Store {
    /// The sums of usage in the order of their groups, at most `rows_max`. What usage is not summed up by is empty in their groups.
    pub async fn usage(&self, query: &UsageQuery, rows_max: usize) -> Result<Vec<UsageRow>, StoreFailure> {
        let networks = match query.is_of_keys() && query.network.is_none() {
            true => Some(self.networks(query).await?),
            false => None,
        };
        let mut sums: BTreeMap<UsageGroup, UsageCounts> = BTreeMap::new();
        for part in query.parts() {
            for UsageRow { group, counts } in self.usage_of_part(&part, networks.as_deref(), rows_max).await?
            {
                sums.entry(group).or_default().add(&counts);
            }
        }
        let rows = sums.into_iter().map(|(group, counts)| UsageRow { group, counts });
        Ok(rows.take(rows_max).collect())
    }

    async fn usage_of_part(
        &self,
        query: &UsageQuery,
        networks: Option<&[String]>,
        rows_max: usize,
    ) -> Result<Vec<UsageRow>, StoreFailure> {
        let statement = statement(query, networks);
        let filters = query.filters();
        // No row has a text that cannot be stored, so the time in which it is looked for is empty.
        let can_match = filters.iter().all(|(_, filter)| is_storable(filter));
        let until = if can_match { query.until } else { query.since };
        let rows: Vec<UsageColumns> = each_backend!(self.pool().await?, pool => {
            let mut select = sqlx::query_as(AssertSqlSafe(statement))
                .bind(column(query.since)).bind(column(until)).bind(column(rows_max as u64));
            for (_, filter) in filters {
                select = select.bind(filter.replace('\0', ""));
            }
            for network in networks.into_iter().flatten() {
                select = select.bind(network.as_str());
            }
            within_timeout(select.fetch_all(pool)).await?
        });
        Ok(rows.into_iter().map(|columns| columns.0).collect())
    }

    /// The networks that were used in the time of a query.
    async fn networks(&self, query: &UsageQuery) -> Result<Vec<String>, StoreFailure> {
        let select = format!(
            "SELECT DISTINCT network FROM {} WHERE starts_at >= $1 AND starts_at < $2 LIMIT $3",
            UsageDetail::Networks.table(query.step)
        );
        let rows: Vec<(String,)> = fetch!(
            fetch_all,
            self.pool().await?,
            AssertSqlSafe(select),
            column(query.since),
            column(query.until),
            NETWORKS_MAX
        )?;
        Ok(rows.into_iter().map(|(network,)| network).collect())
    }

    /// The next accounts after one that have used something on the days of this time, in order.
    pub async fn used_accounts(
        &self,
        time: (u64, u64),
        after: &str,
        count: usize,
    ) -> Result<Vec<String>, StoreFailure> {
        let Some(select) = used_statement(time, "usage_day_accounts", "account", "account > $1", "$2") else {
            return Ok(Vec::new());
        };
        let rows: Vec<(String,)> = fetch!(
            fetch_all,
            self.pool().await?,
            AssertSqlSafe(select),
            after.replace('\0', ""),
            column(count as u64)
        )?;
        Ok(rows.into_iter().map(|(account,)| account).collect())
    }

    /// The next keys after one that were used on the days of this time, in the order of account and key; those of one account
    /// if it is named.
    pub async fn used_keys(
        &self,
        time: (u64, u64),
        account: Option<&str>,
        after: &UsedKey,
        count: usize,
    ) -> Result<Vec<UsedKey>, StoreFailure> {
        let condition = match account {
            Some(_) => "account = $1 AND key_id > $2",
            None => "account > '' AND (account, key_id) > ($1, $2)",
        };
        let Some(select) = used_statement(time, "usage_day_keys", "account, key_id", condition, "$3") else {
            return Ok(Vec::new());
        };
        let account = account.unwrap_or(&after.account).replace('\0', "");
        let rows: Vec<(String, String)> = fetch!(
            fetch_all,
            self.pool().await?,
            AssertSqlSafe(select),
            account,
            after.key.replace('\0', ""),
            column(count as u64)
        )?;
        Ok(rows.into_iter().map(|(account, key)| UsedKey { account, key }).collect())
    }

    /// The accounts that have a key with this id, as far as it was used; at most `count`.
    pub async fn accounts_with_key(&self, key: &str, count: usize) -> Result<Vec<String>, StoreFailure> {
        let select = "SELECT DISTINCT account FROM usage_day_keys WHERE key_id = $1 AND account > '' ORDER BY account LIMIT $2";
        let rows: Vec<(String,)> =
            fetch!(fetch_all, self.pool().await?, select, key.replace('\0', ""), column(count as u64))?;
        Ok(rows.into_iter().map(|(account,)| account).collect())
    }
}

/// The statement for the accounts or keys of the days of a time; `None` if that has no day. Each day is looked at by itself, because
/// an index then finds what was used on it without reading what was used on others.
fn used_statement(
    (since, until): (u64, u64),
    table: &str,
    columns: &str,
    condition: &str,
    count: &str,
) -> Option<String> {
    let (first, day) = (UsageStep::Day.start(since), UsageStep::Day.seconds());
    let days = until.saturating_sub(first).div_ceil(day);
    let order = format!("ORDER BY {columns} LIMIT {count}");
    let of_days =
        |days: String| format!("SELECT DISTINCT {columns} FROM {table} WHERE {condition} AND {days} {order}");
    match days {
        0 => None,
        1 => Some(of_days(format!("day = {first}"))),
        2..=DAYS_NAMED_MAX => {
            let of_day = |number| {
                let select = of_days(format!("day = {}", first + number * day));
                format!("SELECT {columns} FROM ({select}) AS day_{number}")
            };
            let days: Vec<_> = (0..days).map(of_day).collect();
            Some(format!("{} {order}", days.join(" UNION ")))
        }
        _ => Some(of_days(format!("day >= {first} AND day < {}", column(until)))),
    }
}

/// The condition for the time. Few steps are named one by one if there is a condition for accounts or keys, because an index then
/// finds them without reading what others have used.
fn time_condition(query: &UsageQuery) -> String {
    let range = "starts_at >= $1 AND starts_at < $2".to_owned();
    let (first, steps) = query.steps();
    let is_narrow = query.accounts.is_some() || query.is_of_keys();
    if !is_narrow || steps > STEPS_NAMED_MAX {
        return range;
    }
    let starts: Vec<_> = (0..steps).map(|step| (first + step * query.step.seconds()).to_string()).collect();
    format!("{range} AND starts_at IN ({})", starts.join(", "))
}

fn statement(query: &UsageQuery, networks: Option<&[String]>) -> String {
    let columns = UsageDimension::ALL.map(|dimension| match query.by.contains(&dimension) {
        true => dimension.column(),
        false => dimension.all_values(),
    });
    let sum = |expression: String| format!("CAST(COALESCE(SUM({expression}), 0) AS BIGINT)");
    // The sum of nanoseconds can exceed the largest number of a column, so there is one of microseconds and one of the rests.
    let latencies = ["latency_ns / 1000", "latency_ns % 1000"].map(str::to_owned);
    let numbers = count_columns().into_iter().filter(|name| name != "latency_ns");
    let sums = numbers.chain(latencies).map(sum);
    let filters = query.filters();
    let mut conditions = time_condition(query);
    for ((condition, _), argument) in filters.iter().zip(4..) {
        // Writing to a string cannot fail.
        let _ok = write!(conditions, " AND {condition} ${argument}");
    }
    if let Some(networks) = networks {
        let first = 4 + filters.len();
        let arguments: Vec<_> =
            (first..first + networks.len()).map(|argument| format!("${argument}")).collect();
        // Without any network there is no usage.
        let arguments = if arguments.is_empty() { "NULL".to_owned() } else { arguments.join(", ") };
        let _ok = write!(conditions, " AND network IN ({arguments})");
    }
    let by: Vec<_> = query.by.iter().map(|dimension| dimension.column()).collect();
    let by = match by.as_slice() {
        [] => String::new(),
        by => format!(" GROUP BY {0} ORDER BY {0}", by.join(", ")),
    };
    format!(
        "SELECT {}, {} FROM {} WHERE {conditions}{by} LIMIT $3",
        columns.join(", "),
        sums.collect::<Vec<_>>().join(", "),
        query.detail().table(query.step)
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
            tag: text(6)?,
        };
        let mut counts = UsageCounts {
            calls: number(7)?,
            credits: number(8)?,
            bytes_in: number(9)?,
            bytes_out: number(10)?,
            ..UsageCounts::default()
        };
        for (bucket, at) in counts.latency_buckets.iter_mut().zip(11..) {
            *bucket = number(at)?;
        }
        let (microseconds, rest) = (number(11 + BUCKETS)?, number(12 + BUCKETS)?);
        counts.latency_ns = microseconds.saturating_mul(1_000).saturating_add(rest);
        Ok(Self(UsageRow { group, counts }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::OnBackend;
    use crate::location::StoreLocation;

    fn query(by: &[UsageDimension]) -> UsageQuery {
        UsageQuery {
            step: UsageStep::Day,
            since: 86_400,
            until: 3 * 86_400,
            account: None,
            key: None,
            network: None,
            tag: None,
            by: by.iter().copied().collect(),
            accounts: None,
            keys: None,
        }
    }

    #[test]
    fn a_report_is_read_from_the_smallest_table() {
        let text = || Some("a".to_owned());
        for (query, detail) in [
            (query(&[]), UsageDetail::Networks),
            (query(&[UsageDimension::Time, UsageDimension::Method]), UsageDetail::Networks),
            (query(&[UsageDimension::Account]), UsageDetail::Accounts),
            (UsageQuery { account: text(), ..query(&[UsageDimension::Outcome]) }, UsageDetail::Accounts),
            (query(&[UsageDimension::Key]), UsageDetail::Keys),
            (UsageQuery { key: text(), ..query(&[]) }, UsageDetail::Keys),
            (query(&[UsageDimension::Tag]), UsageDetail::Tags),
            (UsageQuery { tag: text(), key: text(), ..query(&[]) }, UsageDetail::Tags),
        ] {
            assert_eq!(query.detail(), detail, "{query:?}");
        }
    }

    /// A report of one key or of some accounts read everything that all had used.
    #[tokio::test]
    async fn sqlite_searches_for_what_a_report_needs() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(StoreLocation::in_data_dir(folder.path()));
        let OnBackend::Sqlite(pool) = store.pool().await.unwrap() else { panic!("not SQLite") };
        let (text, range) = (|| Some("a".to_owned()), || Some(("a".to_owned(), "b".to_owned())));
        for query in [
            query(&[UsageDimension::Method]),
            UsageQuery { accounts: range(), ..query(&[UsageDimension::Account]) },
            UsageQuery { account: text(), ..query(&[UsageDimension::Time]) },
            UsageQuery { account: text(), keys: range(), ..query(&[UsageDimension::Key]) },
            UsageQuery { account: text(), key: text(), ..query(&[]) },
            query(&[UsageDimension::Tag]),
            UsageQuery {
                account: text(),
                keys: range(),
                ..query(&[UsageDimension::Tag, UsageDimension::Key])
            },
        ] {
            let statement = statement(&query, Some(&["demo".to_owned()]));
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
            let plan: Vec<(i64, i64, i64, String)> = sqlx::query_as(explain).fetch_all(pool).await.unwrap();
            let has = |start: &str| plan.iter().any(|(.., line)| line.starts_with(start));
            assert!(has("SEARCH usage") && !has("SCAN usage"), "{plan:?}");
        }
    }
}
