//! Recent times, counted in buckets that are each a quarter wider than the one before.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Four for each doubling, from 64 µs to 67 s, which is longer than any deadline.
const BUCKETS: usize = 80;
/// Everything below 2⁶ µs falls into the first bucket.
const FIRST_POWER: u32 = 6;
/// At so many times all counts are halved: what is older than a few hundred answers hardly counts.
const KEPT_MAX: u32 = 512;
/// Fewer times than these tell nothing about the slowest twentieth.
const ENOUGH: u32 = 20;
/// The p95 is worked out anew with every so many times, because reading it must cost nothing.
const REFRESH: u32 = 8;

#[derive(Debug)]
pub(super) struct Histogram {
    counts: [AtomicU32; BUCKETS],
    total: AtomicU32,
    /// Microseconds; zero while there are too few times.
    p95_us: AtomicU32,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: [const { AtomicU32::new(0) }; BUCKETS],
            total: AtomicU32::new(0),
            p95_us: AtomicU32::new(0),
        }
    }
}

impl Histogram {
    /// Threads that record at the same moment may lose a count while all are halved, which moves nothing.
    pub(super) fn record(&self, us: u32) {
        self.counts[bucket(us)].fetch_add(1, Relaxed);
        let total = self.total.fetch_add(1, Relaxed) + 1;
        if total >= KEPT_MAX {
            self.halve();
        }
        if total.is_multiple_of(REFRESH) || total == ENOUGH {
            self.refresh();
        }
    }

    pub(super) fn p95(&self) -> Option<Duration> {
        let us = self.p95_us.load(Relaxed);
        (us > 0).then(|| Duration::from_micros(us.into()))
    }

    fn halve(&self) {
        let mut total = 0;
        for count in &self.counts {
            let half = count.load(Relaxed) / 2;
            count.store(half, Relaxed);
            total += half;
        }
        self.total.store(total, Relaxed);
    }

    fn refresh(&self) {
        let counts = || self.counts.iter().map(|count| count.load(Relaxed));
        let total: u32 = counts().sum();
        if total < ENOUGH {
            return;
        }
        let above_allowed = total / 20;
        let mut above = 0;
        let slowest = counts().enumerate().rev().find(|(_, count)| {
            above += count;
            above > above_allowed
        });
        if let Some((bucket, _)) = slowest {
            self.p95_us.store(upper_bound_us(bucket), Relaxed);
        }
    }
}

fn bucket(us: u32) -> usize {
    let us = us.max(1 << FIRST_POWER);
    let power = us.ilog2();
    let quarter = (us >> (power - 2)) & 3;
    usize::try_from((power - FIRST_POWER) * 4 + quarter).map_or(BUCKETS - 1, |bucket| bucket.min(BUCKETS - 1))
}

fn upper_bound_us(bucket: usize) -> u32 {
    let (power, quarter) = (bucket as u32 / 4 + FIRST_POWER, bucket as u32 % 4);
    (5 + quarter) << (power - 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_time_lies_in_its_bucket(us in 64_u32..1 << 26) {
            let bucket = bucket(us);
            prop_assert!(us < upper_bound_us(bucket));
            prop_assert!(bucket == 0 || us >= upper_bound_us(bucket - 1));
        }
    }

    #[test]
    fn extremes_have_a_bucket_too() {
        assert_eq!((bucket(0), bucket(u32::MAX)), (0, BUCKETS - 1));
    }

    #[test]
    fn one_slow_answer_in_thirty_is_not_the_p95_and_one_in_ten_is() {
        let (rare, common) = (Histogram::default(), Histogram::default());
        for n in 0..300 {
            rare.record(if n % 30 == 0 { 900_000 } else { 1_000 });
            common.record(if n % 10 == 0 { 900_000 } else { 1_000 });
        }
        assert!(rare.p95().unwrap() < Duration::from_millis(2));
        assert!(common.p95().unwrap() >= Duration::from_millis(900));
    }

    #[test]
    fn the_past_fades() {
        let histogram = Histogram::default();
        (0..5_000).for_each(|_| histogram.record(900_000));
        (0..3_000).for_each(|_| histogram.record(1_000));
        assert!(histogram.p95().unwrap() < Duration::from_millis(2));
    }

    #[test]
    fn a_few_answers_tell_nothing() {
        let histogram = Histogram::default();
        (0..ENOUGH - 1).for_each(|_| histogram.record(1_000));
        assert_eq!(histogram.p95(), None);
        histogram.record(1_000);
        assert!(histogram.p95().is_some());
    }
}
