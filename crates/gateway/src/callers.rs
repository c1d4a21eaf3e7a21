//! Callers: accounts, their keys and their plans.
//!
//! Keys are known here only by a keyed hash. Its secret is drawn when the process starts, so nobody outside can relate a
//! guess to its place in the table or learn from timing how much of a guess was right; and no key can reach a log.

mod limits; // how much an account may use, per second and per day
mod plans; // the plans and their defaults

use std::collections::HashMap;
use std::sync::Arc;

use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;

pub use limits::{Bucket, DayQuota, Spent};
pub use plans::{Plan, Plans};

/// Who pays, and the limits that all keys of the account share.
#[derive(Debug)]
pub struct Account {
    pub name: String,
    pub plan: Plan,
    pub(crate) throughput: Option<Bucket>,
    pub(crate) day: Option<DayQuota>,
}

impl Account {
    pub fn new(name: String, plan: Plan) -> Self {
        let throughput = plan.credits_per_second.map(Bucket::new);
        let day = plan.credits_per_day.map(DayQuota::new);
        Self { name, plan, throughput, day }
    }
}

/// One key: whose it is and what it may do.
#[derive(Debug)]
pub struct Key {
    pub account: Arc<Account>,
}

/// A key as the configuration gives it.
pub struct StaticKey {
    pub key: String,
    pub account: String,
    pub plan: Plan,
}

impl std::fmt::Debug for StaticKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StaticKey").field("account", &self.account).field("plan", &self.plan.name).finish()
    }
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
            let key = Arc::new(Key { account: Arc::clone(account) });
            directory.keys.insert(directory.tag(entry.key.as_bytes()), key);
        }
        directory
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<&Arc<Key>> {
        self.keys.get(&self.tag(key))
    }

    /// 128 bits of SipHash under a secret: as good as the key itself to anyone who does not have the secret.
    fn tag(&self, key: &[u8]) -> u128 {
        let mut hasher = SipHasher24::new_with_keys(self.secret[0], self.secret[1]);
        hasher.write(key);
        hasher.finish128().as_u128()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> Directory {
        let plan = Plans::default().named("core").unwrap().clone();
        Directory::new(&[StaticKey { key: "s3cret-key".into(), account: "a".into(), plan }])
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
        let plan = Plans::default().named("core").unwrap().clone();
        let key = StaticKey { key: "s3cret-key".into(), account: "a".into(), plan };
        assert!(
            !format!("{key:?} {:?} {:?}", directory(), directory().find(b"s3cret-key")).contains("s3cret")
        );
    }
}
