//! All valid keys: those of the configuration, which a reload replaces, and those of the store, which the feed changes; both
//! while callers look keys up.
//!
//! Keys are kept as keyed hashes. An attacker cannot predict the position of a guess in a table or learn from timing how much
//! of it was right, and no key can reach a log.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use resources::MonoTime;

use crate::account::Account;
use crate::api_key::ApiKey;
use crate::configured_key::{ConfiguredKey, sha256};
use crate::feed_status::FeedStatus;
use crate::hashed_secret::keyed_hash;
use crate::key_settings::KeySettings;
use crate::local_revocations::LocalRevocations;
use crate::policy::USED_KEYS_MAX;
use crate::shared_limits::SharedLimits;
use crate::static_key::StaticKey;
use crate::stored_keys::StoredKeys;

/// All valid keys.
#[derive(Debug)]
pub struct Directory {
    configured: ArcSwap<ConfiguredKeys>,
    /// Empty until the feed has loaded the store or its copy.
    stored: ArcSwapOption<StoredKeys>,
    feed_status: FeedStatus,
    /// The minute since 1970 as the feed knows it; 0 without a feed, and then no use is recorded.
    minute: AtomicU32,
    /// Keys of the store that were used in a minute for the first time.
    used: Mutex<Vec<Arc<ApiKey>>>,
    /// Not set if this instance counts limits for itself.
    shared_limits: OnceLock<Arc<SharedLimits>>,
    /// Not set without a feed.
    local_revocations: OnceLock<Arc<LocalRevocations>>,
}

impl Directory {
    pub fn new(static_keys: &[StaticKey]) -> Self {
        Self {
            configured: ArcSwap::from_pointee(ConfiguredKeys::new(static_keys)),
            stored: ArcSwapOption::empty(),
            feed_status: FeedStatus::default(),
            minute: AtomicU32::new(0),
            used: Mutex::default(),
            shared_limits: OnceLock::new(),
            local_revocations: OnceLock::new(),
        }
    }

    /// The key, if it is known and valid now.
    pub fn find(&self, key: &[u8]) -> Option<Arc<ApiKey>> {
        if let Some(found) = self.configured.load().find(key) {
            return Some(Arc::clone(found));
        }
        let found = self.stored.load().as_ref()?.find(key)?;
        let is_revoked_here = || self.local_revocations().is_some_and(|revoked| revoked.contain(&found.id));
        (found.is_valid_now() && !is_revoked_here()).then_some(found)
    }

    /// Replaces the keys of the configuration. Accounts and keys that keep their names keep what they have used.
    pub fn replace_configured(&self, static_keys: &[StaticKey], now: MonoTime) {
        let configured = self.configured.load().replaced(static_keys, now);
        if let Some(shared) = self.shared_limits() {
            configured.share_limits(shared);
        }
        self.configured.store(Arc::new(configured));
    }

    /// Keys that were revoked on this gateway alone.
    pub(crate) fn local_revocations(&self) -> Option<&Arc<LocalRevocations>> {
        self.local_revocations.get()
    }

    /// Refuses keys that were revoked on this gateway. Called before the feed adds keys.
    pub(crate) fn refuse_revoked_here(&self, revoked: Arc<LocalRevocations>) {
        // A directory has one feed.
        let _set_once = self.local_revocations.set(revoked);
    }

    /// Remembers that a key was used, at most once per minute.
    pub fn record_use(&self, key: &Arc<ApiKey>) {
        let minute = self.minute.load(Relaxed);
        if minute == 0 || key.account.stored_id.is_none() || !key.is_first_use_in(minute) {
            return;
        }
        let mut used = self.used.lock();
        if used.len() < USED_KEYS_MAX {
            used.push(Arc::clone(key));
        }
    }

    /// From now on limits per second hold over all instances that use the same Redis. Called before the feed adds accounts.
    pub fn share_limits(&self, shared: &Arc<SharedLimits>) {
        let shared = self.shared_limits.get_or_init(|| Arc::clone(shared));
        self.configured.load().share_limits(shared);
    }

    /// The limits that other instances use, too.
    pub fn shared_limits(&self) -> Option<&Arc<SharedLimits>> {
        self.shared_limits.get()
    }

    pub fn each_key(&self, mut each: impl FnMut(&Arc<ApiKey>)) {
        self.configured.load().each().for_each(&mut each);
        if let Some(stored) = &*self.stored.load() {
            stored.each(each);
        }
    }

    /// Whether the configuration has an account with this name, which the ledger could not tell from another one.
    pub(crate) fn has_configured_account(&self, name: &str) -> bool {
        self.configured.load().accounts.contains(name)
    }

    /// Where the accounts and keys of the store come from, and how many there are.
    pub fn feed_status(&self) -> &FeedStatus {
        &self.feed_status
    }

    pub(crate) fn stored(&self) -> Option<Arc<StoredKeys>> {
        self.stored.load_full()
    }

    pub(crate) fn replace_stored(&self, keys: StoredKeys) {
        self.stored.store(Some(Arc::new(keys)));
    }

    pub(crate) fn set_minute(&self, minute: u32) {
        self.minute.store(minute, Relaxed);
    }

    /// Takes the keys that wait longest, at most `max`. Returns also whether others still wait.
    pub(crate) fn take_used(&self, max: usize) -> (Vec<Arc<ApiKey>>, bool) {
        let mut used = self.used.lock();
        let count = used.len().min(max);
        let taken = used.drain(..count).collect();
        (taken, !used.is_empty())
    }

