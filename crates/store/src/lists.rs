//! Lists for people: accounts, keys, users and the audit log, page by page.
//!
//! A page begins where the one before ended, so it costs the same wherever it is in a list. Each statement reads one range of
//! an index for each way in which a row can be found. Names are compared without regard to the case of A to Z.

use sqlx::Row;

use crate::backend::{OnBackend, each_backend, fetch, fetch_value};
use crate::columns::{AccountColumns, KeyColumns, is_storable};
use crate::failure::StoreFailure;
use crate::list_page::{ListPage, NamePosition, end_of, folded, key_page};
use crate::operation_timeout::within_timeout;
use crate::policy::PAGE_ROWS;
use crate::records::{AccountRecord, AuditRecord, KeyRecord, KeyStatus};
use crate::store::Store;

/// Entries of the audit log that are counted at most: it grows for ever.
pub const AUDIT_COUNT_MAX: i64 = 1_000_000;

/// The position of a key in the list of its account: keys that are not revoked first, and the newest before the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAgePosition {
    pub is_active: bool,
    pub created_at: i64,
    pub id: String,
}

impl KeyAgePosition {
    pub fn of(key: &KeyRecord) -> Self {
        let is_active = key.status == KeyStatus::Active;
        Self { is_active, created_at: key.created_at, id: key.id.clone() }
    }
}

/// Which entries of the audit log are listed: those that have one of these texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSearch {
    pub subject: String,
    pub actor: String,
    pub action: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCounts {
    /// Revoked and expired ones included.
    pub all: i64,
    /// Neither revoked nor expired.
    pub valid: i64,
}

const ACCOUNTS_BY_NAME: &str = "SELECT id, name, plan, status, created_at, revision FROM accounts \
     WHERE (folded_name, id) > ($1, $2) AND folded_name < $3 ORDER BY folded_name, id LIMIT $4";
const COUNT_ACCOUNTS: &str = "SELECT COUNT(*) FROM accounts WHERE folded_name >= $1 AND folded_name < $2";

// The settings of keys are left out of lists, because those of many keys take much memory.
const KEYS_BY_AGE: &str = "SELECT id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, status, \
     '{}' AS settings, revision FROM api_keys WHERE account_id = $1 AND (is_active, created_at, id) < ($2, $3, $4) \
     ORDER BY is_active DESC, created_at DESC, id DESC LIMIT $5";
const KEYS_BY_NAME: &str = "SELECT id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, status, \
     '{}' AS settings, revision FROM api_keys WHERE account_id = $1 AND (folded_name, id) > ($2, $3) \
     AND folded_name < $4 ORDER BY folded_name, id LIMIT $5";
const COUNT_KEYS_BY_NAME: &str =
    "SELECT COUNT(*) FROM api_keys WHERE account_id = $1 AND folded_name >= $2 AND folded_name < $3";
const KEYS_BY_PREFIX: &str = "SELECT id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, status, \
     '{}' AS settings, revision FROM api_keys WHERE id IN ( \
     SELECT id FROM (SELECT id FROM api_keys WHERE prefix >= $1 AND prefix < $2 ORDER BY prefix, id LIMIT $3) AS by_prefix \
     UNION SELECT id FROM (SELECT id FROM api_keys WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3) AS by_id) \
     ORDER BY prefix, id LIMIT $3";
const KEYS_OF_ACCOUNT_BY_PREFIX: &str = "SELECT id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, \
     status, '{}' AS settings, revision FROM api_keys WHERE id IN ( \
     SELECT id FROM (SELECT id FROM api_keys WHERE account_id = $4 AND prefix >= $1 AND prefix < $2 \
     ORDER BY prefix, id LIMIT $3) AS by_prefix \
     UNION SELECT id FROM (SELECT id FROM api_keys WHERE account_id = $4 AND id >= $1 AND id < $2 \
     ORDER BY id LIMIT $3) AS by_id) ORDER BY prefix, id LIMIT $3";
const COUNT_KEYS: &str = "SELECT COUNT(*), COALESCE(SUM(CASE WHEN status = 'active' \
     AND (expires_at IS NULL OR expires_at > $2) THEN 1 ELSE 0 END), 0) FROM api_keys WHERE account_id = $1";

const AUDIT_ENTRIES: &str = "SELECT id, at, actor, action, subject, details FROM audit_entries \
     WHERE id < $1 ORDER BY id DESC LIMIT $2";
