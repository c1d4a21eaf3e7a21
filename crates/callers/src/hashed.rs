//! Texts that are known only by a keyed hash, so that they cannot reach a log and a guess learns nothing from timing.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};
use subtle::ConstantTimeEq;

/// 128 bits of SipHash under keys that nobody knows: as good as the text itself to anyone who does not have them.
pub(crate) fn tag(keys: [u64; 2], bytes: &[u8]) -> u128 {
    let mut hasher = SipHasher24::new_with_keys(keys[0], keys[1]);
    hasher.write(bytes);
    hasher.finish128().as_u128()
}

/// A secret that can be recognised and not be shown.
pub(crate) struct Hashed {
    keys: [u64; 2],
    tag: u128,
}

impl Hashed {
    pub(crate) fn new(secret: &str) -> Self {
        let keys = rand::random();
        Self { keys, tag: tag(keys, secret.as_bytes()) }
    }

    pub(crate) fn is(&self, guess: &[u8]) -> bool {
        self.tag.ct_eq(&tag(self.keys, guess)).into()
    }
}

impl fmt::Debug for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hashed")
    }
}
