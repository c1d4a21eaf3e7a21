//! Secrets kept as keyed hashes, so that they cannot reach a log, and timing reveals nothing about them.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};
use store::{HASH_BYTES, HashKey};
use subtle::ConstantTimeEq;

/// SipHash-2-4 with 128 bits. Without `keys`, it is infeasible to find a second text with the same hash.
pub(crate) fn keyed_hash(keys: [u64; 2], bytes: &[u8]) -> u128 {
    let mut hasher = SipHasher24::new_with_keys(keys[0], keys[1]);
    hasher.write(bytes);
    hasher.finish128().as_u128()
}

/// A secret that can be compared and not be printed.
#[derive(Clone)]
pub(crate) enum HashedSecret {
    /// A secret of the configuration, hashed with keys of this process.
    Configured { keys: [u64; 2], hash: u128 },
    /// A secret of the store, hashed with the store's hash key and the id of its API key.
    Stored { hash_key: HashKey, key_id: String, hash: [u8; HASH_BYTES] },
}

impl HashedSecret {
    pub(crate) fn new(secret: &str) -> Self {
        let keys = rand::random();
        Self::Configured { keys, hash: keyed_hash(keys, secret.as_bytes()) }
    }

    /// Compares in constant time.
    pub(crate) fn matches(&self, guess: &[u8]) -> bool {
        match self {
            Self::Configured { keys, hash } => hash.ct_eq(&keyed_hash(*keys, guess)).into(),
            Self::Stored { hash_key, key_id, hash } => {
                hash[..].ct_eq(&hash_key.hash_secret(key_id, guess)[..]).into()
            }
        }
    }
}

impl fmt::Debug for HashedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashedSecret")
    }
}
