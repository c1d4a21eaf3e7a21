//! Changes of the store. One transaction is one change: it has one revision, and is committed as a whole or not at all.

use std::fmt;

use crate::backend::{BackendPool, BackendTransaction, OnBackend, execute, fetch, fetch_value};
use crate::columns::{AccountColumns, KeyColumns, hash_bytes, is_storable};
use crate::failure::StoreFailure;
use crate::hash_key::{HASH_BYTES, HashKey};
use crate::listener::CHANNEL;
use crate::operation_timeout::within_timeout;
use crate::pool;
use crate::records::{AccountRecord, AuditRecord, KeyRecord};

/// An open change. Dropping it undoes everything.
///
/// While it is open, no other change can begin, so everything that it reads stays true until it is committed.
pub struct StoreTransaction {
    transaction: BackendTransaction,
    revision: i64,
}

impl fmt::Debug for StoreTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreTransaction({})", self.revision)
    }
}

impl StoreTransaction {
    pub(crate) async fn begin(pool: &BackendPool) -> Result<Self, StoreFailure> {
        let mut transaction = within_timeout(pool::begin(pool)).await?;
        let update = "UPDATE store_state SET revision = revision + 1 WHERE id = 1 RETURNING revision";
        let revision = fetch_value!(&mut transaction, update)?;
        Ok(Self { transaction, revision })
    }

    /// The open transaction, for the statements of other modules.
    pub(crate) fn backend(&mut self) -> &mut BackendTransaction {
        &mut self.transaction
    }

    /// Commits the change and notifies all processes; returns its revision.
    ///
    /// If this fails because the connection broke, the change may have been made all the same.
    pub async fn commit(mut self) -> Result<i64, StoreFailure> {
        if let OnBackend::Postgres(connection) = &mut self.transaction {
            let notify =
                sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(self.revision.to_string());
            within_timeout(notify.execute(&mut **connection)).await?;
        }
        within_timeout(pool::commit(self.transaction)).await?;
        Ok(self.revision)
    }

    /// The secret with which keys and secrets are hashed.
    ///
    /// It is read on the connection of the change. If every connection were in a change that waits for this one, another one
    /// could not be had, and all of them would wait until they time out.
    pub async fn hash_key(&mut self) -> Result<HashKey, StoreFailure> {
        let query = "SELECT hash_key FROM store_state WHERE id = 1";
        let bytes: Vec<u8> = fetch_value!(&mut self.transaction, query)?;
        Ok(HashKey::from_bytes(hash_bytes(bytes)?))
    }

    pub async fn account_named(&mut self, name: &str) -> Result<Option<AccountRecord>, StoreFailure> {
        if !is_storable(name) {
            return Ok(None);
        }
        let query = "SELECT id, name, plan, status, created_at, revision FROM accounts WHERE name = $1";
        let row: Option<AccountColumns> = fetch!(fetch_optional, &mut self.transaction, query, name)?;
        Ok(row.map(|columns| columns.into_row_at().1))
    }

    pub async fn account(&mut self, id: i64) -> Result<Option<AccountRecord>, StoreFailure> {
        let query = "SELECT id, name, plan, status, created_at, revision FROM accounts WHERE id = $1";
        let row: Option<AccountColumns> = fetch!(fetch_optional, &mut self.transaction, query, id)?;
        Ok(row.map(|columns| columns.into_row_at().1))
    }

    /// Adds an account; `account.id` is ignored, and the new id returned.
    pub async fn insert_account(&mut self, account: &AccountRecord) -> Result<i64, StoreFailure> {
        let insert = "INSERT INTO accounts (name, plan, status, created_at, revision) \
                      VALUES ($1, $2, $3, $4, $5) RETURNING id";
        let AccountRecord { id: _, name, plan, status, created_at } = account;
        fetch_value!(&mut self.transaction, insert, name, plan, status.name(), created_at, self.revision)
    }

    /// Writes the plan and the status of an account.
    pub async fn update_account(&mut self, account: &AccountRecord) -> Result<(), StoreFailure> {
        let update = "UPDATE accounts SET plan = $1, status = $2, revision = $3 WHERE id = $4";
        execute!(
            &mut self.transaction,
            update,
            &account.plan,
            account.status.name(),
            self.revision,
            account.id
        )
        .map(drop)
    }

    pub async fn key(&mut self, id: &str) -> Result<Option<KeyRecord>, StoreFailure> {
        if !is_storable(id) {
            return Ok(None);
        }
        let query = "SELECT id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, status, settings, \
                     revision FROM api_keys WHERE id = $1";
        let row: Option<KeyColumns> = fetch!(fetch_optional, &mut self.transaction, query, id)?;
        row.map(|columns| columns.into_row_at().map(|(_, row)| row)).transpose()
    }

    pub async fn key_with_hash(
        &mut self,
        hash: &[u8; HASH_BYTES],
    ) -> Result<Option<KeyRecord>, StoreFailure> {
        let query = "SELECT id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, status, settings, \
                     revision FROM api_keys WHERE hash = $1";
        let row: Option<KeyColumns> = fetch!(fetch_optional, &mut self.transaction, query, &hash[..])?;
        row.map(|columns| columns.into_row_at().map(|(_, row)| row)).transpose()
    }

    /// How many keys of an account are accepted at `now`: neither revoked nor expired.
    pub async fn count_valid_keys(&mut self, account_id: i64, now: i64) -> Result<i64, StoreFailure> {
        let query = "SELECT COUNT(*) FROM api_keys WHERE account_id = $1 AND status = 'active' \
                     AND (expires_at IS NULL OR expires_at > $2)";
        fetch_value!(&mut self.transaction, query, account_id, now)
    }

    pub async fn insert_key(&mut self, key: &KeyRecord) -> Result<(), StoreFailure> {
        let insert = "INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, \
                      status, settings, revision) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        execute!(
            &mut self.transaction,
            insert,
            &key.id,
            key.account_id,
            &key.name,
            &key.prefix,
            &key.hash[..],
            key.created_at,
            key.last_used_at,
            key.expires_at,
            key.status.name(),
            &key.settings,
            self.revision
        )
        .map(drop)
    }

    /// Writes what can change of a key: its name, expiry, status and settings.
    pub async fn update_key(&mut self, key: &KeyRecord) -> Result<(), StoreFailure> {
        let update = "UPDATE api_keys SET name = $1, expires_at = $2, status = $3, settings = $4, revision = $5 \
                      WHERE id = $6";
        execute!(
            &mut self.transaction,
            update,
            &key.name,
            key.expires_at,
            key.status.name(),
            &key.settings,
            self.revision,
            &key.id
        )
        .map(drop)
    }

    /// Adds an entry to the audit log; `entry.id` is ignored.
    pub async fn add_audit_entry(&mut self, entry: &AuditRecord) -> Result<(), StoreFailure> {
        let insert =
            "INSERT INTO audit_entries (at, actor, action, subject, details) VALUES ($1, $2, $3, $4, $5)";
        let AuditRecord { id: _, at, actor, action, subject, details } = entry;
        execute!(&mut self.transaction, insert, at, actor, action, subject, details).map(drop)
    }
}
