//! Accounts and keys as operators see them. Times are seconds since 1970, UTC.

use std::fmt;

use resources::unix_seconds;
use serde::Serialize;
use store::{AccountRecord, KeyRecord, KeyStatus};

use crate::key_rules::KeyRules;
use crate::stored_settings::StoredSettings;

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccountSummary {
    pub id: i64,
    pub name: String,
    pub plan: String,
    /// `active` or `suspended`.
    pub status: &'static str,
    pub created_at: i64,
}

impl From<AccountRecord> for AccountSummary {
    fn from(AccountRecord { id, name, plan, status, created_at }: AccountRecord) -> Self {
        Self { id, name, plan, status: status.name(), created_at }
    }
}

/// A key, without the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeySummary {
    /// The id of the key, which is not a secret.
    pub id: String,
    /// The name of its account.
    pub account: String,
    pub name: String,
    /// The first characters of the key.
    pub prefix: String,
    /// `active`, `expired` or `revoked`.
    pub status: &'static str,
    pub created_at: i64,
    pub last_used_at: Option<i64>,
    pub expires_at: Option<i64>,
    pub has_secret: bool,
    pub settings: KeyRules,
}

impl KeySummary {
    pub(super) fn new(row: KeyRecord, account: &str) -> Self {
        let is_expired = row.expires_at.is_some_and(|at| at <= unix_seconds());
        let status = match row.status {
            KeyStatus::Active if is_expired => "expired",
            status => status.name(),
        };
        // Settings that cannot be read are shown as none; the gateway refuses the row and reports it.
        let StoredSettings { secret_hash, rules } = StoredSettings::parse(&row.settings).unwrap_or_default();
        Self {
            id: row.id,
            account: account.to_owned(),
            name: row.name,
            prefix: row.prefix,
            status,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            expires_at: row.expires_at,
            has_secret: secret_hash.is_some(),
            settings: rules,
        }
    }
}

/// A key in a list, without its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyListEntry {
    pub id: String,
    pub name: String,
    pub prefix: String,
    /// As in [`KeySummary`].
    pub status: &'static str,
    pub created_at: i64,
    pub last_used_at: Option<i64>,
    pub expires_at: Option<i64>,
}

impl From<KeySummary> for KeyListEntry {
    fn from(key: KeySummary) -> Self {
        let KeySummary { id, name, prefix, status, created_at, last_used_at, expires_at, .. } = key;
        Self { id, name, prefix, status, created_at, last_used_at, expires_at }
    }
}

/// A key that was just created.
#[derive(Clone, PartialEq, Eq)]
pub struct NewKey {
    /// The key itself, which is shown once and never stored.
    pub key: String,
    pub summary: KeySummary,
}

impl fmt::Debug for NewKey {
    // The key is omitted, because it is a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("summary", &self.summary).finish_non_exhaustive()
    }
}
