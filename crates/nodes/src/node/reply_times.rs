//! Which calls a node has not answered yet, and when it was last heard from.

use std::time::Duration;

use tokio::time::Instant;

use crate::call::Class;
use crate::latency::index;

/// When a node has replied, and what it owes.
#[derive(Debug, Default)]
pub(super) struct ReplyTimes {
    calls: [ClassCalls; Class::ALL.len()],
    /// The last reply to a call of any class.
    last_reply: Option<Instant>,
    /// The last poll that was answered.
    last_poll: Option<Instant>,
    /// The last call that was given up while the node said nothing to anyone.
    last_silence: Option<Instant>,
}

/// The calls of one class.
#[derive(Clone, Copy, Debug, Default)]
struct ClassCalls {
    in_flight: u32,
    /// When the first of them began, or when a call of any class ended after that.
    unanswered_since: Option<Instant>,
}

impl ClassCalls {
    fn unanswered_for(self, now: Instant) -> Option<Duration> {
        let since = self.unanswered_since.filter(|_| self.in_flight > 0)?;
        Some(now.saturating_duration_since(since))
    }
}

impl ReplyTimes {
    pub(super) fn begin_call(&mut self, class: Class, now: Instant) {
        let calls = &mut self.calls[index(class)];
        if calls.in_flight == 0 {
            calls.unanswered_since = Some(now);
        }
        calls.in_flight += 1;
    }

    /// Ends a call that was dropped before it had a reply.
    pub(super) fn drop_call(&mut self, class: Class) {
        self.calls[index(class)].in_flight -= 1;
    }

    /// Ends a call, with a reply or with a fault. Either way, the time of those that are still under way starts anew.
    pub(super) fn end_call(&mut self, class: Class, now: Instant) {
        self.drop_call(class);
        self.calls.iter_mut().for_each(|calls| calls.unanswered_since = Some(now));
    }

    pub(super) fn record_reply(&mut self, now: Instant) {
        self.last_reply = self.last_reply.max(Some(now));
    }

    /// Records that a poll was answered.
    pub(super) fn record_poll(&mut self, now: Instant) {
        self.last_poll = self.last_poll.max(Some(now));
    }

    /// Records that a call was given up while the node said nothing to anyone.
    pub(super) fn record_silence(&mut self, now: Instant) {
        self.last_silence = self.last_silence.max(Some(now));
    }

    pub(super) fn last_reply(&self) -> Option<Instant> {
        self.last_reply
    }

    pub(super) fn in_flight(&self, class: Class) -> u32 {
        self.calls[index(class)].in_flight
    }

    /// The last reply to a call, if it came after this time, or else this time.
    pub(super) fn silent_since(&self, then: Instant) -> Instant {
        self.last_reply.map_or(then, |at| at.max(then))
    }

    pub(super) fn has_fallen_silent(&self) -> bool {
        self.last_silence > self.last_reply.max(self.last_poll)
    }

    /// Whether calls of some class have gone unanswered for longer than `silence_max` allows.
    pub(super) fn is_unresponsive(&self, silence_max: impl Fn(Class) -> Duration, now: Instant) -> bool {
        Class::ALL.into_iter().any(|class| {
            let waited = self.calls[index(class)].unanswered_for(now);
            waited.is_some_and(|waited| waited > silence_max(class))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_node_has_fallen_silent_until_a_reply_or_a_poll() {
        let start = Instant::now();
        let at = |seconds: Option<u32>| seconds.map(|seconds| start + seconds * SECOND);
        for (reply, poll, silence, expected) in [
            (None, None, None, false),
            (None, None, Some(1), true),
            (Some(1), None, Some(2), true),
            (Some(2), None, Some(1), false),
            (Some(1), Some(3), Some(2), false),
            (Some(1), Some(1), Some(1), false),
        ] {
            let (last_reply, last_poll, last_silence) = (at(reply), at(poll), at(silence));
            let state = ReplyTimes { last_reply, last_poll, last_silence, ..ReplyTimes::default() };
            assert_eq!(state.has_fallen_silent(), expected, "{reply:?} {poll:?} {silence:?}");
        }
    }

    #[test]
    fn a_node_is_silent_until_it_replies_to_anyone() {
        let (start, mut state) = (Instant::now(), ReplyTimes::default());
        assert_eq!(state.silent_since(start), start);
        state.last_reply = Some(start + SECOND);
        assert_eq!(state.silent_since(start), start + SECOND);
        assert_eq!(state.silent_since(start + 2 * SECOND), start + 2 * SECOND);
    }

    #[test]
    fn any_end_of_a_call_restarts_the_time_of_the_others() {
        let (start, mut state) = (Instant::now(), ReplyTimes::default());
        let unanswered_for = |state: &ReplyTimes, class, seconds| {
            state.calls[index(class)].unanswered_for(start + seconds * SECOND)
        };
        assert_eq!(unanswered_for(&state, Class::Quick, 9), None);
        state.begin_call(Class::Quick, start);
        state.begin_call(Class::Quick, start + SECOND);
        assert_eq!(unanswered_for(&state, Class::Quick, 3), Some(3 * SECOND));
        state.begin_call(Class::Logs, start + 2 * SECOND);
        state.end_call(Class::Quick, start + 3 * SECOND);
        assert_eq!(unanswered_for(&state, Class::Quick, 4), Some(SECOND));
        assert_eq!(unanswered_for(&state, Class::Logs, 5), Some(2 * SECOND));
        assert_eq!(unanswered_for(&state, Class::Evm, 5), None, "none is in flight");
    }

    #[test]
    fn a_node_is_unresponsive_while_it_owes_a_reply_for_too_long() {
        let (now, mut times) = (Instant::now(), ReplyTimes::default());
        times.begin_call(Class::Quick, now);
        assert!(times.is_unresponsive(|_| SECOND, now + 2 * SECOND));
        assert!(!times.is_unresponsive(|_| SECOND, now + SECOND));
        times.drop_call(Class::Quick);
        assert_eq!(times.in_flight(Class::Quick), 0);
        assert!(!times.is_unresponsive(|_| SECOND, now + 2 * SECOND));
    }
}
