//! Step 2: the key in the path, and its secret or token → `Caller`.

use std::sync::Arc;

use callers::usage::UsageTag;
use callers::{API_KEY_BYTES_MAX, Account, ApiKey, Denied, Directory, KeySettings};
use http::header;
use http_server::Headers;

/// Proof that a key was recognised. Later steps require it, so none of them can run for an unknown caller.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    key: Arc<ApiKey>,
    /// The tag of the request.
    tag: Option<UsageTag>,
}

impl Caller {
    pub(crate) fn key(&self) -> &Arc<ApiKey> {
        &self.key
    }

    pub(crate) fn account(&self) -> &Account {
        &self.key.account
    }

    pub(crate) fn tag(&self) -> Option<&UsageTag> {
        self.tag.as_ref()
    }

    pub(crate) fn with_tag(self, tag: UsageTag) -> Self {
        Self { tag: Some(tag), ..self }
    }

    /// The name of the key in the configuration or the store, for the log.
    pub(crate) fn key_name(&self) -> &str {
        &self.key.name
    }

    /// Restrictions of the key besides its plan; most keys have none.
    pub(crate) fn settings(&self) -> Option<&KeySettings> {
        self.key.settings.as_deref()
    }
}

/// Recognises the key of a request, and checks the secret or token that the key requires.
pub(crate) fn authenticate(directory: &Directory, key: &str, headers: Headers<'_>) -> Result<Caller, Denied> {
    if key.is_empty() {
        return Err(Denied::NoKey);
    }
    if key.len() > API_KEY_BYTES_MAX {
        return Err(Denied::UnknownKey);
    }
    let key = directory.find(key.as_bytes()).ok_or(Denied::UnknownKey)?;
    if let Some(settings) = &key.settings {
        settings.credentials().check(headers.text(&header::AUTHORIZATION).unwrap_or_default())?;
    }
    directory.record_use(&key);
    Ok(Caller { key, tag: None })
}
