//! The traffic of the last minutes: differences between the counters of the gateway.

use std::collections::VecDeque;
use std::time::Instant;

use callers::usage::Outcome;
use gateway::{GatewaySnapshot, TrafficCounters};
use resources::HistogramSum;

use crate::pages::live::{LiveStatus, TrafficValues};
use crate::pages::outcomes::{FailureRow, OutcomeCounts};

/// Values of a sparkline: five minutes with one value every two seconds.
const POINTS_MAX: usize = 150;

/// Samples between two points of a sparkline; the console takes one each second.
const SAMPLES_PER_POINT: usize = 2;

const SAMPLES_MAX: usize = POINTS_MAX * SAMPLES_PER_POINT + 1;

/// Samples over which the present values are taken, so that they do not jump.
const PRESENT_SAMPLES: usize = 10;

/// The counters of the last minutes, oldest first.
#[derive(Debug, Default)]
pub(super) struct TrafficHistory(VecDeque<Sample>);

#[derive(Debug)]
struct Sample {
    at: Instant,
    counters: TrafficCounters,
}

impl TrafficHistory {
    /// Adds what the gateway does now.
    pub(super) fn add(&mut self, gateway: GatewaySnapshot) -> LiveStatus {
        self.add_sample(Instant::now(), gateway.traffic.clone());
        let newest = self.0.len() - 1;
        let history = self.points();
        LiveStatus {
            gateway,
            traffic: self.values(newest.saturating_sub(PRESENT_SAMPLES), newest),
            history_seconds: (history.len() * SAMPLES_PER_POINT) as u64,
            history,
            failures: self.failures(),
        }
    }

    fn add_sample(&mut self, at: Instant, counters: TrafficCounters) {
        if self.0.len() >= SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Sample { at, counters });
    }

    /// The points of the sparklines, which end with the newest sample.
    fn points(&self) -> Vec<TrafficValues> {
        let newest = self.0.len().saturating_sub(1);
        let starts = (newest % SAMPLES_PER_POINT..newest).step_by(SAMPLES_PER_POINT);
        starts.map(|start| self.values(start, start + SAMPLES_PER_POINT)).collect()
    }

    fn values(&self, from: usize, to: usize) -> TrafficValues {
        let (Some(from), Some(to)) = (self.0.get(from), self.0.get(to)) else {
            return TrafficValues::default();
        };
        let seconds = to.at.saturating_duration_since(from.at).as_secs_f64();
        if seconds <= 0.0 {
            return TrafficValues::default();
        }
        let (before, after) = (&from.counters, &to.counters);
        let latency = latency_between(&before.latency, &after.latency);
        let counts = outcomes_between(before, after);
        let share = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
        let hits = after.cache_hits.saturating_sub(before.cache_hits);
        let misses = after.cache_misses.saturating_sub(before.cache_misses);
        TrafficValues {
            requests_per_second: Some(after.requests.saturating_sub(before.requests) as f64 / seconds),
            p50_ms: latency.quantile_ms(0.5),
            p99_ms: latency.quantile_ms(0.99),
            error_share: share(counts.failed(), counts.calls()),
            cache_hit_share: share(hits, hits + misses),
        }
    }

    /// A revert is an answer of the chain, and no failure of the service.
    fn failures(&self) -> Vec<FailureRow> {
        let (Some(oldest), Some(newest)) = (self.0.front(), self.0.back()) else { return Vec::new() };
        let mut rows = outcomes_between(&oldest.counters, &newest.counters).failures();
        rows.retain(|row| row.outcome != Outcome::Reverted);
        rows
    }
}

fn latency_between(before: &HistogramSum, after: &HistogramSum) -> HistogramSum {
    let mut difference = after.clone();
    for (bucket, before) in difference.buckets.iter_mut().zip(&before.buckets) {
        *bucket = bucket.saturating_sub(*before);
    }
    difference
}

fn outcomes_between(before: &TrafficCounters, after: &TrafficCounters) -> OutcomeCounts {
    let mut counts = OutcomeCounts::default();
    for ((outcome, before), after) in Outcome::ALL.into_iter().zip(before.outcomes).zip(after.outcomes) {
        counts.add(outcome, after.saturating_sub(before));
    }
    counts
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A sample per second; each second has ten requests that take up to 1 ms, one of them refused, and half from the cache.
    fn history(seconds: usize) -> TrafficHistory {
        let start = Instant::now();
        let (ok, refused) = (Outcome::Ok as usize, Outcome::Refused as usize);
        let mut history = TrafficHistory::default();
        for second in 0..seconds as u64 {
            let mut counters = TrafficCounters { requests: 10 * second, ..TrafficCounters::default() };
            (counters.outcomes[ok], counters.outcomes[refused]) = (9 * second, second);
            counters.latency.buckets[7] = 10 * second;
            (counters.cache_hits, counters.cache_misses) = (5 * second, 5 * second);
            history.add_sample(start + Duration::from_secs(second), counters);
        }
        history
    }

    #[test]
    fn rates_are_differences_over_time() {
        let history = history(SAMPLES_MAX + 5);
        let present = history.values(SAMPLES_MAX - PRESENT_SAMPLES, SAMPLES_MAX - 1);
        assert_eq!(present.requests_per_second, Some(10.0));
        assert_eq!((present.error_share, present.cache_hit_share), (Some(0.1), Some(0.5)));
        assert!(present.p50_ms.is_some_and(|p50| p50 > 0.5 && p50 < 1.0), "{:?}", present.p50_ms);
        let points = history.points();
        assert_eq!(points.len(), POINTS_MAX);
        assert!(points.iter().all(|point| point.requests_per_second == Some(10.0)));
        let failures = history.failures();
        assert_eq!((failures.len(), failures[0].outcome), (1, Outcome::Refused));
        assert_eq!(failures[0].calls, SAMPLES_MAX as u64 - 1);
    }

    #[test]
    fn there_are_no_values_before_the_second_sample() {
        for count in [0, 1] {
            assert_eq!(history(count).values(0, 0).requests_per_second, None);
            assert!(history(count).points().is_empty());
        }
        assert_eq!(history(2).points().len(), 0, "a point has two seconds");
        assert_eq!(history(3).points().len(), 1);
    }
}
