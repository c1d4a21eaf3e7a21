//! Credit limits of an account or a key: a token bucket per second, and a quota per day.
//!
//! Every call takes credits, so both are cheap: the bucket is one atomic word, and the quota a few numbers under a mutex.

use parking_lot::Mutex;
use resources::{MonoTime, RateExceeded, TokenBucket};

/// Why credits were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitExceeded {
    /// The credits of the current second are used up.
    Second { allowed: u64, current: u64, wait_ms: u64 },
    /// The credits of the current day are used up.
    Day { wait_s: u64 },
}

impl From<RateExceeded> for LimitExceeded {
    fn from(RateExceeded { allowed, current, wait_ms }: RateExceeded) -> Self {
        Self::Second { allowed, current, wait_ms }
    }
}

/// Credits per second and per day; each limit is optional.
#[derive(Debug, Default)]
pub struct CreditLimits {
    second: Option<TokenBucket>,
    day: Option<DayQuota>,
}

impl CreditLimits {
    pub fn new(credits_per_second: Option<u64>, credits_per_day: Option<u64>) -> Self {
        Self { second: credits_per_second.map(TokenBucket::new), day: credits_per_day.map(DayQuota::new) }
    }

    pub fn is_limited(&self) -> bool {
        self.second.is_some() || self.day.is_some()
    }

    /// Takes the credits from both limits, or from neither. `unix_seconds` is called only if there is a limit per day.
    pub fn take(
        &self,
        now: MonoTime,
        unix_seconds: impl FnOnce() -> u64,
        credits: u64,
    ) -> Result<(), LimitExceeded> {
        if let Some(second) = &self.second {
            second.take(now, credits)?;
        }
        if let Some(day) = &self.day {
            day.take(unix_seconds(), credits).inspect_err(|_| {
                if let Some(second) = &self.second {
                    second.give_back(credits);
                }
            })?;
        }
        Ok(())
    }

    /// Returns the credits of a call that is not charged after all.
    pub fn give_back(&self, unix_seconds: u64, credits: u64) {
        if let Some(second) = &self.second {
            second.give_back(credits);
        }
        if let Some(day) = &self.day {
            day.give_back(unix_seconds, credits);
        }
    }
}

/// Credits per day; a day starts at 00:00 UTC.
///
/// The system clock may be corrected, also backwards over midnight. The credits used on the last few days are therefore kept
/// by day: no credits are granted twice, and a wrong date has no effect after it was corrected.
#[derive(Debug)]
struct DayQuota {
    credits_max: u64,
    days: Mutex<[UsedOnDay; DAYS_KEPT]>,
}

/// The credits used on one day; days count from 1970.
#[derive(Clone, Copy, Debug, Default)]
struct UsedOnDay {
    day: u64,
    credits: u64,
}

const DAY_S: u64 = 86_400;

/// A correction over midnight affects two days; a wrong date that is corrected affects three.
const DAYS_KEPT: usize = 4;

impl DayQuota {
    fn new(credits_max: u64) -> Self {
        Self { credits_max, days: Mutex::default() }
    }

    fn take(&self, unix_seconds: u64, credits: u64) -> Result<(), LimitExceeded> {
        let mut days = self.days.lock();
        let used = used_on(&mut days, unix_seconds / DAY_S);
        let after = used.credits.saturating_add(credits);
        if after > self.credits_max {
            return Err(LimitExceeded::Day { wait_s: DAY_S - unix_seconds % DAY_S });
        }
        used.credits = after;
        Ok(())
    }

    fn give_back(&self, unix_seconds: u64, credits: u64) {
        let mut days = self.days.lock();
        let used = used_on(&mut days, unix_seconds / DAY_S);
        used.credits = used.credits.saturating_sub(credits);
    }
}

/// Moves the entry of a day to the front and returns it. A new day replaces the least recently used one.
fn used_on(days: &mut [UsedOnDay; DAYS_KEPT], day: u64) -> &mut UsedOnDay {
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
    fn credits_refused_by_one_limit_are_not_taken_from_the_other() {
        let credit_limits = CreditLimits::new(Some(500), Some(100));
        let (now, noon) = (MonoTime(SECOND_NS), 20_000 * DAY_S + DAY_S / 2);
        assert_eq!(credit_limits.take(now, || noon, 80), Ok(()));
        for _ in 0..100 {
            assert_eq!(credit_limits.take(now, || noon, 80), Err(LimitExceeded::Day { wait_s: DAY_S / 2 }));
        }
        assert_eq!(credit_limits.take(now, || noon, 20), Ok(()));
        credit_limits.give_back(noon, 100);
        assert_eq!(credit_limits.take(now, || noon, 100), Ok(()));
    }

    #[test]
    fn a_day_ends_at_midnight_utc() {
        let quota = DayQuota::new(100);
        let noon = 20_000 * DAY_S + DAY_S / 2;
        assert_eq!(quota.take(noon, 80), Ok(()));
        assert_eq!(quota.take(noon, 80), Err(LimitExceeded::Day { wait_s: DAY_S / 2 }));
        assert_eq!(quota.take(noon, 20), Ok(()));
        quota.give_back(noon, 20);
        assert_eq!(quota.take(noon, 20), Ok(()));
        assert_eq!(quota.take(noon + DAY_S / 2, 100), Ok(()));
    }

    /// The date was the start of the process plus the time since then, so the day began at the wrong time after a correction
    /// or a suspension. With the wall clock, corrections must not grant the credits of a day twice.
    #[test]
    fn a_clock_that_steps_over_midnight_and_back_grants_the_credits_of_each_day_once() {
        let quota = DayQuota::new(100);
        let midnight = 20_000 * DAY_S;
        let (before, after) = (midnight - 1, midnight + 1);
        assert_eq!(quota.take(before, 70), Ok(()));
        assert_eq!(quota.take(after, 60), Ok(()));
        for _ in 0..10 {
            assert_eq!(quota.take(before, 70), Err(LimitExceeded::Day { wait_s: 1 }));
            assert_eq!(quota.take(after, 60), Err(LimitExceeded::Day { wait_s: DAY_S - 1 }));
        }
        assert_eq!((quota.take(before, 30), quota.take(after, 40)), (Ok(()), Ok(())));
        assert!(quota.take(before, 1).is_err() && quota.take(after, 1).is_err());
    }

    #[test]
    fn a_wrong_date_has_no_effect_after_it_was_corrected() {
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
