//! How many credits per second callers ask for, granted or not.

use std::time::Duration;

use resources::MonoTime;

use crate::policy::{DEMAND_AVERAGED_OVER, DEMAND_MEASURED_MIN, SILENT_AFTER};

/// An exponential average of the credits that are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Credits since `measured_at`.
    asked: u64,
    /// Credits of the last call.
    last_asked: u64,
    asked_at: MonoTime,
    measured_at: MonoTime,
    /// `None` before the first measurement.
    per_second: Option<f64>,
}

impl Demand {
    pub(crate) fn new(now: MonoTime) -> Self {
        Self { asked: 0, last_asked: 0, asked_at: now, measured_at: now, per_second: None }
    }

    pub(crate) fn add(&mut self, credits: u64, now: MonoTime) {
        self.asked = self.asked.saturating_add(credits);
        self.last_asked = credits;
        self.asked_at = self.asked_at.max(now);
    }

    /// The time since credits were asked for.
    pub(crate) fn idle(&self, now: MonoTime) -> Duration {
        now.since(self.asked_at)
    }

    /// The average until now. The first one takes what was asked so far for the demand of a second.
    pub(crate) fn measure(&mut self, now: MonoTime) -> u64 {
        let elapsed = now.since(self.measured_at);
        let per_second = match self.per_second {
            None => self.asked as f64 / elapsed.as_secs_f64().max(DEMAND_AVERAGED_OVER.as_secs_f64()),
            Some(average) if elapsed < DEMAND_MEASURED_MIN => return average as u64,
            Some(average) => {
                let weight = 1.0 - (-elapsed.as_secs_f64() / DEMAND_AVERAGED_OVER.as_secs_f64()).exp();
                let average = average + weight * (self.asked as f64 / elapsed.as_secs_f64() - average);
                if self.idle(now) >= SILENT_AFTER { average.min(self.last_asked as f64) } else { average }
            }
        };
        (self.asked, self.measured_at, self.per_second) = (0, now, Some(per_second));
        per_second as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime(ms * 1_000_000)
    }

    #[test]
    fn the_average_follows_what_is_asked_within_seconds() {
        let mut demand = Demand::new(at(0));
        demand.add(80, at(0));
        assert_eq!(demand.measure(at(1)), 80);
        for tick in 1..=25 {
            demand.add(200, at(tick * 200));
            demand.measure(at(tick * 200));
        }
        assert!((980..=1_000).contains(&demand.measure(at(5_000))));
        assert!((250..900).contains(&demand.measure(at(5_800))));
        assert!((1..=200).contains(&demand.measure(at(6_000))));
        assert!((0..=4).contains(&demand.measure(at(10_000))));
        assert_eq!(demand.idle(at(10_000)), Duration::from_secs(5));
    }

    /// A call per second counted as no demand for a part of each second.
    #[test]
    fn a_call_now_and_then_is_a_demand_too() {
        let mut demand = Demand::new(at(0));
        let mut measured = Vec::new();
        for tick in 0..100 {
            if tick % 6 == 0 {
                demand.add(80, at(tick * 200));
            }
            measured.push(demand.measure(at(tick * 200 + 1)));
        }
        assert!(measured[20..].iter().all(|per_second| (30..160).contains(per_second)), "{measured:?}");
    }

    #[test]
    fn silence_is_no_demand() {
        let mut demand = Demand::new(at(0));
        demand.add(80, at(0));
        demand.measure(at(1));
        assert_eq!(demand.measure(at(20_000)), 0);
    }
}
