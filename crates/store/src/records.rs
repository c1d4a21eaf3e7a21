//! The rows of the store: plain data without rules. Times are seconds since 1970, UTC.

use crate::hash_key::HASH_BYTES;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountRecord {
    pub id: i64,
    /// Unique in the store.
    pub name: String,
    /// The name of a plan of the configuration.
    pub plan: String,
    pub status: AccountStatus,
    pub created_at: i64,
}

/// Whether the keys of an account are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStatus {
    Active,
    Suspended,
}

impl AccountStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspended => "suspended",
        }
    }

    /// Any unknown text is a suspension, so that a mistake in the table lets nobody in.
    pub(crate) fn named(name: &str) -> Self {
        if name == Self::Active.name() { Self::Active } else { Self::Suspended }
    }
}

/// A key of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The id with which operators name the key: `k_` and 12 hexadecimal digits. It is not a secret.
    pub id: String,
    pub account_id: i64,
    pub name: String,
    /// The first characters of the key, with which people recognise it.
    pub prefix: String,
    /// The keyed hash of the key.
    pub hash: [u8; HASH_BYTES],
    pub created_at: i64,
    pub last_used_at: Option<i64>,
    pub expires_at: Option<i64>,
    pub status: KeyStatus,
    /// The restrictions of the key as JSON.
    pub settings: String,
}

/// Whether a key is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStatus {
    Active,
    Revoked,
}

impl KeyStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Revoked => "revoked",
        }
    }

    /// Any unknown text is a revocation, so that a mistake in the table lets nobody in.
    pub(crate) fn named(name: &str) -> Self {
        if name == Self::Active.name() { Self::Active } else { Self::Revoked }
    }
}

/// One entry of the audit log: who changed what, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Increases with each entry; 0 before the entry is stored.
    pub id: i64,
    pub at: i64,
    /// Who made the change, such as `user:ada@example.com` or `admin API from 127.0.0.1`.
    pub actor: String,
    /// The action, such as `key.revoke`.
    pub action: String,
    /// The subject: the name of an account, the id of a key, or the email address of a user.
    pub subject: String,
    /// Details of the change as JSON, without keys and secrets.
    pub details: String,
}

/// The position of a row in the order of changes. `R` is the id of the row.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowPosition<R> {
    /// The revision of the store that changed the row last.
    pub revision: i64,
    pub id: R,
}

/// One change of a store. The same revision has another identity in another history of the store, such as that of a copy which
/// lacked the newest changes when it took the place of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeMark {
    pub revision: i64,
    /// A random text, new with every change.
    pub identity: String,
}

/// The newest change of a store, compared with one that was seen before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreHistory {
    pub newest: ChangeMark,
    /// Whether the change that was seen before is one of this store. If it is not, nothing that was read until then may be relied
    /// on.
    pub has_seen: bool,
    /// Whether the store may have that change all the same, because it remembers only newer ones.
    pub has_forgotten: bool,
}
