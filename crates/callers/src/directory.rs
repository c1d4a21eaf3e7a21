//! Accounts and their keys.
//!
//! Keys are stored as keyed hashes. The hash secret is chosen at random when the process starts, so an attacker cannot predict
//! the position of a guess in the table or learn from timing how much of it was right, and no key can reach a log.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};

use resources::AccountId;

use crate::credit_limits::CreditLimits;
use crate::hashed_secret::keyed_hash;
use crate::key_settings::KeySettings;
use crate::plans::Plan;
use crate::shared_limits::SharedLimits;
use crate::static_key::StaticKey;

/// An account, with the limits that all of its keys share.
#[derive(Debug)]
pub struct Account {
    pub id: AccountId,
    pub name: String,
    pub plan: Plan,
    pub credit_limits: CreditLimits,
    pub calls_in_flight: AtomicUsize,
    /// Time until which pooled calls of this account are not tried inline, in nanoseconds of the process; set by `answers`.
    pub no_inline_tries_until: AtomicU64,
}

impl Account {
    pub fn new(name: String, plan: Plan) -> Self {
        let credit_limits = CreditLimits::new(plan.credits_per_second, plan.credits_per_day);
        Self {
            id: AccountId::unique(),
            name,
            plan,
            credit_limits,
            calls_in_flight: AtomicUsize::new(0),
            no_inline_tries_until: AtomicU64::new(0),
        }
    }
}

/// A key of an account, with its restrictions.
#[derive(Debug)]
pub struct ApiKey {
    /// How usage and logs name the key: the id of a stored key, or `static:` and the name of a key of the configuration.
    pub id: Arc<str>,
    /// The name of the key in the configuration, not the key itself.
    pub name: String,
    pub account: Arc<Account>,
    pub settings: Option<Arc<KeySettings>>,
}

/// All valid keys.
pub struct Directory {
    hash_secret: [u64; 2],
    keys: HashMap<u128, Arc<ApiKey>>,
    /// Not set if this instance counts limits for itself.
    shared_limits: OnceLock<Arc<SharedLimits>>,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory").field("keys", &self.keys.len()).finish()
    }
}

impl Directory {
    pub fn new(static_keys: &[StaticKey]) -> Self {
        let mut directory =
            Self { hash_secret: rand::random(), keys: HashMap::new(), shared_limits: OnceLock::new() };
        let mut accounts: HashMap<&str, Arc<Account>> = HashMap::new();
        for entry in static_keys {
            let account = accounts
                .entry(&entry.account)
                .or_insert_with(|| Arc::new(Account::new(entry.account.clone(), entry.plan.clone())));
            let (name, account) = (entry.name.clone(), Arc::clone(account));
            let id = format!("static:{name}").into();
            let key = Arc::new(ApiKey { id, name, account, settings: entry.settings.clone() });
            directory.keys.insert(keyed_hash(directory.hash_secret, entry.key.as_bytes()), key);
        }
        directory
    }

    /// From now on limits hold over all instances that use the same Redis.
    ///
    /// Accounts and keys of the configuration are the same on two instances if they have the same names.
    pub fn share_limits(&self, shared: &Arc<SharedLimits>) {
        let shared = self.shared_limits.get_or_init(|| Arc::clone(shared));
        for key in self.keys.values() {
            let account = &key.account;
            account.credit_limits.share_as(&format!("static-account:{}", account.name), shared);
            if let Some(settings) = &key.settings {
                let name = format!("static-key:{}/{}", account.name, key.name);
                settings.credit_limits().share_as(&name, shared);
            }
        }
    }

    /// The limits that other instances use, too.
    pub fn shared_limits(&self) -> Option<&Arc<SharedLimits>> {
        self.shared_limits.get()
    }

    /// Calls `each` with every key.
    pub fn each_key(&self, each: impl FnMut(&Arc<ApiKey>)) {
        self.keys.values().for_each(each);
    }

    pub fn find(&self, key: &[u8]) -> Option<&Arc<ApiKey>> {
        self.keys.get(&keyed_hash(self.hash_secret, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::Plans;

    fn static_key() -> StaticKey {
        let plan = Plans::default().named("core").unwrap().clone();
        StaticKey { key: "s3cret-key".into(), name: "n".into(), account: "a".into(), plan, settings: None }
    }

    fn directory() -> Directory {
        Directory::new(&[static_key()])
    }

    #[test]
    fn only_the_exact_key_is_found() {
        let directory = directory();
        assert!(directory.find(b"s3cret-key").is_some());
        for other in ["", "s3cret-ke", "s3cret-keyy", "S3cret-key", "s3cret-key\0"] {
            assert!(directory.find(other.as_bytes()).is_none(), "{other:?}");
        }
    }

    #[test]
    fn debug_output_does_not_show_keys() {
        let (key, directory) = (static_key(), directory());
        let shown = format!("{key:?} {directory:?} {:?}", directory.find(b"s3cret-key"));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
