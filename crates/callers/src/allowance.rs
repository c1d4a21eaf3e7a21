//! How much an account or a key may use: a bucket of credits that refills each second, and a quota for each day.
//!
//! Every call passes here, so both are held for nanoseconds only: the bucket is one atomic word, the quota a few numbers
//! under a mutex.

use parking_lot::Mutex;
use resources::{Bucket, Moment, RateExceeded};

/// Why credits were not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// The second's credits are used up.
    Second { allowed: u64, current: u64, wait_ms: u64 },
    /// The day's credits are used up.
    Day { wait_s: u64 },
}

impl From<RateExceeded> for Spent {
    fn from(RateExceeded { allowed, current, wait_ms }: RateExceeded) -> Self {
        Self::Second { allowed, current, wait_ms }
    }
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

/// Credits per day; the day starts at 00:00 UTC.
///
/// The clock of the system is corrected now and then, also backwards over midnight. What was used on the last few days is
/// therefore remembered by day: no day's credits are given twice, and a date that was wrong for a while does no harm
/// after it was corrected.
#[derive(Debug)]
pub(crate) struct DayQuota {
    most: u64,
    days: Mutex<[UsedOnDay; DAYS_REMEMBERED]>,
}

/// The credits used on one day, which is counted from 1970.
#[derive(Clone, Copy, Debug, Default)]
struct UsedOnDay {
    day: u64,
    credits: u64,
}

const DAY_S: u64 = 86_400;

/// A correction concerns two days, a wrong date that is corrected three.
const DAYS_REMEMBERED: usize = 4;

impl DayQuota {
    pub(crate) fn new(most: u64) -> Self {
        Self { most, days: Mutex::default() }
    }

    pub(crate) fn take(&self, unix_seconds: u64, credits: u64) -> Result<(), Spent> {
        let mut days = self.days.lock();
        let used = used_on(&mut days, unix_seconds / DAY_S);
        let after = used.credits.saturating_add(credits);
        if after > self.most {
            return Err(Spent::Day { wait_s: DAY_S - unix_seconds % DAY_S });
        }
        used.credits = after;
        Ok(())
    }

    /// Returns credits of a call that went wrong by our fault.
    pub(crate) fn give_back(&self, unix_seconds: u64, credits: u64) {
        let mut days = self.days.lock();
        let used = used_on(&mut days, unix_seconds / DAY_S);
        used.credits = used.credits.saturating_sub(credits);
    }
}

/// The entry of a day, which becomes the first. A new day takes the place of the one that was used longest ago.
fn used_on(days: &mut [UsedOnDay; DAYS_REMEMBERED], day: u64) -> &mut UsedOnDay {
    if days[0].day != day {
        match days.iter().position(|used| used.day == day) {
            Some(found) => days[..=found].rotate_right(1),
            None => {
                days.rotate_right(1);
                days[0] = UsedOnDay { day, credits: 0 };
            }
        }
    }
    &mut days[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

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
        assert_eq!(quota.take(noon + DAY_S / 2, 100), Ok(()));
    }

    /// The date was once the start of the process plus the time since then, so that after a correction or a suspended
    /// machine the day began at the wrong time. Now the corrections themselves must not give a day's credits twice.
    #[test]
    fn a_clock_that_steps_over_midnight_and_back_gives_each_day_its_credits_once() {
        let quota = DayQuota::new(100);
        let midnight = 20_000 * DAY_S;
        let (before, after) = (midnight - 1, midnight + 1);
        assert_eq!(quota.take(before, 70), Ok(()));
        assert_eq!(quota.take(after, 60), Ok(()));
        for _ in 0..10 {
            assert_eq!(quota.take(before, 70), Err(Spent::Day { wait_s: 1 }));
            assert_eq!(quota.take(after, 60), Err(Spent::Day { wait_s: DAY_S - 1 }));
        }
        assert_eq!((quota.take(before, 30), quota.take(after, 40)), (Ok(()), Ok(())));
        assert!(quota.take(before, 1).is_err() && quota.take(after, 1).is_err());
    }

    #[test]
    fn a_date_that_was_wrong_for_a_while_does_no_harm_later() {
        let quota = DayQuota::new(100);
        let today = 20_000 * DAY_S;
        assert_eq!(quota.take(today, 100), Ok(()));
        for wrong in [0, today + 3_650 * DAY_S] {
            assert_eq!(quota.take(wrong, 100), Ok(()));
            assert!(quota.take(today, 1).is_err(), "the credits of today are used up");
        }
        for day in 1..400 {
            assert_eq!(quota.take(today + day * DAY_S, 100), Ok(()));
            assert!(quota.take(today + day * DAY_S, 1).is_err());
        }
    }
}
