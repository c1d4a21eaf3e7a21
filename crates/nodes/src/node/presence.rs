//! Whether a node answers its watcher. How it answers callers is a matter of its health.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a node may take to answer a watcher before it counts as absent. It is asked about once a second, so `/ready`
/// tells within two seconds that all nodes are gone.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// When a watcher has asked a node, and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Presence(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// The first question since the last reply.
    asked_at: Option<Instant>,
    is_lost: bool,
}

impl Presence {
    pub(crate) fn is_asked(&self, now: Instant) {
        self.0.lock().asked_at.get_or_insert(now);
    }

    pub(crate) fn has_replied(&self) {
        *self.0.lock() = Seen::default();
    }

    pub(crate) fn set_lost(&self) {
        self.0.lock().is_lost = true;
    }

    /// Whether several polls in a row have failed, and none has succeeded since.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.lock().is_lost
    }

    /// Whether it answers its watcher.
    pub(crate) fn is_there(&self, now: Instant) -> bool {
        let seen = self.0.lock();
        let is_late = seen.asked_at.is_some_and(|at| now.saturating_duration_since(at) > ANSWER_TIME_MAX);
        !seen.is_lost && !is_late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_there_until_it_is_lost_or_silent_for_a_second() {
        let (now, presence) = (Instant::now(), Presence::default());
        assert!(presence.is_there(now));
        presence.is_asked(now);
        presence.is_asked(now + ANSWER_TIME_MAX);
        assert!(presence.is_there(now + ANSWER_TIME_MAX));
        assert!(!presence.is_there(now + ANSWER_TIME_MAX + Duration::from_millis(1)));
        presence.has_replied();
        assert!(presence.is_there(now + 9 * ANSWER_TIME_MAX));
        presence.set_lost();
        assert!(!presence.is_there(now) && presence.is_lost());
    }
}
