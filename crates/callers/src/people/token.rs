//! Random tokens of sessions and links.

use super::PeopleError;
use crate::administration::credential;

/// Bytes of randomness in a token: out of reach of guesses.
const TOKEN_BYTES: usize = 32;

const TOKEN_CHARACTERS: usize = 2 * TOKEN_BYTES;

/// Bytes of the id of a session, which is not a secret.
const ID_BYTES: usize = 6;

/// A new token of 64 hexadecimal digits.
pub(super) fn new() -> Result<String, PeopleError> {
    Ok(const_hex::encode(credential::random::<TOKEN_BYTES>()?))
}

pub(super) fn new_session_id() -> Result<String, PeopleError> {
    Ok(format!("s_{}", const_hex::encode(credential::random::<ID_BYTES>()?)))
}

/// Whether a text can be a token, so that other texts need no look into the store.
pub(super) fn is_token(text: &str) -> bool {
    text.len() == TOKEN_CHARACTERS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
