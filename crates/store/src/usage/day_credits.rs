//! The credits that were used on a day, by account and by key.

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlx::AssertSqlSafe;

use super::usage_row::UsageRow;
use super::{UsageStep, column};
use crate::backend::{BackendTransaction, each_backend};
use crate::failure::StoreFailure;
use crate::operation_timeout::within_timeout;
use crate::policy::PAGE_ROWS;
use crate::store::Store;

/// Rows that one statement adds. Few sizes, because each is a prepared statement of every connection.
const STATEMENT_ROWS: [usize; 3] = [256, 16, 1];

/// The credits that all processes have used on a day.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DayTotal {
    /// The first second of the day.
    pub day: u64,
    /// Empty for what the gateway itself has used.
    pub account: Arc<str>,
    /// `None` for all keys of the account together.
    pub key: Option<Arc<str>>,
    pub credits: u64,
}

type DayColumns = (String, String, i64, i64);

impl DayTotal {
    fn from_columns((account, key, day, credits): DayColumns) -> Self {
        let number = |number: i64| u64::try_from(number).unwrap_or(0);
        let key = if key.is_empty() { None } else { Some(key.into()) };
        Self { day: number(day), account: account.into(), key, credits: number(credits) }
    }
}

/// Adds the credits of rows to those of their days. Returns the totals of these accounts and keys.
pub(super) async fn add_day_credits(
    transaction: &mut BackendTransaction,
    rows: impl Iterator<Item = &UsageRow>,
) -> Result<Vec<DayTotal>, StoreFailure> {
    let (mut accounts, mut keys) = (BTreeMap::new(), BTreeMap::new());
    for UsageRow { group, counts } in rows {
        let day = UsageStep::Day.start(group.starts_at);
        *accounts.entry((Arc::clone(&group.account), day)).or_insert(0) += counts.credits;
        *keys.entry((Arc::clone(&group.account), Arc::clone(&group.key), day)).or_insert(0) += counts.credits;
    }
    // The use of the gateway itself is only looked up by key.
    accounts.retain(|(account, _), _| !account.is_empty());
    let accounts: Vec<DayTotal> = accounts
        .into_iter()
        .map(|((account, day), credits)| DayTotal { day, account, key: None, credits })
        .collect();
    let keys: Vec<DayTotal> = keys
        .into_iter()
        .map(|((account, key, day), credits)| DayTotal { day, account, key: Some(key), credits })
        .collect();
    let mut totals =
        add(transaction, "usage_day_accounts (account, day, credits)", "account, day", &accounts).await?;
    let keys =
        add(transaction, "usage_day_keys (account, key_id, day, credits)", "account, key_id, day", &keys)
            .await?;
    totals.extend(keys);
    Ok(totals)
}

async fn add(
    transaction: &mut BackendTransaction,
    into: &str,
    primary_key: &str,
    mut rows: &[DayTotal],
) -> Result<Vec<DayTotal>, StoreFailure> {
    let mut totals = Vec::new();
    for size in STATEMENT_ROWS {
        while let Some((some, rest)) = rows.split_at_checked(size) {
            let columns: Vec<DayColumns> = each_backend!(&mut *transaction, connection => {
                let mut insert = sqlx::query_as(AssertSqlSafe(statement(into, primary_key, size)));
                for DayTotal { day, account, key, credits } in some {
                    insert = insert.bind(&**account);
                    if let Some(key) = key {
                        insert = insert.bind(&**key);
                    }
                    insert = insert.bind(column(*day)).bind(column(*credits));
                }
                within_timeout(insert.fetch_all(&mut **connection)).await?
            });
            totals.extend(columns.into_iter().map(DayTotal::from_columns));
            rows = rest;
        }
    }
    Ok(totals)
}

fn statement(into: &str, primary_key: &str, rows: usize) -> String {
    let table = into.split(' ').next().unwrap_or_default();
    let (width, key) = match primary_key.contains("key_id") {
        true => (4, "key_id"),
        false => (3, "CAST('' AS TEXT)"),
    };
    let values = (0..rows).map(|row| {
        let arguments: Vec<_> = (1..=width).map(|at| format!("${}", row * width + at)).collect();
        format!("({})", arguments.join(", "))
    });
    let values = values.collect::<Vec<_>>().join(", ");
    format!(
        "INSERT INTO {into} VALUES {values} ON CONFLICT ({primary_key}) \
         DO UPDATE SET credits = {table}.credits + excluded.credits RETURNING account, {key}, day, credits"
    )
}

impl Store {
    /// Calls `each` with every account, and with every key, that has used credits on a day. `day` is its first second. No
    /// statement reads more than a page of them.
    pub async fn credits_of_day(&self, day: u64, mut each: impl FnMut(DayTotal)) -> Result<(), StoreFailure> {
        let accounts = "SELECT account, CAST('' AS TEXT), day, credits FROM usage_day_accounts \
                        WHERE day = $1 AND account > $2 ORDER BY account LIMIT $3";
        let keys = "SELECT account, key_id, day, credits FROM usage_day_keys \
                    WHERE day = $1 AND (account, key_id) > ($2, $4) ORDER BY account, key_id LIMIT $3";
        for statement in [accounts, keys] {
            let (mut account, mut key) = (String::new(), String::new());
            loop {
                let page: Vec<DayColumns> = each_backend!(self.pool().await?, pool => {
                    let mut select =
                        sqlx::query_as(statement).bind(column(day)).bind(&account).bind(PAGE_ROWS);
                    if statement == keys {
                        select = select.bind(&key);
                    }
                    within_timeout(select.fetch_all(pool)).await?
                });
                let is_last = (page.len() as i64) < PAGE_ROWS;
                if let Some(last) = page.last() {
                    (account, key) = (last.0.clone(), last.1.clone());
                }
                page.into_iter().for_each(|columns| each(DayTotal::from_columns(columns)));
                if is_last {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Deletes credits of days before `cutoff`, but not all at once if there are many. Returns how many rows it has deleted.
    pub(super) async fn delete_day_credits_before(&self, cutoff: u64) -> Result<u64, StoreFailure> {
        let mut deleted = 0;
        for (table, primary_key) in
            [("usage_day_accounts", "account, day"), ("usage_day_keys", "account, key_id, day")]
        {
            deleted += self.delete_some(table, primary_key, "day", column(cutoff)).await?;
        }
        Ok(deleted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_adds_and_returns_totals() {
        assert_eq!(
            statement("usage_day_accounts (account, day, credits)", "account, day", 2),
            "INSERT INTO usage_day_accounts (account, day, credits) VALUES ($1, $2, $3), ($4, $5, $6) \
             ON CONFLICT (account, day) DO UPDATE SET credits = usage_day_accounts.credits + excluded.credits \
             RETURNING account, CAST('' AS TEXT), day, credits"
        );
    }

    #[test]
    fn sizes_of_statements_end_with_one_row() {
        assert_eq!(STATEMENT_ROWS.last(), Some(&1));
    }
}
