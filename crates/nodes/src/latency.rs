//! How long a node's answers take, by cost class.
//!
//! Two figures for each class: what to expect, for the choice between nodes; and the time that 95 of 100 answers stay
//! below, for when to ask a second node. Classes share nothing, so a slow log query says nothing about look-ups.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

use crate::call::Class;

mod histogram;

use histogram::Histogram;

/// Without new answers the expectation halves in this time, so that a node that was slow once is looked at again.
const HALF_LIFE_MS: u32 = 2_000;
/// What a slower answer than expected counts: half of it, so that trouble shows at once.
const RISE_SHARE: u32 = 2;
/// What a quicker one counts: less, because one quick answer does not end trouble.
const FALL_SHARE: u32 = 8;

/// The latencies of one node.
#[derive(Debug)]
pub struct Latency {
    origin: Instant,
    classes: [ClassLatency; Class::ALL.len()],
}

#[derive(Debug, Default)]
struct ClassLatency {
    /// Microseconds (low half), and the millisecond of the last answer (high half), so that both change together.
    /// Milliseconds wrap around after 49 days, which makes one estimate a little older or younger than it is.
    expected: AtomicU64,
    histogram: Histogram,
}

impl Latency {
    pub fn new(now: Instant) -> Self {
        Self { origin: now, classes: Default::default() }
    }

    /// Takes note that an answer took so long, or that one took at least so long when it was given up.
    pub fn record(&self, class: Class, took: Duration, now: Instant) {
        let latency = &self.classes[index(class)];
        let took_us = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let now_ms = self.milliseconds(now);
        let _always = latency.expected.fetch_update(Relaxed, Relaxed, |word| {
            Some(pack(now_ms, moved(decayed(word, now_ms), took_us, word == 0)))
        });
        latency.histogram.record(took_us);
    }

    /// What the last answers let expect, however long ago that was. None if there were none.
    pub fn last(&self, class: Class) -> Option<Duration> {
        let word = self.classes[index(class)].expected.load(Relaxed);
        (word != 0).then(|| Duration::from_micros(word & u64::from(u32::MAX)))
    }

    /// What to expect of the next answer. Zero for a node that was never asked: the way to know it is to ask it.
    pub fn expected(&self, class: Class, now: Instant) -> Duration {
        let word = self.classes[index(class)].expected.load(Relaxed);
        Duration::from_micros(decayed(word, self.milliseconds(now)).into())
    }

    /// The time that 95 of 100 recent answers stay below, once there were enough of them to tell.
    pub fn p95(&self, class: Class) -> Option<Duration> {
        self.classes[index(class)].histogram.p95()
    }

    #[expect(clippy::cast_possible_truncation, reason = "wraps around by intention")]
    fn milliseconds(&self, now: Instant) -> u32 {
        now.saturating_duration_since(self.origin).as_millis() as u32
    }
}

pub(crate) fn index(class: Class) -> usize {
    match class {
        Class::Quick => 0,
        Class::Evm => 1,
        Class::Logs => 2,
        Class::Bulk => 3,
    }
}

fn pack(ms: u32, us: u32) -> u64 {
    u64::from(ms) << 32 | u64::from(us)
}

/// The expectation as it is after the time without answers.
fn decayed(word: u64, now_ms: u32) -> u32 {
    let us = (word & u64::from(u32::MAX)) as u32;
    let age_ms = now_ms.wrapping_sub((word >> 32) as u32);
    // Replies are recorded by several threads, and one may be a moment late: such an age is none.
    if age_ms > u32::MAX / 2 {
        return us;
    }
    let halvings = age_ms / HALF_LIFE_MS;
    let halved = us.checked_shr(halvings).unwrap_or(0);
    // Straight from one halving to the next, which is close enough to the curve.
    halved - (u64::from(halved / 2) * u64::from(age_ms % HALF_LIFE_MS) / u64::from(HALF_LIFE_MS)) as u32
}

fn moved(expected_us: u32, took_us: u32, first: bool) -> u32 {
    if first {
        took_us
    } else if took_us > expected_us {
        expected_us + (took_us - expected_us) / RISE_SHARE
    } else {
        expected_us - (expected_us - took_us) / FALL_SHARE
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn latency_of(samples: impl IntoIterator<Item = Duration>) -> Latency {
        let latency = Latency::new(Instant::now());
        samples.into_iter().for_each(|took| latency.record(Class::Quick, took, Instant::now()));
        latency
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_was_never_asked_promises_everything() {
        let latency = latency_of([]);
        assert_eq!(latency.expected(Class::Quick, Instant::now()), Duration::ZERO);
        assert_eq!(latency.p95(Class::Quick), None);
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_shows_at_once_and_is_forgiven_slowly() {
        let latency = latency_of([MS; 50]);
        assert_eq!(latency.expected(Class::Quick, Instant::now()), MS);
        latency.record(Class::Quick, 101 * MS, Instant::now());
        assert_eq!(latency.expected(Class::Quick, Instant::now()), 51 * MS);
        latency.record(Class::Quick, MS, Instant::now());
        assert!(latency.expected(Class::Quick, Instant::now()) > 40 * MS);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_asked_any_more_is_forgotten() {
        let latency = latency_of([100 * MS; 50]);
        advance(Duration::from_secs(1)).await;
        assert_eq!(latency.expected(Class::Quick, Instant::now()), 75 * MS);
        advance(Duration::from_secs(1)).await;
        assert_eq!(latency.expected(Class::Quick, Instant::now()), 50 * MS);
        advance(Duration::from_secs(600)).await;
        assert_eq!(latency.expected(Class::Quick, Instant::now()), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_log_queries_say_nothing_about_look_ups() {
        let latency = latency_of([MS; 50]);
        for _ in 0..500 {
            latency.record(Class::Logs, Duration::from_secs(8), Instant::now());
        }
        assert_eq!(latency.expected(Class::Quick, Instant::now()), MS);
        assert!(latency.p95(Class::Quick).unwrap() < 2 * MS);
        assert!(latency.p95(Class::Logs).unwrap() >= Duration::from_secs(8));
    }
}
