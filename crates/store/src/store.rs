//! The store, and everything that is read from it.

use std::fmt;
use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::backend::{BackendPool, OnBackend, each_backend, fetch, fetch_value};
use crate::columns::{AccountColumns, KeyColumns, hash_bytes, is_storable};
use crate::failure::StoreFailure;
use crate::hash_key::HashKey;
use crate::list_page::{ListPage, key_page};
use crate::listener::ChangeListener;
use crate::location::StoreLocation;
use crate::operation_timeout::within_timeout;
use crate::policy::PAGE_ROWS;
use crate::pool;
use crate::records::{AccountRecord, ChangeMark, KeyRecord, RowPosition, StoreHistory};
use crate::transaction::StoreTransaction;

/// Keys that one statement reads at most. Each can have settings of 64 KiB, which makes 32 MiB.
pub const KEY_PAGE_ROWS: i64 = 500;

/// A handle of the store; clones share its connections.
///
/// The database is opened by the first operation, and again by the next one if that fails, so a store that is down at the
/// start is used as soon as it is back. The connections belong to the runtime of that operation: each runtime needs its own
/// `Store`.
#[derive(Clone)]
pub struct Store {
    shared: Arc<OpenStore>,
}

struct OpenStore {
    location: StoreLocation,
    pool: OnceCell<BackendPool>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.shared.location)
    }
}

impl Store {
    pub fn new(location: StoreLocation) -> Self {
        Self { shared: Arc::new(OpenStore { location, pool: OnceCell::new() }) }
    }

    pub fn location(&self) -> &StoreLocation {
        &self.shared.location
    }

    /// Connects and brings the tables up to date, unless that is done already. Large tables take minutes, so this is not limited
    /// like other operations.
    pub async fn prepare(&self) -> Result<(), StoreFailure> {
        let OpenStore { location, pool } = &*self.shared;
        pool.get_or_try_init(|| Box::pin(pool::open(location))).await.map(drop)
    }

    pub(crate) async fn pool(&self) -> Result<&BackendPool, StoreFailure> {
        let OpenStore { location, pool } = &*self.shared;
        // The limit includes the wait for others that open the store, because each of them can wait for a server that hangs.
        within_timeout(pool.get_or_try_init(|| Box::pin(pool::open(location)))).await
    }

    pub async fn close(&self) {
        if let Some(pool) = self.shared.pool.get() {
            each_backend!(pool, pool => pool.close().await);
        }
    }

    pub async fn begin_change(&self) -> Result<StoreTransaction, StoreFailure> {
        StoreTransaction::begin(self.pool().await?).await
    }

    /// Notifications about changes that any process makes; SQLite has none.
    pub async fn listen(&self) -> Result<Option<ChangeListener>, StoreFailure> {
        match self.pool().await? {
            OnBackend::Sqlite(_) => Ok(None),
            OnBackend::Postgres(pool) => ChangeListener::start(pool).await.map(Some),
        }
    }

    /// The secret with which keys and secrets are hashed.
    pub async fn hash_key(&self) -> Result<HashKey, StoreFailure> {
        let query = "SELECT hash_key FROM store_state WHERE id = 1";
        let bytes: Vec<u8> = fetch_value!(self.pool().await?, query)?;
        Ok(HashKey::from_bytes(hash_bytes(bytes)?))
    }

    /// The newest change, and the secret with which keys and secrets are hashed, as of the same moment.
    pub async fn newest_change(&self) -> Result<(ChangeMark, HashKey), StoreFailure> {
        let query = "SELECT revision, identity, hash_key FROM store_state JOIN store_changes USING (revision) WHERE id = 1";
        let (revision, identity, hash_key): (i64, String, Vec<u8>) =
            fetch!(fetch_one, self.pool().await?, query)?;
        Ok((ChangeMark { revision, identity }, HashKey::from_bytes(hash_bytes(hash_key)?)))
    }

    /// The newest change, and whether the store has the change that was seen last.
    pub async fn history(&self, seen: &ChangeMark) -> Result<StoreHistory, StoreFailure> {
        let query = "SELECT revision, identity, \
                     (SELECT COUNT(*) FROM store_changes WHERE revision = $1 AND identity = $2), \
                     (SELECT MIN(revision) FROM store_changes) \
                     FROM store_state JOIN store_changes USING (revision) WHERE id = 1";
        let (revision, identity, count, oldest): (i64, String, i64, i64) =
            fetch!(fetch_one, self.pool().await?, query, seen.revision, &seen.identity)?;
        let newest = ChangeMark { revision, identity };
        Ok(StoreHistory { newest, has_seen: count > 0, has_forgotten: seen.revision < oldest })
    }

