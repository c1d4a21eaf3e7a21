//! Step 3: the key in the path, and what is shown with it → `Caller`.

use std::sync::Arc;

use callers::{Account, ApiKey, Denied, Directory, KeySettings};
use http::header;
use http_server::Headers;

/// Proof that a key was recognised. Later steps ask for it, so none of them can run for a stranger.
#[derive(Clone, Debug)]
pub struct Caller {
    key: Arc<ApiKey>,
}

impl Caller {
    pub fn key(&self) -> &Arc<ApiKey> {
        &self.key
    }

    pub fn account(&self) -> &Account {
        &self.key.account
    }

    /// What the configuration calls the key, for the log.
    pub fn key_name(&self) -> &str {
        &self.key.name
    }

    /// What the key may do beyond its plan; most keys have no such settings.
    pub fn settings(&self) -> Option<&KeySettings> {
        self.key.settings.as_deref()
    }
}

/// Keys are short; a longer one is not worth hashing.
const KEY_BYTES_MAX: usize = 128;

/// Recognises the key of a request, and checks what has to be shown with it.
pub fn authenticate(directory: &Directory, key: &str, headers: Headers<'_>) -> Result<Caller, Denied> {
    if key.is_empty() {
        return Err(Denied::NoKey);
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(Denied::UnknownKey);
    }
    let key = directory.find(key.as_bytes()).ok_or(Denied::UnknownKey)?;
    if let Some(settings) = &key.settings {
        settings.credentials().check(headers.text(&header::AUTHORIZATION).unwrap_or_default())?;
    }
    directory.record_use(&key);
    Ok(Caller { key })
}
