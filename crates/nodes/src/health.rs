//! How well a node is.
//!
//! Only what is the node's own doing lowers it. What speaks against a node is weighed (see [`Sign::weight`]) and added
//! up until it answers again; a sum of [`BREAK`] takes it one state down.
//!
//! | state   | what happens                        | next    | and then                                             |
//! |---------|-------------------------------------|---------|------------------------------------------------------|
//! | Up      | faults in a row that weigh `BREAK`  | Doubted | asked only where no better node can answer           |
//! | Doubted | all the good replies that it owes   | Up      |                                                      |
//! | Doubted | faults in a row that weigh `BREAK`  | Down    | the breaker is open: asked only if all others are too|
//! | Down    | its back-off is over                | Down    | one probe at a time                                  |
//! | Down    | a good reply                        | Doubted |                                                      |
//! | Down    | a bad probe                         | Down    | twice the back-off, at most [`BACK_OFF_MAX`]         |
//! | any     | one proven lie                      | Down    | no probe for minutes, then it owes more good replies |
//! | any     | "too many requests"                 | same    | it rests for [`REST`], and its honesty is in no doubt|
//!
//! A doubted node is probed as well, so that it comes back under load without waiting for the watcher's polls. A poll that is
//! answered forgives only what polls have shown: a node may answer polls and hang on everything else.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::call::Fault;

mod state;

#[cfg(test)]
mod tests;

use state::{Grounds, State};

/// Weight of the faults in a row that take a node one state down: two plain ones. A dead node is doubted with the
/// second call that it fails and out with the fourth, which under load takes milliseconds.
pub(crate) const BREAK: u8 = 4;
/// How long a node that fell is left alone before its first probe. It doubles with each bad probe.
pub(crate) const BACK_OFF_MIN: Duration = Duration::from_millis(100);
/// The longest back-off. A node that is back is seen within this time, however long it was away.
pub(crate) const BACK_OFF_MAX: Duration = Duration::from_secs(5);
/// How long a node is spared after it said that it has too much to do.
pub(crate) const REST: Duration = Duration::from_millis(500);
/// After this time a probe that never reported, because its caller hung up, is forgotten and another may start.
pub(crate) const PROBE_MAX: Duration = Duration::from_secs(2);

/// What a reply, or the lack of one, says about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It replied to a call, be it with an error of the caller.
    Good,
    Bad(Fault),
    /// It replied to its watcher.
    PollGood,
    PollBad(Fault),
    /// Another node had answered the same call while this one had said nothing at all for longer than is usual.
    Silent,
}

impl Sign {
    /// How much it speaks against the node.
    fn weight(self) -> u8 {
        match self {
            Self::Good | Self::PollGood | Self::Bad(Fault::RateLimited) => 0,
            Self::Silent => 1,
            Self::Bad(_) | Self::PollBad(_) => 2,
        }
    }
}

/// The states as others see them, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Grade {
    Up,
    Doubted,
    /// Up or doubted, but asked to be left alone for a moment.
    Resting,
    Down,
}

impl Grade {
    pub const ALL: [Self; 4] = [Self::Up, Self::Doubted, Self::Resting, Self::Down];

    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Doubted => "doubted",
            Self::Resting => "resting",
            Self::Down => "down",
        }
    }
}

/// The health of one node.
#[derive(Debug)]
pub struct Health {
    origin: Instant,
    state: Mutex<State>,
}

impl Health {
    pub fn new(now: Instant) -> Self {
        Self { origin: now, state: Mutex::new(State::UP) }
    }

    pub fn grade(&self, now: Instant) -> Grade {
        self.grade_and_last_call(now).0
    }

    /// The grade, and whether the last call on the node failed.
    pub(crate) fn grade_and_last_call(&self, now: Instant) -> (Grade, bool) {
        let state = *self.state.lock();
        let grade = match state.grounds {
            Grounds::Down => Grade::Down,
            _ if self.milliseconds(now) < state.rests_until_ms => Grade::Resting,
            Grounds::Doubted => Grade::Doubted,
            Grounds::Up => Grade::Up,
        };
        (grade, state.failed_calls)
    }

    /// For how long the node is still left out because it was proven to lie.
    pub fn left_out_for_lie(&self, now: Instant) -> Option<Duration> {
        let until_ms = self.state.lock().lied_until_ms;
        until_ms.checked_sub(self.milliseconds(now)).filter(|&left| left > 0).map(Duration::from_millis)
    }

    /// Takes note of what a call or a poll has shown.
    pub fn record(&self, sign: Sign, now: Instant) {
        let now_ms = self.milliseconds(now);
        let mut state = self.state.lock();
        let is_well = state.grounds == Grounds::Up && now_ms >= state.rests_until_ms;
        if matches!(sign, Sign::Good | Sign::PollGood) && is_well && *state == state.well() {
            return;
        }
        *state = state.after(sign, now_ms, rand::random::<u8>());
    }

    /// When a node that is not up may be probed next. None if it is up, or if a probe is under way.
    pub fn probe_at(&self) -> Option<Instant> {
        let state = *self.state.lock();
        (state.grounds != Grounds::Up && !state.probed)
            .then(|| self.origin + Duration::from_millis(state.until_ms))
    }

    pub fn probe_due(&self, now: Instant) -> bool {
        self.state.lock().probe_due(self.milliseconds(now))
    }

    /// Takes the right to probe, which only one has at a time. What the probe shows is told with [`Self::record`].
    pub fn begin_probe(&self, now: Instant) -> bool {
        let now_ms = self.milliseconds(now);
        let mut state = self.state.lock();
        let begun = state.begin_probe(now_ms);
        begun.into_iter().for_each(|begun| *state = begun);
        begun.is_some()
    }

    fn milliseconds(&self, now: Instant) -> u64 {
        milliseconds(now.saturating_duration_since(self.origin))
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