    /// The next `PAGE_ROWS` accounts in the order in which they were changed last.
    pub async fn accounts_changed_after(
        &self,
        position: &RowPosition<i64>,
    ) -> Result<Vec<(RowPosition<i64>, AccountRecord)>, StoreFailure> {
        let query = "SELECT id, name, plan, status, created_at, revision FROM accounts \
                     WHERE (revision, id) > ($1, $2) ORDER BY revision, id LIMIT $3";
        let rows: Vec<AccountColumns> =
            fetch!(fetch_all, self.pool().await?, query, position.revision, position.id, PAGE_ROWS)?;
        Ok(rows.into_iter().map(AccountColumns::into_row_at).collect())
    }

    /// The next `count` keys, at most [`KEY_PAGE_ROWS`], in the order in which they were changed last.
    pub async fn keys_changed_after(
        &self,
        position: &RowPosition<String>,
        count: i64,
    ) -> Result<Vec<(RowPosition<String>, KeyRecord)>, StoreFailure> {
        let query = "SELECT id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, status, settings, \
                     revision FROM api_keys WHERE (revision, id) > ($1, $2) ORDER BY revision, id LIMIT $3";
        let rows: Vec<KeyColumns> =
            fetch!(fetch_all, self.pool().await?, query, position.revision, &position.id, count)?;
        rows.into_iter().map(KeyColumns::into_row_at).collect()
    }

    /// The next `PAGE_ROWS` accounts in the order of their ids.
    pub async fn accounts_after(&self, id: i64) -> Result<ListPage<AccountRecord>, StoreFailure> {
        let query = "SELECT id, name, plan, status, created_at, revision FROM accounts \
                     WHERE id > $1 ORDER BY id LIMIT $2";
        let rows: Vec<AccountColumns> = fetch!(fetch_all, self.pool().await?, query, id, PAGE_ROWS + 1)?;
        Ok(ListPage::of(rows.into_iter().map(|columns| columns.into_row_at().1).collect(), PAGE_ROWS))
    }

    /// The next [`KEY_PAGE_ROWS`] keys of an account in the order of their ids, revoked ones included.
    pub async fn keys_of(
        &self,
        account_id: i64,
        after_id: &str,
    ) -> Result<ListPage<KeyRecord>, StoreFailure> {
        if !is_storable(after_id) {
            return Ok(ListPage::default());
        }
        let query = "SELECT id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, status, settings, \
                     revision FROM api_keys WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3";
        let rows: Vec<KeyColumns> =
            fetch!(fetch_all, self.pool().await?, query, account_id, after_id, KEY_PAGE_ROWS + 1)?;
        key_page(rows, KEY_PAGE_ROWS)
    }

    pub async fn account_named(&self, name: &str) -> Result<Option<AccountRecord>, StoreFailure> {
        if !is_storable(name) {
            return Ok(None);
        }
        let query = "SELECT id, name, plan, status, created_at, revision FROM accounts WHERE name = $1";
        let row: Option<AccountColumns> = fetch!(fetch_optional, self.pool().await?, query, name)?;
        Ok(row.map(|columns| columns.into_row_at().1))
    }

    pub async fn account(&self, id: i64) -> Result<Option<AccountRecord>, StoreFailure> {
        let query = "SELECT id, name, plan, status, created_at, revision FROM accounts WHERE id = $1";
        let row: Option<AccountColumns> = fetch!(fetch_optional, self.pool().await?, query, id)?;
        Ok(row.map(|columns| columns.into_row_at().1))
    }

    pub async fn key(&self, id: &str) -> Result<Option<KeyRecord>, StoreFailure> {
        if !is_storable(id) {
            return Ok(None);
        }
        let query = "SELECT id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, status, settings, \
                     revision FROM api_keys WHERE id = $1";
        let row: Option<KeyColumns> = fetch!(fetch_optional, self.pool().await?, query, id)?;
        row.map(|columns| columns.into_row_at().map(|(_, row)| row)).transpose()
    }

    /// Records that keys were used at `at`, with one statement. This is not a change that others follow, so the revision
    /// stays.
    pub async fn record_key_uses(&self, ids: &[&str], at: i64) -> Result<(), StoreFailure> {
        match self.pool().await? {
            OnBackend::Sqlite(pool) => {
                let update = "UPDATE api_keys SET last_used_at = $1 WHERE id IN (SELECT value FROM json_each($2)) \
                              AND (last_used_at IS NULL OR last_used_at < $1)";
                let query = sqlx::query(update).bind(at).bind(serde_json::json!(ids).to_string());
                within_timeout(query.execute(pool)).await.map(drop)
            }
            OnBackend::Postgres(pool) => {
                // The rows are locked in one order everywhere, so that two processes cannot wait for each other.
                let update = "UPDATE api_keys SET last_used_at = $1 WHERE id IN (SELECT id FROM api_keys \
                              WHERE id = ANY($2) AND (last_used_at IS NULL OR last_used_at < $1) ORDER BY id FOR UPDATE)";
                within_timeout(sqlx::query(update).bind(at).bind(ids).execute(pool)).await.map(drop)
            }
        }
    }
}
