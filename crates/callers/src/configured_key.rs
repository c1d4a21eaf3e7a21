//! A key of the configuration file: the key itself, or the hash of it.

use std::fmt;

use ring::digest::{SHA256, digest};
use settings::Section;

use crate::api_key::API_KEY_BYTES_MAX;

/// The prefix of the hash of a key in the configuration file.
const HASH_PREFIX: &str = "sha256:";

pub(crate) const SHA256_BYTES: usize = 32;

/// A key of the configuration file. It is never shown, not even as a hash.
#[derive(Clone)]
pub enum ConfiguredKey {
    Plain(String),
    /// The SHA-256 hash of a key that the file does not have.
    Sha256([u8; SHA256_BYTES]),
}

impl ConfiguredKey {
    /// Reads `key` or `key_hash`. An error contains the position and the line, never the key.
    pub(crate) fn read(section: &mut Section<'_>) -> Option<Self> {
        let hash = section.optional_text("key_hash");
        let key = match hash {
            Some(_) => section.optional_text("key"),
            None => {
                section.required_text("key", "a long random text, which callers put into the path of the URL")
            }
        };
        if let Some(wrong) = key.as_deref().and_then(invalid_key_reason) {
            section.error("key", &wrong);
        }
        let key = key.map(Self::Plain);
        let Some(hash) = hash else { return key };
        let Some(hash) = parse_hash(&hash) else {
            let wrong = "must be `sha256:` and 64 hexadecimal digits, as `chaingate keys hash` prints it";
            section.error("key_hash", wrong);
            return None;
        };
        if key.as_ref().is_some_and(|key| key.sha256() != hash) {
            section.error("key_hash", "is not the hash of `key`; remove one of them");
        }
        key.or(Some(Self::Sha256(hash)))
    }

    /// The key as `key_hash`, or what is wrong with it.
    pub fn hash_text(key: &str) -> Result<String, String> {
        match invalid_key_reason(key) {
            Some(wrong) => Err(wrong),
            None => Ok(format!("{HASH_PREFIX}{}", const_hex::encode(sha256(key.as_bytes())))),
        }
    }

    /// The hash by which two keys are compared, in whatever form they are written.
    pub(crate) fn sha256(&self) -> [u8; SHA256_BYTES] {
        match self {
            Self::Plain(key) => sha256(key.as_bytes()),
            Self::Sha256(hash) => *hash,
        }
    }
}

impl From<&str> for ConfiguredKey {
    fn from(key: &str) -> Self {
        Self::Plain(key.to_owned())
    }
}

impl fmt::Debug for ConfiguredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfiguredKey")
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; SHA256_BYTES] {
    let mut hash = [0; SHA256_BYTES];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

fn parse_hash(text: &str) -> Option<[u8; SHA256_BYTES]> {
    let digits = text.strip_prefix(HASH_PREFIX)?;
    // The decoder accepts `0x` before them.
    let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hexadecimal.then(|| const_hex::decode_to_array(digits).ok()).flatten()
}

/// Why a text cannot be a key, if so.
fn invalid_key_reason(key: &str) -> Option<String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match key.len() {
        0 => Some("must not be empty".to_owned()),
        _ if !key.bytes().all(is_allowed) => Some("must be letters, digits, - and _".to_owned()),
        length if length > API_KEY_BYTES_MAX => {
            Some(format!("must have at most {API_KEY_BYTES_MAX} characters"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_what_sha256sum_prints() {
        // printf %s abc | sha256sum
        let text = ConfiguredKey::hash_text("abc").unwrap();
        assert_eq!(text, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(parse_hash(&text), Some(ConfiguredKey::from("abc").sha256()));
        for wrong in [
            "",
            "abc",
            "sha256:",
            "sha256:abc",
            "md5:ba78",
            &text[7..],
            &format!("{text}00"),
            &text.replace(':', ":0x"),
        ] {
            assert_eq!(parse_hash(wrong), None, "{wrong}");
        }
        assert!(ConfiguredKey::hash_text("").is_err() && ConfiguredKey::hash_text("a key").is_err());
    }
}
