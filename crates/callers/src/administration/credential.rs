//! New keys and their handles.

use ring::rand::{SecureRandom, SystemRandom};

use super::AdministrationError;

/// A key has 128 bits from the system's randomness.
const KEY_BYTES: usize = 16;

/// An id is not a secret; it only has to be unique.
const ID_BYTES: usize = 6;

/// Characters of a key that stay visible, with which people recognise it. The other 104 bits are still out of reach of guesses.
pub(super) const PREFIX_CHARACTERS: usize = 6;

/// A new key of 32 hexadecimal digits, and its id.
pub(super) fn new_key_and_id() -> Result<(String, String), AdministrationError> {
    let (key, id) = (random::<KEY_BYTES>()?, random::<ID_BYTES>()?);
    Ok((const_hex::encode(key), format!("k_{}", const_hex::encode(id))))
}

/// The visible part of a key.
pub(super) fn prefix(key: &str) -> String {
    key.chars().take(PREFIX_CHARACTERS).collect()
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], AdministrationError> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled
        .map_err(|_| AdministrationError::StoreUnavailable("the system has no random numbers".to_owned()))?;
    Ok(bytes)
}
