//! Callers: accounts, their keys and their plans.
//!
//! Keys are known here only by a keyed hash. Its secret is drawn when the process starts, so nobody outside can relate a
//! guess to its place in the table or learn from timing how much of a guess was right; and no key can reach a log.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use resources::AccountId;

use crate::allowance::Allowance;
use crate::hashed;
use crate::key_settings::Settings;
use crate::plans::Plan;
use crate::static_key::StaticKey;

/// Who pays, and the limits that all keys of the account share.
#[derive(Debug)]
pub struct Account {
    pub id: AccountId,
    pub name: String,
    pub plan: Plan,
    pub allowance: Allowance,
    pub calls_in_flight: AtomicUsize,
    /// Until when this account's pooled calls skip their inline try, in nanoseconds of the process; `answers` sets it.
    pub inline_tries_rest_until: AtomicU64,
}

impl Account {
    pub fn new(name: String, plan: Plan) -> Self {
        let allowance = Allowance::new(plan.credits_per_second, plan.credits_per_day);
        Self {
            id: AccountId::unique(),
            name,
            plan,
            allowance,
            calls_in_flight: AtomicUsize::new(0),
            inline_tries_rest_until: AtomicU64::new(0),
        }
    }
}

/// One key: whose it is and what it may do.
#[derive(Debug)]
pub struct Key {
    /// What people call it; the key itself is not known here.
    pub name: String,
    pub account: Arc<Account>,
    pub settings: Option<Arc<Settings>>,
}

/// Every key that is let in.
pub struct Directory {
    secret: [u64; 2],
    keys: HashMap<u128, Arc<Key>>,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory").field("keys", &self.keys.len()).finish()
    }
}

impl Directory {
    pub fn new(static_keys: &[StaticKey]) -> Self {
        let mut directory = Self { secret: rand::random(), keys: HashMap::new() };
        let mut accounts: HashMap<&str, Arc<Account>> = HashMap::new();
        for entry in static_keys {
            let account = accounts
                .entry(&entry.account)
                .or_insert_with(|| Arc::new(Account::new(entry.account.clone(), entry.plan.clone())));
            let (name, account) = (entry.name.clone(), Arc::clone(account));
            let key = Arc::new(Key { name, account, settings: entry.settings.clone() });
            directory.keys.insert(hashed::tag(directory.secret, entry.key.as_bytes()), key);
        }
        directory
    }

    pub fn find(&self, key: &[u8]) -> Option<&Arc<Key>> {
        self.keys.get(&hashed::tag(self.secret, key))
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
    fn nothing_that_can_be_printed_shows_a_key() {
        let (key, directory) = (static_key(), directory());
        let shown = format!("{key:?} {directory:?} {:?}", directory.find(b"s3cret-key"));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
