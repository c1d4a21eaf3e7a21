//! The health of a node.
//!
//! Only the node's own faults lower it. Faults are weighted (see [`Observation::weight`]) and added up until the node answers
//! again; a sum of [`FAULT_WEIGHT_MAX`] takes it one level down.
//!
//! | level   | what happens                        | next    | and then                                             |
//! |---------|-------------------------------------|---------|------------------------------------------------------|
//! | Up      | faults in a row that weigh `FAULT_WEIGHT_MAX`  | InDoubt | asked only where no better node can answer           |
//! | InDoubt | all the good replies that it owes   | Up      |                                                      |
//! | InDoubt | faults in a row that weigh `FAULT_WEIGHT_MAX`  | Down    | asked only if all others are down, too              |
//! | Down    | its back-off is over                | Down    | one probe at a time                                  |
//! | Down    | a good reply                        | InDoubt |                                                      |
//! | Down    | a bad probe                         | Down    | twice the back-off, at most [`BACK_OFF_MAX`]         |
//! | any     | one answer that is proven wrong     | Down    | no probe for minutes, then it owes more good replies |
//! | any     | "too many requests"                 | same    | it is asked after the others for [`RATE_LIMITED`]    |
//!
//! A doubted node is probed as well, so that it comes back under load without waiting for the watcher's polls. A poll that is
//! answered forgives only what polls have shown: a node may answer polls and hang on everything else.

use std::time::Duration;

use tokio::time::Instant;

use crate::call::Fault;

mod state;

#[cfg(test)]
mod tests;

use state::HealthState;

/// Weight of the faults in a row that take a node one level down: two plain ones. A dead node is doubted after the second
/// failed call and down after the fourth, which under load takes milliseconds.
pub(crate) const FAULT_WEIGHT_MAX: u8 = 4;
/// Time from a node's fall to its first probe. It doubles with each bad probe.
pub(crate) const BACK_OFF_MIN: Duration = Duration::from_millis(100);
/// The longest back-off. A node that is back is used again within this time, however long it was away.
pub(crate) const BACK_OFF_MAX: Duration = Duration::from_secs(5);
/// How long a node is asked after the others once it has said that it gets too many requests.
pub(crate) const RATE_LIMITED: Duration = Duration::from_millis(500);
/// After this time, another probe may start although the last one has not ended: its caller may have hung up.
pub(crate) const PROBE_MAX: Duration = Duration::from_secs(2);

/// The result of a call or a poll, as it concerns the health of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observation {
    /// It replied to a call, possibly with an error that is the caller's fault.
    Good,
    Bad(Fault),
    /// It replied to its watcher.
    PollGood,
    PollBad(Fault),
    /// Another node answered the same call while this one had said nothing at all for longer than is usual.
    Silent,
}

impl Observation {
    /// How much it counts against the node.
    fn weight(self) -> u8 {
        match self {
            Self::Good | Self::PollGood | Self::Bad(Fault::RateLimited) => 0,
            Self::Silent => 1,
            Self::Bad(_) | Self::PollBad(_) => 2,
        }
    }
}

/// How well a node can be used, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Availability {
    Up,
    InDoubt,
    /// Up or in doubt, but it has said that it gets too many requests.
    RateLimited,
    Down,
}

impl Availability {
    pub const ALL: [Self; 4] = [Self::Up, Self::InDoubt, Self::RateLimited, Self::Down];
}

/// The health of one node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Health(HealthState);

impl Health {
    pub(crate) fn availability(&self, now: Instant) -> Availability {
        self.0.availability(now)
    }

    /// Whether the last call on the node failed.
    pub(crate) fn has_failed_call(&self) -> bool {
        self.0.has_failed_call
    }

    /// For how long the node is still excluded because it was proven wrong.
    pub(crate) fn excluded_for(&self, now: Instant) -> Option<Duration> {
        let until = self.0.excluded_until?;
        Some(until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    pub(crate) fn record(&mut self, observation: Observation, now: Instant) {
        self.0 = self.0.after(observation, now, rand::random::<u8>());
    }

    /// When a node that is not up may be probed next. `None` if it is up, or if a probe is under way.
    #[cfg(test)]
    fn probe_at(&self) -> Option<Instant> {
        self.0.probe_at.filter(|_| !self.0.is_probed)
    }

    pub(crate) fn is_probe_due(&self, now: Instant) -> bool {
        self.0.is_probe_due(now)
    }

    /// Starts a probe if one is due and none is under way. Its outcome is recorded like that of any other call.
    pub(crate) fn begin_probe(&mut self, now: Instant) -> bool {
        let probed = self.0.begin_probe(now);
        self.0 = probed.unwrap_or(self.0);
        probed.is_some()
    }
}
