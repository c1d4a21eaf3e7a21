//! Where the accounts and keys of the store come from, and whether the store can be reached.

use std::time::Instant;

use parking_lot::Mutex;

/// The state of the feed, for `/ready`, `/status` and the metrics.
#[derive(Debug, Default)]
pub struct FeedStatus {
    facts: Mutex<FeedFacts>,
}

/// What is known about the feed at one time.
#[derive(Clone, Debug, Default)]
pub struct FeedFacts {
    /// Whether the gateway is not ready before accounts and keys were loaded.
    pub is_required: bool,
    pub origin: KeysOrigin,
    pub is_connected: bool,
    /// When the connection was made or lost.
    pub since: Option<Instant>,
    /// Why the store cannot be reached; contains no credentials.
    pub error: Option<String>,
    pub accounts: u64,
    pub keys: u64,
    /// Rows that are refused now because something in them is wrong.
    pub bad_rows: u64,
    /// The newest change of the store that is in effect.
    pub revision: i64,
    /// Failures to write the local copy since the start.
    pub copy_failures: u64,
}

/// Where the accounts and keys in memory come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeysOrigin {
    /// Nothing is loaded yet.
    #[default]
    Nothing,
    /// The local copy, because the store could not be reached.
    Copy,
    Store,
}

impl KeysOrigin {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Copy => "local copy",
            Self::Store => "store",
        }
    }
}

impl FeedStatus {
    pub fn facts(&self) -> FeedFacts {
        self.facts.lock().clone()
    }

    /// Whether accounts and keys are needed, and neither the store nor a copy of it could be read.
    pub fn lacks_keys(&self) -> bool {
        let facts = self.facts.lock();
        facts.is_required && facts.origin == KeysOrigin::Nothing
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut FeedFacts)) {
        change(&mut self.facts.lock());
    }
}
