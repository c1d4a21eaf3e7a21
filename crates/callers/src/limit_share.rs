//! The part of a limit per second that this instance may use, while other instances use the rest of it.
//!
//! This file decides what an instance uses before it has an answer of Redis and while Redis cannot be reached. How the parts are
//! divided otherwise is in `shared_limits/divide.lua`.

use resources::MonoTime;

use crate::demand::Demand;
use crate::policy::{CALM_REPORT, LEAST_PARTS, LEAST_PARTS_INSTANCES_MIN, LEAVE_LIMIT_AFTER};

/// The other instances, as far as this one knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharingState {
    pub(crate) is_connected: bool,
    /// Whether Redis divides limits; otherwise all instances keep what they use.
    pub(crate) is_settled: bool,
    /// Instances that share limits, this one included; 0 before Redis has said.
    pub(crate) instances: u64,
}

impl SharingState {
    /// The credits per second that are used before Redis has said how many.
    ///
    /// While Redis divides limits, the parts of all instances together are the limit. Otherwise they are added to what others
    /// have kept of it.
    pub(crate) fn first_rate(self, limit: u64) -> u64 {
        match self {
            Self { is_connected: true, is_settled: true, instances } => {
                limit.div_ceil(instances.max(1)).max(1)
            }
            _ => self.least_rate(limit),
        }
    }

    /// The credits per second that an instance may use on top of what others hold: all of them together a tenth of the limit, or
    /// up to a fifth if each knows of another number of instances. `divide.lua` has the same rule.
    pub(crate) fn least_rate(self, limit: u64) -> u64 {
        (limit / LEAST_PARTS / self.instances.max(LEAST_PARTS_INSTANCES_MIN)).max(1)
    }
}

/// The use of one limit by this instance.
#[derive(Debug)]
pub(crate) struct LimitShare {
    /// The name of the limit, the same on all instances.
    pub(crate) name: Box<str>,
    /// Whether the limit is reported.
    pub(crate) is_active: bool,
    /// Whether Redis has answered since it became active.
    pub(crate) has_joined: bool,
    /// Whether the next exchange reports it in any case.
    pub(crate) is_urgent: bool,
    pub(crate) demand: Demand,
    pub(crate) reported_at: MonoTime,
}

impl LimitShare {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            is_active: false,
            has_joined: false,
            is_urgent: false,
            demand: Demand::new(MonoTime::default()),
            reported_at: MonoTime::default(),
        }
    }

    pub(crate) fn begin(&mut self, now: MonoTime) {
        (self.is_active, self.has_joined, self.is_urgent) = (true, false, true);
        self.demand = Demand::new(now);
    }

    pub(crate) fn next_report(&self, now: MonoTime) -> NextReport {
        match self.demand.idle(now) {
            idle if self.has_joined && idle > LEAVE_LIMIT_AFTER => NextReport::Leave,
            _ if self.is_urgent || !self.has_joined || now.since(self.reported_at) >= CALM_REPORT => {
                NextReport::Due
            }
            _ => NextReport::Later,
        }
    }
}

/// Whether a limit is part of the next exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextReport {
    Due,
    Later,
    /// It was not used for long: its share is given to others.
    Leave,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_redis_all_instances_together_add_at_most_a_fifth_to_what_they_held() {
        for limit in [40, 500, 4_000, 100_000] {
            for instances in 1..40 {
                let known = SharingState { instances, ..SharingState::default() };
                assert!(known.least_rate(limit) * instances <= (limit / 10).max(instances));
            }
            // Each was started before it could know of the next one.
            let started_together =
                (1..=8).map(|instances| SharingState { instances, ..SharingState::default() });
            let sum: u64 = started_together.map(|known| known.least_rate(limit)).sum();
            assert!(sum <= limit / 5 + 8, "{sum} of {limit}");
        }
    }

    #[test]
    fn while_redis_is_there_the_first_parts_of_all_instances_are_the_limit() {
        let three = SharingState { is_connected: true, is_settled: true, instances: 3 };
        assert_eq!((three.first_rate(600), three.first_rate(1)), (200, 1));
        let unsettled = SharingState { is_settled: false, ..three };
        assert_eq!((unsettled.first_rate(600), unsettled.first_rate(1)), (15, 1));
    }
}