    /// Keys whose use could not be stored.
    pub(crate) fn put_back_used(&self, keys: Vec<Arc<ApiKey>>) {
        let mut used = self.used.lock();
        let room = USED_KEYS_MAX.saturating_sub(used.len());
        used.extend(keys.into_iter().take(room));
    }
}

/// The keys of the configuration, hashed with a secret that is chosen when the process starts.
struct ConfiguredKeys {
    hash_secret: [u64; 2],
    keys: HashMap<u128, Arc<ApiKey>>,
    /// Those of which the configuration has only the SHA-256 hash, by that. They are not among `keys`: the hash would be a key there.
    hashed_keys: HashMap<u128, Arc<ApiKey>>,
    /// The names of all accounts.
    accounts: HashSet<String>,
}

impl std::fmt::Debug for ConfiguredKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfiguredKeys").field("keys", &self.each().count()).finish_non_exhaustive()
    }
}

impl ConfiguredKeys {
    fn new(static_keys: &[StaticKey]) -> Self {
        Self::without_keys(rand::random()).replaced(static_keys, MonoTime::default())
    }

    fn without_keys(hash_secret: [u64; 2]) -> Self {
        Self { hash_secret, keys: HashMap::new(), hashed_keys: HashMap::new(), accounts: HashSet::new() }
    }

    fn each(&self) -> impl Iterator<Item = &Arc<ApiKey>> {
        self.keys.values().chain(self.hashed_keys.values())
    }

    /// Other keys in the place of these.
    fn replaced(&self, static_keys: &[StaticKey], now: MonoTime) -> Self {
        let mut configured = Self::without_keys(self.hash_secret);
        configured.accounts = static_keys.iter().map(|entry| entry.account.clone()).collect();
        let keys_before: HashMap<_, _> =
            self.each().map(|key| ((&*key.account.name, &*key.name), key)).collect();
        let mut accounts: HashMap<&str, Arc<Account>> =
            self.each().map(|key| (&*key.account.name, Arc::clone(&key.account))).collect();
        for entry in static_keys {
            let account = accounts
                .entry(&entry.account)
                .or_insert_with(|| Arc::new(Account::new(entry.account.clone(), entry.plan.clone())));
            account.set_plan(&entry.plan, now);
            let before = keys_before.get(&(&*entry.account, &*entry.name));
            let settings = match (&entry.settings, before.and_then(|key| key.settings.as_deref())) {
                (Some(new), Some(old)) => Some(Arc::new(KeySettings::clone(new).replacing(old, now))),
                (new, _) => new.clone(),
            };
            let key = ApiKey::configured(&entry.name, Arc::clone(account), settings);
            let (keys, bytes) = match &entry.key {
                ConfiguredKey::Plain(key) => (&mut configured.keys, key.as_bytes()),
                ConfiguredKey::Sha256(hash) => (&mut configured.hashed_keys, &hash[..]),
            };
            keys.insert(keyed_hash(self.hash_secret, bytes), Arc::new(key));
        }
        configured
    }

    /// Accounts and keys of the configuration are the same on two instances if they have the same names.
    fn share_limits(&self, shared: &Arc<SharedLimits>) {
        for key in self.each() {
            let account = &key.account;
            account.credit_limits.share_as(&format!("static-account:{}", account.name), shared);
            if let Some(settings) = &key.settings {
                let name = format!("static-key:{}/{}", account.name, key.name);
                settings.credit_limits().share_as(&name, shared);
            }
        }
    }

    fn find(&self, key: &[u8]) -> Option<&Arc<ApiKey>> {
        let hashed = |bytes: &[u8]| keyed_hash(self.hash_secret, bytes);
        let in_hashed_keys = || match self.hashed_keys.is_empty() {
            true => None,
            false => self.hashed_keys.get(&hashed(&sha256(key))),
        };
        self.keys.get(&hashed(key)).or_else(in_hashed_keys)
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
    fn a_key_is_found_by_its_hash_and_the_hash_is_no_key() {
        let key = ConfiguredKey::Sha256(ConfiguredKey::from("s3cret-key").sha256());
        let directory = Directory::new(&[StaticKey { key: key.clone(), ..static_key() }]);
        assert!(directory.find(b"s3cret-key").is_some());
        let text = const_hex::encode(key.sha256());
        for other in [&key.sha256()[..], text.as_bytes(), b"s3cret-kex"] {
            assert!(directory.find(other).is_none(), "{other:?}");
        }
        let mut names = Vec::new();
        directory.each_key(|key| names.push(key.name.clone()));
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn keys_are_replaced_and_what_was_used_stays_used() {
        let directory = directory();
        let now = MonoTime(1_000_000_000);
        let limits =
            |directory: &Directory, key: &[u8]| directory.find(key).map(|key| Arc::clone(&key.account));
        let before = limits(&directory, b"s3cret-key").unwrap();
        assert_eq!(before.credit_limits.take(now, || 0, 500), Ok(()));
        let plan = Plans::default().named("developer").unwrap().clone();
        let rotated = StaticKey { key: "rotated-key".into(), plan, ..static_key() };
        directory.replace_configured(&[rotated], now);
        assert!(directory.find(b"s3cret-key").is_none(), "it was removed");
        let after = limits(&directory, b"rotated-key").unwrap();
        assert!(Arc::ptr_eq(&before, &after) && after.plan().name == "developer");
        assert!(after.credit_limits.take(now, || 0, 4_000).is_err(), "one eighth of the second is used");
        directory.replace_configured(&[], now);
        assert!(directory.find(b"rotated-key").is_none());
    }

    #[test]
    fn debug_output_does_not_show_keys() {
        let (key, directory) = (static_key(), directory());
        let shown = format!("{key:?} {directory:?} {:?}", directory.find(b"s3cret-key"));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
