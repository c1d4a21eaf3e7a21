//! The use of single keys on a day, for lists of keys: an account can have too many keys for a report of all.

use sqlx::AssertSqlSafe;

use super::column;
use crate::backend::OnBackend;
use crate::columns::is_storable;
use crate::failure::StoreFailure;
use crate::operation_timeout::within_timeout;
use crate::store::Store;

/// The calls of a key on a day that ended in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDaySum {
    pub key: String,
    pub outcome: String,
    pub calls: u64,
    pub credits: u64,
}

impl Store {
    /// The use of some keys of an account on a day, over all networks. `day` is its first second.
    pub async fn key_day_sums(
        &self,
        account: &str,
        keys: &[&str],
        day: u64,
    ) -> Result<Vec<KeyDaySum>, StoreFailure> {
        if keys.is_empty() || !is_storable(account) {
            return Ok(Vec::new());
        }
        let select = "SELECT key_id, outcome, CAST(SUM(calls) AS BIGINT), CAST(SUM(credits) AS BIGINT) FROM usage_days \
                      WHERE account = $1 AND starts_at = $2";
        let group = "GROUP BY key_id, outcome";
        // With the networks of the day, the index finds these keys without reading the other ones of the account.
        let networks = "SELECT network FROM usage_network_days WHERE starts_at = $2";
        let rows: Vec<(String, String, i64, i64)> = match self.pool().await? {
            OnBackend::Sqlite(pool) => {
                let keys_of = "key_id IN (SELECT value FROM json_each($3))";
                let select = format!("{select} AND network IN ({networks}) AND {keys_of} {group}");
                let query = sqlx::query_as(AssertSqlSafe(select)).bind(account).bind(column(day));
                within_timeout(query.bind(serde_json::json!(keys).to_string()).fetch_all(pool)).await?
            }
            OnBackend::Postgres(pool) => {
                let networks = format!("network = ANY(ARRAY({networks}))");
                let select = format!("{select} AND {networks} AND key_id = ANY($3) {group}");
                let query = sqlx::query_as(AssertSqlSafe(select)).bind(account).bind(column(day)).bind(keys);
                within_timeout(query.fetch_all(pool)).await?
            }
        };
        let number = |number: i64| u64::try_from(number).unwrap_or(0);
        let sum = |(key, outcome, calls, credits)| KeyDaySum {
            key,
            outcome,
            calls: number(calls),
            credits: number(credits),
        };
        Ok(rows.into_iter().map(sum).collect())
    }
}
