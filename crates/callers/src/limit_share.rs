//! The part of a limit that this instance may use, while other instances use the rest of it.
//!
//! This file decides what an instance uses before it has an answer of Redis and while Redis cannot be reached. How the parts are
//! divided otherwise is in `shared_limits/divide.lua`.

use std::time::Duration;

use resources::MonoTime;

use crate::demand::Demand;

/// Limits with refusals or a changed share are reported at every exchange, others after this time.
const CALM_REPORT: Duration = Duration::from_millis(400);

/// An instance keeps its part of a limit for so long after the last call.
const LEAVE_AFTER: Duration = Duration::from_secs(60);

/// An instance that has never reached Redis uses this part of each limit. Four such instances add a tenth.
const UNKNOWN_PARTS: u64 = 40;

/// While Redis is gone, all instances that it knew use at least this part of each limit together. Instances that start
/// together may know of 1, 2, 3, … instances when Redis ends: eight of them use (1 + 1/2 + … + 1/8) / 14 of a limit, which is
/// less than a fifth.
const FALLBACK_PARTS: u64 = 14;

/// An instance that reaches Redis uses this part of a day before its first answer, which takes milliseconds. Four instances
/// that begin when the day is used up add a hundredth.
const CONNECTED_DAY_PARTS: u64 = 400;

/// When less than this part of a day is left, and leased to others, the day counts as used up.
const LAST_PARTS: u64 = 100;

/// Credits of a day that may be used before Redis has answered: those of the most expensive call.
const DAY_CREDITS_MIN: u64 = 1_000;

/// What this instance knows about the others.
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
            Self { is_connected: true, .. } => (limit / UNKNOWN_PARTS).max(1),
            Self { is_connected: false, .. } => self.fallback_rate(limit),
        }
    }

    /// The least credits per second that are used while Redis is gone.
    pub(crate) fn fallback_rate(self, limit: u64) -> u64 {
        let unknown = limit / UNKNOWN_PARTS;
        let rate = match self {
            Self { instances: 0, .. } => unknown,
            Self { instances, is_settled: true, .. } => limit / FALLBACK_PARTS / instances,
            // Some of the instances may not have been counted.
            Self { instances, is_settled: false, .. } => unknown.min(limit / FALLBACK_PARTS / instances),
        };
        rate.max(1)
    }

    /// The credits of a day that are used before Redis has said how many.
    pub(crate) fn first_day_credits(self, limit: u64) -> u64 {
        if self.is_connected { day_credits_before_answer(limit) } else { day_credits_without_redis(limit) }
    }
}

/// The credits of a day that are used while the first answer of Redis is on its way.
pub(crate) fn day_credits_before_answer(limit: u64) -> u64 {
    (limit / CONNECTED_DAY_PARTS).max(DAY_CREDITS_MIN).min(limit)
}

/// The credits of a day that are used if Redis has not said anything about it and cannot be reached.
pub(crate) fn day_credits_without_redis(limit: u64) -> u64 {
    (limit / UNKNOWN_PARTS).max(DAY_CREDITS_MIN).min(limit)
}

/// What is known about the use of one limit here.
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
    /// Instances that share limits, as of the last report.
    pub(crate) instances: u64,
    pub(crate) demand: Demand,
    pub(crate) reported_at: MonoTime,
    /// A day, and the credits that all instances have used on it, as far as the ledger and Redis have said.
    pub(crate) used_by_all: (u64, u64),
}

impl LimitShare {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            is_active: false,
            has_joined: false,
            is_urgent: false,
            instances: 0,
            demand: Demand::new(MonoTime::default()),
            reported_at: MonoTime::default(),
            used_by_all: (0, 0),
        }
    }

    pub(crate) fn begin(&mut self, now: MonoTime) {
        (self.is_active, self.has_joined, self.is_urgent) = (true, false, true);
        self.demand = Demand::new(now);
    }

    /// Says that all instances have used at least this many credits on a day.
    pub(crate) fn raise_used_by_all(&mut self, day: u64, credits: u64) {
        self.used_by_all = (day, credits.max(self.known_used_on(day)));
    }

    /// Credits that all instances have used on a day, as far as known. Redis is told, because it may have lost its data.
    pub(crate) fn known_used_on(&self, day: u64) -> u64 {
        if self.used_by_all.0 == day { self.used_by_all.1 } else { 0 }
    }

    /// Whether the credits of a call may become available today, if others return what they have leased. The last hundredth of a
    /// day counts as used up, and so does what is too little for a call if it is divided.
    pub(crate) fn can_get(&self, credits: u64, day: u64, per_day: u64) -> bool {
        let last = credits.saturating_mul(self.instances.max(1)).max(per_day / LAST_PARTS);
        self.left_on(day, per_day) >= last
    }

    /// Credits of a day that are left over all instances, as far as known.
    pub(crate) fn left_on(&self, day: u64, per_day: u64) -> u64 {
        per_day.saturating_sub(self.known_used_on(day))
    }

    pub(crate) fn next_report(&self, now: MonoTime) -> NextReport {
        match self.demand.idle(now) {
            idle if self.has_joined && idle > LEAVE_AFTER => NextReport::Leave,
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
    fn without_redis_all_instances_together_add_at_most_a_tenth_to_what_they_held() {
        for limit in [40, 500, 4_000, 100_000] {
            for instances in 1..40 {
                let known = SharingState { instances, is_settled: true, ..SharingState::default() };
                assert!(known.fallback_rate(limit) * instances <= (limit / 10).max(instances));
            }
            let started_together = (1..=8).map(|instances| SharingState {
                instances,
                is_settled: true,
                ..SharingState::default()
            });
            let sum: u64 = started_together.map(|known| known.fallback_rate(limit)).sum();
            assert!(sum <= limit / 5 + 8, "{sum} of {limit}");
            assert!(SharingState::default().first_rate(limit) * 4 <= limit / 10 + 4);
        }
    }

    #[test]
    fn while_redis_is_there_the_first_parts_of_all_instances_are_the_limit() {
        let three = SharingState { is_connected: true, is_settled: true, instances: 3 };
        assert_eq!((three.first_rate(600), three.first_rate(1)), (200, 1));
        let unsettled = SharingState { is_settled: false, ..three };
        assert_eq!((unsettled.first_rate(600), unsettled.first_rate(1)), (15, 1));
    }

    #[test]
    fn the_first_credits_of_a_day_pay_for_any_call() {
        let limits = [3_000_000, 5_000, 100];
        assert_eq!(limits.map(day_credits_before_answer), [7_500, 1_000, 100]);
        assert_eq!(limits.map(day_credits_without_redis), [75_000, 1_000, 100]);
    }
}
