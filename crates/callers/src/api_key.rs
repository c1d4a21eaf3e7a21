//! Keys that callers use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use resources::unix_seconds;
use store::HASH_BYTES;

use crate::account::Account;
use crate::key_settings::KeySettings;

/// The id of a key: `k_…` for keys of the store, `static:NAME` for keys of the configuration. It is not a secret.
pub type KeyId = Arc<str>;

/// Maximum length of a key. A longer one is unknown, and is not hashed.
pub const API_KEY_BYTES_MAX: usize = 128;

/// A key of an account, with its restrictions. The key itself is not part of it.
#[derive(Debug)]
pub struct ApiKey {
    pub id: KeyId,
    /// The name that the operator gave to the key.
    pub name: Box<str>,
    pub account: Arc<Account>,
    pub settings: Option<Arc<KeySettings>>,
    /// When the key expires, in seconds since 1970.
    pub(crate) expires_at: Option<i64>,
    /// The keyed hash in the store; zeros for keys of the configuration, which are not looked up by it.
    pub(crate) hash: [u8; HASH_BYTES],
    /// The settings as the store has them, for the local copy; `None` if they restrict nothing.
    pub(crate) stored_settings: Option<Box<str>>,
    /// The minute since 1970 in which a use of the key was recorded last.
    used_minute: AtomicU32,
}

impl ApiKey {
    /// A key of the configuration.
    pub(crate) fn configured(name: &str, account: Arc<Account>, settings: Option<Arc<KeySettings>>) -> Self {
        Self {
            id: format!("static:{name}").into(),
            name: name.into(),
            account,
            settings,
            expires_at: None,
            hash: [0; HASH_BYTES],
            stored_settings: None,
            used_minute: AtomicU32::new(0),
        }
    }

    /// A key of the store.
    pub(crate) fn stored(
        row: &store::KeyRecord,
        account: Arc<Account>,
        settings: Option<Arc<KeySettings>>,
    ) -> Self {
        let is_restricted = !matches!(&*row.settings, "{}" | r#"{"rules":{}}"#);
        Self {
            id: row.id.as_str().into(),
            name: row.name.as_str().into(),
            account,
            settings,
            expires_at: row.expires_at,
            hash: row.hash,
            stored_settings: is_restricted.then(|| row.settings.as_str().into()),
            used_minute: AtomicU32::new(0),
        }
    }

    /// Whether the account of the key is active and the key has not expired by the wall clock.
    pub(crate) fn is_valid_now(&self) -> bool {
        let is_expired = || self.expires_at.is_some_and(|at| at <= unix_seconds());
        !self.account.is_suspended() && !is_expired()
    }

    /// Whether this is the first use of the key in a minute.
    pub(crate) fn is_first_use_in(&self, minute: u32) -> bool {
        self.used_minute.load(Relaxed) != minute && self.used_minute.swap(minute, Relaxed) != minute
    }
}
