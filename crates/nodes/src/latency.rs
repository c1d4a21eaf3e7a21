//! How long a node's answers take, by cost class.
//!
//! Each class has two figures: the expected latency, for the choice between nodes, and the 95th percentile, for when to ask a
//! second node. Classes share nothing, so a slow log query says nothing about look-ups.

use std::time::Duration;

use tokio::time::Instant;

use crate::call::Class;

mod histogram;

use histogram::LatencyHistogram;

/// Without new answers the expected latency halves in this time, so that a node that was slow once is tried again.
const HALF_LIFE_MS: u32 = 2_000;
/// An answer that is slower than expected moves the expectation by this fraction (1/2), so that trouble shows at once.
const RISE_DIVISOR: u32 = 2;
/// An answer that is faster than expected moves it by less (1/8), because one fast answer does not end trouble.
const FALL_DIVISOR: u32 = 8;

/// The latencies of one node.
#[derive(Debug, Default)]
pub(crate) struct Latency([ClassLatency; Class::ALL.len()]);

#[derive(Debug, Default)]
struct ClassLatency {
    /// `None` before the first answer.
    estimate: Option<Estimate>,
    histogram: LatencyHistogram,
}

impl Latency {
    /// Records how long an answer took, or how long one was waited for that never came.
    pub(crate) fn record(&mut self, class: Class, took: Duration, now: Instant) {
        let latency = &mut self.0[index(class)];
        latency.estimate = Some(Estimate::after(latency.estimate, took, now));
        latency.histogram.record(took);
    }

    /// The expected latency at the time of the last answer; `None` before the first.
    pub(crate) fn last_expected(&self, class: Class) -> Option<Duration> {
        self.0[index(class)].estimate.map(|estimate| estimate.expected)
    }

    /// The expected latency of the next answer. It is zero for a node that was never asked, so that it is tried.
    pub(crate) fn expected(&self, class: Class, now: Instant) -> Duration {
        self.0[index(class)].estimate.map_or(Duration::ZERO, |estimate| estimate.at(now))
    }

    /// The 95th percentile of recent answers, once there are enough of them.
    pub(crate) fn p95(&self, class: Class) -> Option<Duration> {
        self.0[index(class)].histogram.p95()
    }
}

/// The position of a class in arrays that have one element for each.
pub(crate) fn index(class: Class) -> usize {
    match class {
        Class::Quick => 0,
        Class::Evm => 1,
        Class::Logs => 2,
        Class::Bulk => 3,
    }
}

/// The expected delay of the next answer.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    expected: Duration,
    updated_at: Instant,
}

impl Estimate {
    /// The estimate after an answer that took this long.
    fn after(before: Option<Self>, took: Duration, now: Instant) -> Self {
        let expected = before.map_or(took, |before| moved(before.at(now), took));
        Self { expected, updated_at: now }
    }

    /// The expected latency after the time without answers.
    fn at(self, now: Instant) -> Duration {
        let age_ms = now.saturating_duration_since(self.updated_at).as_millis();
        let age_ms = u32::try_from(age_ms).unwrap_or(u32::MAX);
        let halvings = age_ms / HALF_LIFE_MS;
        let halved = 1_u32.checked_shl(halvings).map_or(Duration::ZERO, |divisor| self.expected / divisor);
        // Linear between two halvings, which is close enough to the curve.
        halved - halved / 2 * (age_ms % HALF_LIFE_MS) / HALF_LIFE_MS
    }
}

fn moved(expected: Duration, took: Duration) -> Duration {
    if took > expected {
        expected + (took - expected) / RISE_DIVISOR
    } else {
        expected - (expected - took) / FALL_DIVISOR
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn latency_of(samples: impl IntoIterator<Item = Duration>) -> Latency {
        let mut latency = Latency::default();
        samples.into_iter().for_each(|took| latency.record(Class::Quick, took, Instant::now()));
        latency
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_was_never_asked_has_an_expected_latency_of_zero() {
        let latency = latency_of([]);
        assert_eq!(latency.expected(Class::Quick, Instant::now()), Duration::ZERO);
        assert_eq!(latency.p95(Class::Quick), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_expected_latency_rises_quickly_and_falls_slowly() {
        let mut latency = latency_of([MS; 50]);
        assert_eq!(latency.expected(Class::Quick, Instant::now()), MS);
        latency.record(Class::Quick, 101 * MS, Instant::now());
        assert_eq!(latency.expected(Class::Quick, Instant::now()), 51 * MS);
        latency.record(Class::Quick, MS, Instant::now());
        assert!(latency.expected(Class::Quick, Instant::now()) > 40 * MS);
    }

    #[tokio::test(start_paused = true)]
    async fn the_expected_latency_of_an_idle_node_decays() {
        let latency = latency_of([100 * MS; 50]);
        advance(Duration::from_secs(1)).await;
        assert_eq!(latency.expected(Class::Quick, Instant::now()), 75 * MS);
        advance(Duration::from_secs(1)).await;
        assert_eq!(latency.expected(Class::Quick, Instant::now()), 50 * MS);
        advance(Duration::from_secs(600)).await;
        assert_eq!(latency.expected(Class::Quick, Instant::now()), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_log_queries_do_not_change_the_latency_of_look_ups() {
        let mut latency = latency_of([MS; 50]);
        for _ in 0..500 {
            latency.record(Class::Logs, Duration::from_secs(8), Instant::now());
        }
        assert_eq!(latency.expected(Class::Quick, Instant::now()), MS);
        assert!(latency.p95(Class::Quick).unwrap() < 2 * MS);
        assert!(latency.p95(Class::Logs).unwrap() >= Duration::from_secs(8));
    }
}
