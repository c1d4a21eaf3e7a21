//! Sessions: browsers in which a user is signed in.

use crate::backend::{execute, fetch};
use crate::columns::{hash_bytes, is_storable};
use crate::failure::StoreFailure;
use crate::hash_key::HASH_BYTES;
use crate::policy::PAGE_ROWS;
use crate::store::Store;
use crate::transaction::StoreTransaction;

/// A signed-in browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// Names the session on pages and in the audit log. It is not a secret.
    pub id: String,
    pub user_id: i64,
    /// The keyed hash of the token in the cookie.
    pub hash: [u8; HASH_BYTES],
    pub browser: String,
    /// The address that the session was last used from.
    pub address: String,
    pub created_at: i64,
    pub last_used_at: i64,
}

type SessionColumns = (String, i64, Vec<u8>, String, String, i64, i64);

fn session(columns: SessionColumns) -> Result<SessionRecord, StoreFailure> {
    let (id, user_id, hash, browser, address, created_at, last_used_at) = columns;
    let hash = hash_bytes(hash)?;
    Ok(SessionRecord { id, user_id, hash, browser, address, created_at, last_used_at })
}

impl Store {
    pub async fn session_with_hash(
        &self,
        hash: &[u8; HASH_BYTES],
    ) -> Result<Option<SessionRecord>, StoreFailure> {
        let query = "SELECT id, user_id, hash, browser, address, created_at, last_used_at FROM sessions \
                     WHERE hash = $1";
        let row: Option<SessionColumns> = fetch!(fetch_optional, self.pool().await?, query, &hash[..])?;
        row.map(session).transpose()
    }

    /// The sessions of a user, the one that was used last first.
    pub async fn sessions_of(&self, user_id: i64) -> Result<Vec<SessionRecord>, StoreFailure> {
        let query = "SELECT id, user_id, hash, browser, address, created_at, last_used_at FROM sessions \
                     WHERE user_id = $1 ORDER BY last_used_at DESC, id LIMIT $2";
        let rows: Vec<SessionColumns> = fetch!(fetch_all, self.pool().await?, query, user_id, PAGE_ROWS)?;
        rows.into_iter().map(session).collect()
    }

    /// Records from where and when a session was used. This is not a change that others follow.
    pub async fn record_session_use(&self, id: &str, address: &str, at: i64) -> Result<(), StoreFailure> {
        let update =
            "UPDATE sessions SET last_used_at = $1, address = $2 WHERE id = $3 AND last_used_at < $1";
        execute!(self.pool().await?, update, at, address, id).map(drop)
    }
}

impl StoreTransaction {
    pub async fn insert_session(&mut self, session: &SessionRecord) -> Result<(), StoreFailure> {
        let insert = "INSERT INTO sessions (id, user_id, hash, browser, address, created_at, last_used_at) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7)";
        execute!(
            self.backend(),
            insert,
            &session.id,
            session.user_id,
            &session.hash[..],
            &session.browser,
            &session.address,
            session.created_at,
            session.last_used_at
        )
        .map(drop)
    }

    /// Whether a user has the session with this id, expired or not.
    pub async fn has_session(&mut self, user_id: i64, id: &str) -> Result<bool, StoreFailure> {
        let query = "SELECT id FROM sessions WHERE user_id = $1 AND id = $2";
        let found: Option<(String,)> = fetch!(fetch_optional, self.backend(), query, user_id, id)?;
        Ok(found.is_some())
    }

    /// Ends a session of a user; returns whether there was one.
    pub async fn delete_session(&mut self, user_id: i64, id: &str) -> Result<bool, StoreFailure> {
        if !is_storable(id) {
            return Ok(false);
        }
        let delete = "DELETE FROM sessions WHERE user_id = $1 AND id = $2";
        Ok(execute!(self.backend(), delete, user_id, id)? > 0)
    }

    /// Ends all sessions of a user but the one with the id `kept`.
    pub async fn delete_other_sessions(&mut self, user_id: i64, kept: &str) -> Result<u64, StoreFailure> {
        let delete = "DELETE FROM sessions WHERE user_id = $1 AND id <> $2";
        Ok(execute!(self.backend(), delete, user_id, kept)?)
    }

    /// Deletes sessions that were last used before `used_before` or begun before `created_before`.
    pub async fn delete_old_sessions(
        &mut self,
        used_before: i64,
        created_before: i64,
    ) -> Result<(), StoreFailure> {
        let delete = "DELETE FROM sessions WHERE last_used_at < $1 OR created_at < $2";
        execute!(self.backend(), delete, used_before, created_before).map(drop)
    }

    /// Keeps only the `kept` sessions of a user that were used last.
    pub async fn delete_surplus_sessions(&mut self, user_id: i64, kept: i64) -> Result<(), StoreFailure> {
        let delete = "DELETE FROM sessions WHERE user_id = $1 AND id NOT IN \
                      (SELECT id FROM sessions WHERE user_id = $1 ORDER BY last_used_at DESC, created_at DESC, id LIMIT $2)";
        execute!(self.backend(), delete, user_id, kept).map(drop)
    }
}