const FOUND_AUDIT_ENTRIES: &str = "SELECT id, at, actor, action, subject, details FROM \
     (SELECT * FROM audit_entries WHERE folded_subject = $3 AND id < $1 ORDER BY id DESC LIMIT $2) AS by_subject \
     UNION SELECT id, at, actor, action, subject, details FROM \
     (SELECT * FROM audit_entries WHERE actor = $4 AND id < $1 ORDER BY id DESC LIMIT $2) AS by_actor \
     UNION SELECT id, at, actor, action, subject, details FROM \
     (SELECT * FROM audit_entries WHERE action = $5 AND id < $1 ORDER BY id DESC LIMIT $2) AS by_action \
     ORDER BY id DESC LIMIT $2";
const COUNT_AUDIT_ENTRIES: &str = "SELECT COUNT(*) FROM (SELECT id FROM audit_entries LIMIT $1) AS counted";
const COUNT_FOUND_AUDIT_ENTRIES: &str = "SELECT COUNT(*) FROM ( \
     SELECT id FROM (SELECT id FROM audit_entries WHERE folded_subject = $2 LIMIT $1) AS by_subject \
     UNION SELECT id FROM (SELECT id FROM audit_entries WHERE actor = $3 LIMIT $1) AS by_actor \
     UNION SELECT id FROM (SELECT id FROM audit_entries WHERE action = $4 LIMIT $1) AS by_action) AS counted";

impl Store {
    /// Accounts whose names begin with a text, in the order of their names, after a position.
    pub async fn accounts_by_name(
        &self,
        start: &str,
        after: Option<&NamePosition<i64>>,
        count: i64,
    ) -> Result<ListPage<AccountRecord>, StoreFailure> {
        let (start, count) = (folded(start), count.clamp(0, PAGE_ROWS));
        let first = NamePosition { folded_name: start.clone(), id: 0 };
        let after = after.unwrap_or(&first);
        if !is_storable(&start) || !is_storable(&after.folded_name) {
            return Ok(ListPage::default());
        }
        let rows: Vec<AccountColumns> = fetch!(
            fetch_all,
            self.pool().await?,
            ACCOUNTS_BY_NAME,
            &after.folded_name,
            after.id,
            end_of(&start),
            count + 1
        )?;
        Ok(ListPage::of(rows.into_iter().map(|columns| columns.into_row_at().1).collect(), count))
    }

    /// How many accounts have names that begin with a text.
    pub async fn count_accounts(&self, start: &str) -> Result<i64, StoreFailure> {
        let start = folded(start);
        if !is_storable(&start) {
            return Ok(0);
        }
        fetch_value!(self.pool().await?, COUNT_ACCOUNTS, &start, end_of(&start))
    }

    /// The keys of an account after a position.
    pub async fn keys_by_age(
        &self,
        account_id: i64,
        after: Option<&KeyAgePosition>,
        count: i64,
    ) -> Result<ListPage<KeyRecord>, StoreFailure> {
        let count = count.clamp(0, PAGE_ROWS);
        // No key has a larger value of `is_active` than 1.
        let (is_active, created_at, id) = after.map_or((2, 0, ""), |position| {
            (i64::from(position.is_active), position.created_at, position.id.as_str())
        });
        if !is_storable(id) {
            return Ok(ListPage::default());
        }
        let rows: Vec<KeyColumns> = fetch!(
            fetch_all,
            self.pool().await?,
            KEYS_BY_AGE,
            account_id,
            is_active,
            created_at,
            id,
            count + 1
        )?;
        key_page(rows, count)
    }

    /// The keys of an account whose names begin with a text, in the order of their names, after a position.
    pub async fn keys_by_name(
        &self,
        account_id: i64,
        start: &str,
        after: Option<&NamePosition<String>>,
        count: i64,
    ) -> Result<ListPage<KeyRecord>, StoreFailure> {
        let (start, count) = (folded(start), count.clamp(0, PAGE_ROWS));
        let first = NamePosition { folded_name: start.clone(), id: String::new() };
        let after = after.unwrap_or(&first);
        if [&start, &after.folded_name, &after.id].into_iter().any(|text| !is_storable(text)) {
            return Ok(ListPage::default());
        }
        let rows: Vec<KeyColumns> = fetch!(
            fetch_all,
            self.pool().await?,
            KEYS_BY_NAME,
            account_id,
            &after.folded_name,
            &after.id,
            end_of(&start),
            count + 1
        )?;
        key_page(rows, count)
    }

    /// How many keys of an account have names that begin with a text.
    pub async fn count_keys_by_name(&self, account_id: i64, start: &str) -> Result<i64, StoreFailure> {
        let start = folded(start);
        if !is_storable(&start) {
            return Ok(0);
        }
        fetch_value!(self.pool().await?, COUNT_KEYS_BY_NAME, account_id, &start, end_of(&start))
    }

