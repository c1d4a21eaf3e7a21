//! Whether a node answers its watcher. How it answers callers is a matter of its health.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a node may take to answer its watcher before it counts as absent. It is asked about once a second, so `/ready`
/// reports within two seconds that all nodes are gone.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// When a watcher has asked a node, and whether it was answered.
#[derive(Debug, Default)]
pub(crate) struct Presence(Mutex<PollState>);

#[derive(Debug, Default)]
struct PollState {
    /// The first question since the last reply to its watcher.
    asked_at: Option<Instant>,
    /// The last reply to anyone but callers, however late.
    heard_at: Option<Instant>,
    is_lost: bool,
}

impl PollState {
    fn is_present(&self, now: Instant) -> bool {
        let is_late = self.asked_at.is_some_and(|at| now.saturating_duration_since(at) > ANSWER_TIME_MAX);
        !self.is_lost && !is_late
    }
}

impl Presence {
    pub(crate) fn record_question(&self, now: Instant) {
        self.0.lock().asked_at.get_or_insert(now);
    }

    /// Records a reply to its watcher.
    pub(crate) fn record_reply(&self, now: Instant) {
        *self.0.lock() = PollState { heard_at: Some(now), ..PollState::default() };
    }

    /// Records a reply to its prober, which may have waited for it for longer than a watcher does.
    pub(crate) fn record_late_reply(&self, now: Instant) {
        self.0.lock().heard_at = Some(now);
    }

    /// The last reply to its watcher or its prober.
    pub(crate) fn heard_at(&self) -> Option<Instant> {
        self.0.lock().heard_at
    }

    /// Records that several polls in a row have failed.
    pub(crate) fn record_loss(&self) {
        self.0.lock().is_lost = true;
    }

    /// Whether several polls in a row have failed, and none has succeeded since.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.lock().is_lost
    }

    /// Whether it answers its watcher.
    pub(crate) fn is_present(&self, now: Instant) -> bool {
        self.0.lock().is_present(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_present_until_it_is_lost_or_silent_for_a_second() {
        let (now, presence) = (Instant::now(), Presence::default());
        assert!(presence.is_present(now));
        presence.record_question(now);
        presence.record_question(now + ANSWER_TIME_MAX);
        assert!(presence.is_present(now + ANSWER_TIME_MAX));
        assert!(!presence.is_present(now + ANSWER_TIME_MAX + Duration::from_millis(1)));
        presence.record_late_reply(now + ANSWER_TIME_MAX);
        assert!(!presence.is_present(now + 2 * ANSWER_TIME_MAX), "a late reply is none to its watcher");
        presence.record_reply(now);
        assert!(presence.is_present(now + 9 * ANSWER_TIME_MAX));
        presence.record_loss();
        assert!(!presence.is_present(now) && presence.is_lost());
    }
}
