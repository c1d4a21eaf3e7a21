//! How much an account or a key may use: a bucket of credits that refills each second, and a quota for each day.
//!
//! Both are one atomic word each, because every call passes here and none may wait for another.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock::Moment;

const SECOND_NS: u64 = 1_000_000_000;

/// Why credits were not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// The second's credits are used up.
    Second { allowed: u64, current: u64, wait_ms: u64 },
    /// The day's credits are used up.
    Day { wait_s: u64 },
}

/// Both limits together, either of which may be missing.
#[derive(Debug, Default)]
pub struct Allowance {
    throughput: Option<Bucket>,
    day: Option<DayQuota>,
}

impl Allowance {
    pub fn new(credits_per_second: Option<u64>, credits_per_day: Option<u64>) -> Self {
        Self { throughput: credits_per_second.map(Bucket::new), day: credits_per_day.map(DayQuota::new) }
    }

    pub fn is_limited(&self) -> bool {
        self.throughput.is_some() || self.day.is_some()
    }

    /// Takes the credits from both, or from neither. The calendar is asked for only if there is a limit for the day.
    pub fn take(&self, now: Moment, unix_seconds: impl FnOnce() -> u64, credits: u64) -> Result<(), Spent> {
        if let Some(throughput) = &self.throughput {
            throughput.take(now, credits)?;
        }
        if let Some(day) = &self.day {
            day.take(unix_seconds(), credits).inspect_err(|_| {
                if let Some(throughput) = &self.throughput {
                    throughput.give_back(credits);
                }
            })?;
        }
        Ok(())
    }

    /// Returns credits of a call that turned out to cost nothing.
    pub fn give_back(&self, unix_seconds: u64, credits: u64) {
        if let Some(throughput) = &self.throughput {
            throughput.give_back(credits);
        }
        if let Some(day) = &self.day {
            day.give_back(unix_seconds, credits);
        }
    }
}

/// Credits per second, with one second's worth of burst.
///
/// Kept as the moment at which the bucket is full again. A call that costs more than the whole bucket is let in when the
/// bucket is full and paid off afterwards; else the smallest plan could never make the most expensive call.
#[derive(Debug)]
pub struct Bucket {
    per_second: u64,
    full_at: AtomicU64,
}

impl Bucket {
    pub fn new(per_second: u64) -> Self {
        Self { per_second: per_second.max(1), full_at: AtomicU64::new(0) }
    }

    pub fn take(&self, now: Moment, credits: u64) -> Result<(), Spent> {
        let cost_ns = self.nanoseconds(credits);
        let mut seen = self.full_at.load(Relaxed);
        loop {
            let full_at = seen.max(now.0);
            let debt_ns = full_at - now.0;
            if debt_ns > SECOND_NS.saturating_sub(cost_ns) {
                return Err(self.spent(debt_ns, cost_ns));
            }
            let after = full_at.saturating_add(cost_ns);
            match self.full_at.compare_exchange_weak(seen, after, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(changed) => seen = changed,
            }
        }
    }

    pub fn give_back(&self, credits: u64) {
        let cost_ns = self.nanoseconds(credits);
        let _always = self.full_at.fetch_update(Relaxed, Relaxed, |at| Some(at.saturating_sub(cost_ns)));
    }

    /// How long the bucket takes to gather `credits`.
    fn nanoseconds(&self, credits: u64) -> u64 {
        u64::try_from(u128::from(credits) * u128::from(SECOND_NS) / u128::from(self.per_second))
            .unwrap_or(u64::MAX)
    }

    fn spent(&self, debt_ns: u64, cost_ns: u64) -> Spent {
        let wanted_ns = u128::from(debt_ns.saturating_add(cost_ns));
        let current = u64::try_from(wanted_ns * u128::from(self.per_second) / u128::from(SECOND_NS));
        let wait_ns = debt_ns - SECOND_NS.saturating_sub(cost_ns);
        Spent::Second {
            allowed: self.per_second,
            current: current.unwrap_or(u64::MAX),
            wait_ms: wait_ns.div_ceil(1_000_000),
        }
    }
}

/// Credits per day; the day starts at 00:00 UTC.
#[derive(Debug)]
pub struct DayQuota {
    most: u64,
    /// The day (16 bits) and what was used on it (48 bits), so that both change together.
    used: AtomicU64,
}

