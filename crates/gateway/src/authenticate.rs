//! Step 3: the key in the path → `Caller`.

use std::sync::Arc;

use crate::callers::{Account, Directory, Key};

/// Proof that a key was recognised. Later steps ask for it, so none of them can run for a stranger.
#[derive(Clone, Debug)]
pub struct Caller {
    key: Arc<Key>,
}

impl Caller {
    pub fn account(&self) -> &Account {
        &self.key.account
    }
}

/// Why the door stays shut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    NoKey,
    UnknownKey,
}

/// Keys are short; a longer one is not worth hashing.
const KEY_BYTES_MAX: usize = 128;

/// Recognises the key of a request.
pub fn authenticate(directory: &Directory, key: &str) -> Result<Caller, Denied> {
    if key.is_empty() {
        return Err(Denied::NoKey);
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(Denied::UnknownKey);
    }
    match directory.find(key.as_bytes()) {
        Some(key) => Ok(Caller { key: Arc::clone(key) }),
        None => Err(Denied::UnknownKey),
    }
}
