//! A rate limit per second.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock::MonoTime;

const SECOND_NS: u64 = 1_000_000_000;

/// The credits of the current second are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateExceeded {
    pub allowed: u64,
    pub current: u64,
    pub wait_ms: u64,
}

/// Credits per second, with a burst of one second.
///
/// The state is the time at which the bucket is full again. A call that costs more than the whole bucket is admitted when the
/// bucket is full, and later calls wait for the difference; otherwise the smallest plan could never make the most expensive
/// call.
#[derive(Debug)]
pub struct TokenBucket {
    per_second: u64,
    full_at: AtomicU64,
}

impl TokenBucket {
    pub fn new(per_second: u64) -> Self {
        Self { per_second: per_second.max(1), full_at: AtomicU64::new(0) }
    }

    pub fn take(&self, now: MonoTime, credits: u64) -> Result<(), RateExceeded> {
        let cost_ns = self.nanoseconds(credits);
        let mut seen = self.full_at.load(Relaxed);
        loop {
            let full_at = seen.max(now.0);
            let debt_ns = full_at - now.0;
            if debt_ns > SECOND_NS.saturating_sub(cost_ns) {
                return Err(self.exceeded(debt_ns, cost_ns));
            }
            let after = full_at.saturating_add(cost_ns);
            match self.full_at.compare_exchange_weak(seen, after, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(changed) => seen = changed,
            }
        }
    }

    /// Whether no credits are in use, as in a new bucket.
    pub fn is_full(&self, now: MonoTime) -> bool {
        self.full_at.load(Relaxed) <= now.0
    }

    pub fn give_back(&self, credits: u64) {
        let cost_ns = self.nanoseconds(credits);
        let _always = self.full_at.fetch_update(Relaxed, Relaxed, |at| Some(at.saturating_sub(cost_ns)));
    }

    /// How long the bucket takes to refill `credits`.
    fn nanoseconds(&self, credits: u64) -> u64 {
        u64::try_from(u128::from(credits) * u128::from(SECOND_NS) / u128::from(self.per_second))
            .unwrap_or(u64::MAX)
    }

    fn exceeded(&self, debt_ns: u64, cost_ns: u64) -> RateExceeded {
        let wanted_ns = u128::from(debt_ns.saturating_add(cost_ns));
        let current = u64::try_from(wanted_ns * u128::from(self.per_second) / u128::from(SECOND_NS));
        let wait_ns = debt_ns - SECOND_NS.saturating_sub(cost_ns);
        RateExceeded {
            allowed: self.per_second,
            current: current.unwrap_or(u64::MAX),
            wait_ms: wait_ns.div_ceil(1_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn used_up_credits_are_refused_with_the_time_to_wait() {
        let bucket = TokenBucket::new(500);
        let at = |ms: u64| MonoTime(SECOND_NS + ms * MS);
        for _ in 0..6 {
            assert_eq!(bucket.take(at(0), 80), Ok(()));
        }
        let refused = bucket.take(at(0), 80).unwrap_err();
        assert_eq!(refused, RateExceeded { allowed: 500, current: 560, wait_ms: 120 });
        assert!(bucket.take(at(119), 80).is_err());
        assert_eq!(bucket.take(at(120), 80), Ok(()));
    }

    #[test]
    fn a_call_that_costs_more_than_the_bucket_is_admitted_when_it_is_full() {
        let bucket = TokenBucket::new(500);
        let at = |ms: u64| MonoTime(SECOND_NS + ms * MS);
        assert_eq!(bucket.take(at(0), 1_000), Ok(()));
        assert!(bucket.take(at(1_000), 80).is_err());
        assert_eq!(bucket.take(at(1_200), 80), Ok(()));
    }
}