const DAY_S: u64 = 86_400;
const USED_BITS: u32 = 48;
const USED_MASK: u64 = (1 << USED_BITS) - 1;

impl DayQuota {
    pub fn new(most: u64) -> Self {
        Self { most: most.min(USED_MASK), used: AtomicU64::new(0) }
    }

    pub fn take(&self, unix_seconds: u64, credits: u64) -> Result<(), Spent> {
        let today = (unix_seconds / DAY_S) & 0xffff;
        let mut seen = self.used.load(Relaxed);
        loop {
            let used = if seen >> USED_BITS == today { seen & USED_MASK } else { 0 };
            let after = used.saturating_add(credits);
            if after > self.most {
                return Err(Spent::Day { wait_s: DAY_S - unix_seconds % DAY_S });
            }
            let word = today << USED_BITS | after;
            match self.used.compare_exchange_weak(seen, word, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(changed) => seen = changed,
            }
        }
    }

    /// Returns credits of a call that went wrong by our fault, unless its day is over.
    pub fn give_back(&self, unix_seconds: u64, credits: u64) {
        let today = (unix_seconds / DAY_S) & 0xffff;
        let _other_day = self.used.fetch_update(Relaxed, Relaxed, |word| {
            let used = (word & USED_MASK).saturating_sub(credits);
            (word >> USED_BITS == today).then_some(today << USED_BITS | used)
        });
    }

    /// What is used up of the day so far.
    pub fn used(&self, unix_seconds: u64) -> u64 {
        let word = self.used.load(Relaxed);
        if word >> USED_BITS == (unix_seconds / DAY_S) & 0xffff { word & USED_MASK } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_second_gives_its_credits_once_and_then_says_how_long_to_wait() {
        let bucket = Bucket::new(500);
        let at = |ms: u64| Moment(SECOND_NS + ms * MS);
        for _ in 0..6 {
            assert_eq!(bucket.take(at(0), 80), Ok(()));
        }
        let refused = bucket.take(at(0), 80).unwrap_err();
        assert_eq!(refused, Spent::Second { allowed: 500, current: 560, wait_ms: 120 });
        assert!(bucket.take(at(119), 80).is_err());
        assert_eq!(bucket.take(at(120), 80), Ok(()));
    }

    #[test]
    fn a_call_dearer_than_the_bucket_is_let_in_when_it_is_full_and_paid_off_after() {
        let bucket = Bucket::new(500);
        let at = |ms: u64| Moment(SECOND_NS + ms * MS);
        assert_eq!(bucket.take(at(0), 1_000), Ok(()));
        assert!(matches!(bucket.take(at(1_000), 80), Err(Spent::Second { .. })));
        assert_eq!(bucket.take(at(1_200), 80), Ok(()));
    }

    #[test]
    fn what_one_limit_refuses_costs_nothing_in_the_other() {
        let allowance = Allowance::new(Some(500), Some(100));
        let (now, noon) = (Moment(SECOND_NS), 20_000 * DAY_S + DAY_S / 2);
        assert_eq!(allowance.take(now, || noon, 80), Ok(()));
        for _ in 0..100 {
            assert_eq!(allowance.take(now, || noon, 80), Err(Spent::Day { wait_s: DAY_S / 2 }));
        }
        assert_eq!(allowance.take(now, || noon, 20), Ok(()));
        allowance.give_back(noon, 100);
        assert_eq!(allowance.take(now, || noon, 100), Ok(()));
    }

    #[test]
    fn a_day_ends_at_midnight_utc() {
        let quota = DayQuota::new(100);
        let noon = 20_000 * DAY_S + DAY_S / 2;
        assert_eq!(quota.take(noon, 80), Ok(()));
        assert_eq!(quota.take(noon, 80), Err(Spent::Day { wait_s: DAY_S / 2 }));
        assert_eq!(quota.take(noon, 20), Ok(()));
        quota.give_back(noon, 20);
        assert_eq!(quota.take(noon, 20), Ok(()));
        assert_eq!((quota.used(noon), quota.used(noon + DAY_S)), (100, 0));
        assert_eq!(quota.take(noon + DAY_S / 2, 80), Ok(()));
    }
}
