//! Keys as operators see them. Times are seconds since 1970, UTC.

use std::fmt;

use resources::unix_seconds;
use serde::Serialize;
use store::{KeyRecord, KeyStatus};

use crate::key_rules::KeyRules;
use crate::stored_settings::StoredSettings;

/// A key, without the key itself. In lists it has no settings.
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
