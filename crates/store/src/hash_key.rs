//! Keyed hashes of keys, secrets and tokens. Without the hash key, which only the store and its local copies have, nobody can
//! compare a hash with guesses.

use std::fmt;
use std::sync::Arc;

use ring::hmac;

/// The length of a keyed hash.
pub const HASH_BYTES: usize = 32;

/// The secret with which keys and secrets are hashed. It is chosen at random when the store is created.
#[derive(Clone)]
pub struct HashKey {
    bytes: [u8; HASH_BYTES],
    /// Shared, because the secret of every key has a clone.
    key: Arc<hmac::Key>,
}

impl HashKey {
    pub fn from_bytes(bytes: [u8; HASH_BYTES]) -> Self {
        Self { bytes, key: Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &bytes)) }
    }

    /// The secret itself, for the local copy of the store.
    pub fn bytes(&self) -> &[u8; HASH_BYTES] {
        &self.bytes
    }

    pub fn hash_key(&self, key: &[u8]) -> [u8; HASH_BYTES] {
        hash_of(hmac::sign(&self.key, key))
    }

    /// The hash of the secret of the key with the id `key_id`. Equal secrets of two keys have different hashes.
    pub fn hash_secret(&self, key_id: &str, secret: &[u8]) -> [u8; HASH_BYTES] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(b"secret of ");
        context.update(key_id.as_bytes());
        context.update(b":");
        context.update(secret);
        hash_of(context.sign())
    }

    /// The hash of a random token, such as that of a session. Equal tokens for two uses have different hashes.
    pub fn hash_token(&self, purpose: &str, token: &[u8]) -> [u8; HASH_BYTES] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(b"token for ");
        context.update(purpose.as_bytes());
        context.update(b":");
        context.update(token);
        hash_of(context.sign())
    }
}

fn hash_of(tag: hmac::Tag) -> [u8; HASH_BYTES] {
    let mut hash = [0; HASH_BYTES];
    // The lengths are equal for HMAC-SHA256.
    hash.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
    hash
}

impl PartialEq for HashKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_depend_on_the_hash_key_the_use_and_the_text() {
        let (one, two) = (HashKey::from_bytes([1; 32]), HashKey::from_bytes([2; 32]));
        let hashes = [
            one.hash_key(b"a"),
            one.hash_key(b"b"),
            two.hash_key(b"a"),
            one.hash_secret("k_1", b"a"),
            one.hash_secret("k_2", b"a"),
            one.hash_token("k_1", b"a"),
            one.hash_token("link", b"a"),
        ];
        for (index, hash) in hashes.iter().enumerate() {
            assert!(hashes[..index].iter().all(|other| other != hash), "hash {index} is not unique");
        }
        assert_eq!(one.hash_key(b"a"), HashKey::from_bytes([1; 32]).hash_key(b"a"));
        assert_eq!(format!("{one:?}"), "HashKey");
    }
}