    /// The keys that begin with these characters, or whose ids do, of one account or of all.
    pub async fn keys_by_prefix(
        &self,
        account_id: Option<i64>,
        start: &str,
        count: i64,
    ) -> Result<ListPage<KeyRecord>, StoreFailure> {
        let (start, count) = (folded(start), count.clamp(0, PAGE_ROWS));
        if !is_storable(&start) {
            return Ok(ListPage::default());
        }
        let statement = account_id.map_or(KEYS_BY_PREFIX, |_| KEYS_OF_ACCOUNT_BY_PREFIX);
        let rows: Vec<KeyColumns> = each_backend!(self.pool().await?, pool => {
            let mut query = sqlx::query_as(statement).bind(&start).bind(end_of(&start)).bind(count + 1);
            if let Some(account_id) = account_id {
                query = query.bind(account_id);
            }
            within_timeout(query.fetch_all(pool)).await?
        });
        key_page(rows, count)
    }

    /// The ids and names of some keys of an account.
    pub async fn key_names(
        &self,
        account_id: i64,
        ids: &[&str],
    ) -> Result<Vec<(String, String)>, StoreFailure> {
        match self.pool().await? {
            OnBackend::Sqlite(pool) => {
                let select = "SELECT id, name FROM api_keys WHERE account_id = $1 \
                              AND id IN (SELECT value FROM json_each($2))";
                let ids = serde_json::json!(ids).to_string();
                within_timeout(sqlx::query_as(select).bind(account_id).bind(ids).fetch_all(pool)).await
            }
            OnBackend::Postgres(pool) => {
                let select = "SELECT id, name FROM api_keys WHERE account_id = $1 AND id = ANY($2)";
                within_timeout(sqlx::query_as(select).bind(account_id).bind(ids).fetch_all(pool)).await
            }
        }
    }

    /// How many keys an account has at `now`.
    pub async fn key_counts(&self, account_id: i64, now: i64) -> Result<KeyCounts, StoreFailure> {
        let (all, valid): (i64, i64) = fetch!(fetch_one, self.pool().await?, COUNT_KEYS, account_id, now)?;
        Ok(KeyCounts { all, valid })
    }

    /// The newest `count` entries of the audit log before the entry `before`, the newest first.
    pub async fn audit_entries(
        &self,
        search: Option<&AuditSearch>,
        before: i64,
        count: i64,
    ) -> Result<ListPage<AuditRecord>, StoreFailure> {
        let count = count.clamp(0, PAGE_ROWS);
        if search.is_some_and(|search| !search.is_storable()) {
            return Ok(ListPage::default());
        }
        type Columns = (i64, i64, String, String, String, String);
        let statement = search.map_or(AUDIT_ENTRIES, |_| FOUND_AUDIT_ENTRIES);
        let rows: Vec<Columns> = each_backend!(self.pool().await?, pool => {
            let mut query = sqlx::query_as(statement).bind(before).bind(count + 1);
            if let Some(AuditSearch { subject, actor, action }) = search {
                query = query.bind(folded(subject)).bind(actor).bind(action);
            }
            within_timeout(query.fetch_all(pool)).await?
        });
        let row = |(id, at, actor, action, subject, details)| AuditRecord {
            id,
            at,
            actor,
            action,
            subject,
            details,
        };
        Ok(ListPage::of(rows, count).map(row))
    }

    /// How many entries the audit log has, but at most one more than [`AUDIT_COUNT_MAX`].
    pub async fn count_audit_entries(&self, search: Option<&AuditSearch>) -> Result<i64, StoreFailure> {
        if search.is_some_and(|search| !search.is_storable()) {
            return Ok(0);
        }
        let statement = search.map_or(COUNT_AUDIT_ENTRIES, |_| COUNT_FOUND_AUDIT_ENTRIES);
        Ok(each_backend!(self.pool().await?, pool => {
            let mut query = sqlx::query(statement).bind(AUDIT_COUNT_MAX + 1);
            if let Some(AuditSearch { subject, actor, action }) = search {
                query = query.bind(folded(subject)).bind(actor).bind(action);
            }
            within_timeout(query.fetch_one(pool)).await?.try_get(0)?
        }))
    }
}

impl AuditSearch {
    fn is_storable(&self) -> bool {
        [&self.subject, &self.actor, &self.action].into_iter().all(|text| is_storable(text))
    }
}

#[cfg(test)]
mod tests;
