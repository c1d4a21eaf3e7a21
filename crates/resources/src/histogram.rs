//! Histograms of durations.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets, in microseconds.
pub const BOUNDS_US: [u64; 14] =
    [5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000];

/// How many buckets there are: one per bound, and one for durations above all bounds.
pub const BUCKETS: usize = BOUNDS_US.len() + 1;

/// The bucket of a duration in nanoseconds.
pub fn bucket_of(ns: u64) -> usize {
    BOUNDS_US.partition_point(|&bound| bound * 1_000 < ns)
}

/// Counts durations by bucket.
#[derive(Debug, Default)]
pub struct Histogram {
    /// The last bucket counts durations above all bounds.
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

/// The sum of several histograms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramSum {
    pub buckets: [u64; BUCKETS],
    pub sum_ns: u64,
}

impl Histogram {
    pub fn record(&self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(ns)].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(ns, Relaxed);
    }

    fn add_to(&self, sum: &mut HistogramSum) {
        for (sum, bucket) in sum.buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.load(Relaxed);
        }
        sum.sum_ns = sum.sum_ns.wrapping_add(self.sum_ns.load(Relaxed));
    }
}

impl HistogramSum {
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The time that this share of the durations does not exceed, in milliseconds; `None` without durations. Inside a bucket
    /// durations count as evenly spread; those above all bounds count as the last bound.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = share.clamp(0.0, 1.0) * count as f64;
        let (mut below, mut lower) = (0.0, 0.0);
        for (inside, bound) in self.buckets.iter().zip(BOUNDS_US) {
            let (inside, upper) = (*inside as f64, bound as f64);
            if inside > 0.0 && below + inside >= rank {
                return Some((lower + (upper - lower) * (rank - below) / inside) / 1_000.0);
            }
            (below, lower) = (below + inside, upper);
        }
        Some(lower / 1_000.0)
    }
}

impl<'a> FromIterator<&'a Histogram> for HistogramSum {
    fn from_iter<I: IntoIterator<Item = &'a Histogram>>(histograms: I) -> Self {
        let mut sum = Self::default();
        histograms.into_iter().for_each(|histogram| histogram.add_to(&mut sum));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_inside_the_bucket_of_their_rank() {
        let mut sum = HistogramSum::default();
        assert_eq!(sum.quantile_ms(0.5), None);
        sum.buckets[7] = 100;
        assert_eq!((sum.quantile_ms(0.5), sum.quantile_ms(1.0)), (Some(0.75), Some(1.0)));
        sum.buckets[14] = 100;
        assert_eq!((sum.quantile_ms(0.25), sum.quantile_ms(0.99)), (Some(0.75), Some(10_000.0)));
    }

    #[test]
    fn a_duration_is_counted_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::default();
        for ns in [0, 5_000, 5_001, 10_000_000_000, 10_000_000_001, u64::MAX] {
            histogram.record(Duration::from_nanos(ns));
        }
        let sum = HistogramSum::from_iter([&histogram]);
        assert_eq!((sum.buckets[0], sum.buckets[1]), (2, 1));
        assert_eq!((sum.buckets[13], sum.buckets[14]), (1, 2));
        assert_eq!(sum.count(), 6);
    }
}
