//! Recent latencies, counted in buckets of which each is about a quarter wider than the one before.

use std::time::Duration;

/// Four buckets for each doubling, from 64 µs to 67 s, which is longer than any deadline.
const BUCKETS: usize = 80;
/// Everything below 2⁶ µs falls into the first bucket.
const FIRST_POWER: u32 = 6;
/// All counts are halved when there are this many, so that only the last few hundred answers count.
const TOTAL_MAX: u32 = 512;
/// With fewer answers there is no 95th percentile.
const TOTAL_MIN: u32 = 20;
/// The 95th percentile is computed once per this many answers, because it is read for every call.
const REFRESH_INTERVAL: u32 = 8;

#[derive(Debug)]
pub(super) struct LatencyHistogram {
    counts: [u32; BUCKETS],
    total: u32,
    p95: Option<Duration>,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], total: 0, p95: None }
    }
}

impl LatencyHistogram {
    pub(super) fn record(&mut self, latency: Duration) {
        self.counts[bucket(u32::try_from(latency.as_micros()).unwrap_or(u32::MAX))] += 1;
        self.total += 1;
        let is_refreshed = self.total.is_multiple_of(REFRESH_INTERVAL) || self.total == TOTAL_MIN;
        if self.total >= TOTAL_MAX {
            self.halve();
        }
        if is_refreshed && self.total >= TOTAL_MIN {
            self.refresh();
        }
    }

    /// The upper bound of 95 % of the latencies; `None` while there are too few.
    pub(super) fn p95(&self) -> Option<Duration> {
        self.p95
    }

    fn halve(&mut self) {
        self.counts.iter_mut().for_each(|count| *count /= 2);
        self.total = self.counts.iter().sum();
    }

    fn refresh(&mut self) {
        let above_max = self.total / 20;
        let mut above = 0;
        let slowest = self.counts.iter().rposition(|count| {
            above += count;
            above > above_max
        });
        self.p95 = slowest.map(|bucket| Duration::from_micros(upper_bound_us(bucket).into()));
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

    const FAST: Duration = Duration::from_millis(1);
    const SLOW: Duration = Duration::from_millis(900);

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
        let (mut rare, mut common) = (LatencyHistogram::default(), LatencyHistogram::default());
        for n in 0..300 {
            rare.record(if n % 30 == 0 { SLOW } else { FAST });
            common.record(if n % 10 == 0 { SLOW } else { FAST });
        }
        assert!(rare.p95().unwrap() < Duration::from_millis(2));
        assert!(common.p95().unwrap() >= Duration::from_millis(900));
    }

    #[test]
    fn old_latencies_are_forgotten() {
        let mut histogram = LatencyHistogram::default();
        (0..5_000).for_each(|_| histogram.record(SLOW));
        (0..3_000).for_each(|_| histogram.record(FAST));
        assert!(histogram.p95().unwrap() < Duration::from_millis(2));
    }

    #[test]
    fn a_few_answers_give_no_percentile() {
        let mut histogram = LatencyHistogram::default();
        (1..TOTAL_MIN).for_each(|_| histogram.record(FAST));
        assert_eq!(histogram.p95(), None);
        histogram.record(FAST);
        assert!(histogram.p95().is_some());
    }
}
