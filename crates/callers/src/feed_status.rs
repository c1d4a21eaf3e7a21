//! Where the accounts and keys of the store come from, and whether the store can be reached.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use resources::unix_seconds;

use crate::policy::FEED_STANDSTILL_MAX;

/// The state of the feed, for `/ready`, `/status` and the metrics.
#[derive(Debug, Default)]
pub struct FeedStatus {
    facts: Mutex<FeedFacts>,
}

/// The state of the feed at one time.
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
    /// How often since the start the store lacked changes that were in effect here.
    pub lost_histories: u64,
    /// When all of it was last what the store said, in seconds since 1970.
    pub followed_at: Option<i64>,
    /// How long it is used without the store; `None` is for ever.
    pub age_max: Option<Duration>,
    /// When the feed has last read something, or failed to.
    pub progress_at: Option<Instant>,
}

impl FeedFacts {
    /// Whether what the store said at `followed_at` may no longer be used. A time far in the future comes from a wrong clock, which
    /// tells nothing about the age.
    pub(crate) fn is_too_old(&self, followed_at: i64) -> bool {
        self.age_max.is_some_and(|max| unix_seconds().abs_diff(followed_at) > max.as_secs())
    }
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

    /// Why the gateway is not ready, if accounts and keys are needed and missing or too old.
    pub fn not_ready_because(&self) -> Option<&'static str> {
        self.not_ready_at(Instant::now())
    }

    fn not_ready_at(&self, now: Instant) -> Option<&'static str> {
        let facts = self.facts.lock();
        let stands_still =
            facts.progress_at.is_some_and(|at| now.saturating_duration_since(at) > FEED_STANDSTILL_MAX);
        let is_too_old = facts.followed_at.is_some_and(|at| facts.is_too_old(at));
        match facts.origin {
            _ if !facts.is_required => None,
            KeysOrigin::Nothing if is_too_old => Some(
                "the store of accounts and keys cannot be reached, and the local copy of it is older than copy_age_max_s, see /status",
            ),
            KeysOrigin::Nothing => Some(
                "the store of accounts and keys cannot be reached, and there is no local copy of it, see /status",
            ),
            KeysOrigin::Copy | KeysOrigin::Store if is_too_old => Some(
                "the store of accounts and keys was not followed for longer than copy_age_max_s, see /status",
            ),
            KeysOrigin::Store if stands_still => Some(
                "the feed of accounts and keys stands still: revocations do not take effect, see /status",
            ),
            KeysOrigin::Copy | KeysOrigin::Store => None,
        }
    }

    /// Records that the feed has read something, or failed to.
    pub(crate) fn record_progress(&self) {
        self.update(|facts| facts.progress_at = Some(Instant::now()));
    }

    /// The store is not followed until the feed has loaded it again.
    pub(crate) fn record_panic(&self) {
        self.update(|facts| {
            (facts.is_connected, facts.since) = (false, Some(Instant::now()));
            facts.error = Some("the feed of accounts and keys has panicked, see the log".to_owned());
        });
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut FeedFacts)) {
        change(&mut self.facts.lock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A feed that waited for something for ever was polled, and so counted as alive, and the store as connected.
    #[test]
    fn a_gateway_whose_feed_stands_still_is_not_ready() {
        let status = FeedStatus::default();
        status.update(|facts| (facts.is_required, facts.origin) = (true, KeysOrigin::Store));
        status.record_progress();
        let now = Instant::now();
        assert_eq!(status.not_ready_at(now), None);
        let late = now + FEED_STANDSTILL_MAX + Duration::from_secs(1);
        assert!(status.not_ready_at(late).is_some_and(|reason| reason.contains("stands still")));
        status.update(|facts| facts.is_required = false);
        assert_eq!(status.not_ready_at(late), None);
        // A migration of the store may take minutes, and what the copy says stays in use meanwhile.
        status.update(|facts| (facts.is_required, facts.origin) = (true, KeysOrigin::Copy));
        assert_eq!(status.not_ready_at(late), None);
    }
}
