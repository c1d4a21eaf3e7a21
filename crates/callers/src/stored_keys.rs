//! The keys of the store in memory. A lookup takes no lock, and a change copies one shard of many, so that a million keys
//! cost no more to change than a thousand.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use arc_swap::ArcSwap;
use store::{HASH_BYTES, HashKey};
use subtle::ConstantTimeEq;

use crate::api_key::{ApiKey, KeyId};

/// With a million keys a shard has 244.
const SHARDS: usize = 4_096;

/// The keys of one shard by the first half of their hashes.
type KeyShard = HashMap<u128, Arc<ApiKey>, BuildHasherDefault<HashedAlready>>;

/// All keys of the store.
pub(crate) struct StoredKeys {
    hash_key: HashKey,
    shards: Box<[ArcSwap<KeyShard>]>,
}

impl fmt::Debug for StoredKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredKeys").field("keys", &self.len()).finish_non_exhaustive()
    }
}

impl StoredKeys {
    pub(crate) fn find(&self, key: &[u8]) -> Option<Arc<ApiKey>> {
        self.with_hash(&self.hash_key.hash_key(key))
    }

    pub(crate) fn with_hash(&self, hash: &[u8; HASH_BYTES]) -> Option<Arc<ApiKey>> {
        let (shard, position) = place(hash);
        let shard = self.shards[shard].load();
        let found = shard.get(&position)?;
        // The lookup has compared the first half of the hash; the whole hash is compared in constant time.
        bool::from(found.hash[..].ct_eq(&hash[..])).then(|| Arc::clone(found))
    }

    pub(crate) fn hash_key(&self) -> &HashKey {
        &self.hash_key
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.load().len()).sum()
    }

    pub(crate) fn each(&self, mut each: impl FnMut(&Arc<ApiKey>)) {
        self.shards.iter().for_each(|shard| shard.load().values().for_each(&mut each));
    }

    /// The ids of keys that are here and not in `others`, which have the same hash key: how many, and the first `max` of them.
    pub(crate) fn missing_in(&self, others: &Self, max: usize) -> (usize, Vec<KeyId>) {
        let (mut count, mut ids) = (0, Vec::new());
        self.each(|key| {
            if others.with_hash(&key.hash).is_none() {
                count += 1;
                if ids.len() < max {
                    ids.push(Arc::clone(&key.id));
                }
            }
        });
        (count, ids)
    }

    /// Adds, replaces or removes (`None`) the keys with these hashes. Only one thread may change keys.
    pub(crate) fn change(&self, mut changes: Vec<KeyChange>) {
        changes.sort_by_key(|change| place(&change.hash).0);
        for group in changes.chunk_by(|one, other| place(&one.hash).0 == place(&other.hash).0) {
            let Some(first) = group.first() else { continue };
            let shard = &self.shards[place(&first.hash).0];
            let mut keys = KeyShard::clone(&shard.load());
            group.iter().for_each(|change| change.apply(&mut keys));
            shard.store(Arc::new(keys));
        }
    }
}

/// A key that is added, replaced or removed (`None`).
#[derive(Debug)]
pub(crate) struct KeyChange {
    pub(crate) hash: [u8; HASH_BYTES],
    pub(crate) key: Option<Arc<ApiKey>>,
}

impl KeyChange {
    fn apply(&self, keys: &mut KeyShard) {
        let (_, position) = place(&self.hash);
        match &self.key {
            Some(key) => keys.insert(position, Arc::clone(key)),
            None => keys.remove(&position),
        };
    }
}

/// Keys that are loaded before callers see any of them.
#[derive(Debug)]
pub(crate) struct StoredKeysBuilder {
    hash_key: HashKey,
    shards: Vec<KeyShard>,
}

impl StoredKeysBuilder {
    pub(crate) fn new(hash_key: HashKey) -> Self {
        Self { hash_key, shards: std::iter::repeat_with(KeyShard::default).take(SHARDS).collect() }
    }

    pub(crate) fn change(&mut self, change: &KeyChange) {
        change.apply(&mut self.shards[place(&change.hash).0]);
    }

    pub(crate) fn hash_key(&self) -> &HashKey {
        &self.hash_key
    }

    pub(crate) fn build(self) -> StoredKeys {
        let shards = self.shards.into_iter().map(|mut shard| {
            shard.shrink_to_fit();
            ArcSwap::from_pointee(shard)
        });
        StoredKeys { hash_key: self.hash_key, shards: shards.collect() }
    }
}

/// The shard of a hash, and the position in it.
fn place(hash: &[u8; HASH_BYTES]) -> (usize, u128) {
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    let shard = usize::from(u16::from_le_bytes([hash[16], hash[17]])) % SHARDS;
    (shard, u128::from_le_bytes(half))
}

/// The positions are hashes that nobody can choose without the hash key, so they need no second hash.
#[derive(Clone, Copy, Debug, Default)]
struct HashedAlready(u64);

impl Hasher for HashedAlready {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut low = [0; 8];
        low.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        self.0 = u64::from_le_bytes(low);
    }
}

#[cfg(test)]
mod tests;
