//! Credit limits of an account or a key: a token bucket per second, and a quota per day.

use std::sync::OnceLock;

use parking_lot::Mutex;
use resources::{BucketRate, DayQuota, DayQuotaExceeded, MonoTime, RateExceeded, TokenBucket};

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

impl From<DayQuotaExceeded> for LimitExceeded {
    fn from(DayQuotaExceeded { wait_s }: DayQuotaExceeded) -> Self {
        Self::Day { wait_s }
    }
}

/// Credits per second and per day; each limit is optional, and can be changed while it is in use.
#[derive(Debug, Default)]
pub struct CreditLimits {
    /// Not set before there is a limit, so that unlimited accounts take no lock.
    state: OnceLock<Mutex<LimitState>>,
}

#[derive(Debug, Default)]
struct LimitState {
    second: Option<TokenBucket>,
    day: Option<DayQuota>,
}

impl CreditLimits {
    pub fn new(credits_per_second: Option<u64>, credits_per_day: Option<u64>) -> Self {
        let credit_limits = Self::default();
        credit_limits.set_limits(credits_per_second, credits_per_day, MonoTime::default());
        credit_limits
    }

    /// Changes the limits. What was used of the current second and of the current day stays used; what is used while there
    /// is no limit is not counted.
    pub fn set_limits(&self, per_second: Option<u64>, per_day: Option<u64>, now: MonoTime) {
        if per_second.is_none() && per_day.is_none() && self.state.get().is_none() {
            return;
        }
        let LimitState { second, day } = &mut *self.state.get_or_init(Mutex::default).lock();
        *second = per_second.map(|credits| bucket_of(credits.max(1), *second, now));
        *day = per_day.map(|credits| {
            let mut quota = day.unwrap_or_else(|| DayQuota::new(credits));
            quota.set_per_day(credits);
            quota
        });
    }

    /// Makes sure that at least this many credits count as used today, such as those that were used before a restart.
    pub fn raise_used_today(&self, credits: u64, unix_seconds: u64) {
        let Some(state) = self.state.get() else { return };
        if let Some(day) = &mut state.lock().day {
            day.raise_used(credits, unix_seconds);
        }
    }

    pub fn is_limited(&self) -> bool {
        let is_limited = |LimitState { second, day }: &LimitState| second.is_some() || day.is_some();
        self.state.get().is_some_and(|state| is_limited(&state.lock()))
    }

    /// Takes the credits from both limits, or from neither. `unix_seconds` is called only if there is a limit per day.
    pub fn take(
        &self,
        now: MonoTime,
        unix_seconds: impl FnOnce() -> u64,
        credits: u64,
    ) -> Result<(), LimitExceeded> {
        let Some(state) = self.state.get() else { return Ok(()) };
        let LimitState { second, day } = &mut *state.lock();
        if let Some(second) = second {
            second.take_or_owe(credits, now)?;
        }
        if let Some(day) = day {
            day.take(credits, unix_seconds()).inspect_err(|_| {
                if let Some(second) = second {
                    second.put(credits);
                }
            })?;
        }
        Ok(())
    }

    /// Returns the credits of a call that is not charged after all.
    pub fn give_back(&self, unix_seconds: u64, credits: u64) {
        let Some(state) = self.state.get() else { return };
        let LimitState { second, day } = &mut *state.lock();
        if let Some(second) = second {
            second.put(credits);
        }
        if let Some(day) = day {
            day.give_back(credits, unix_seconds);
        }
    }
}

/// The bucket of a limit per second: a full one for a new limit, else the present one at another rate.
fn bucket_of(credits: u64, present: Option<TokenBucket>, now: MonoTime) -> TokenBucket {
    let Some(mut bucket) = present else { return TokenBucket::per_second(credits) };
    bucket.set_rate(BucketRate { per_second: credits, capacity: credits }, now);
    bucket
}

#[cfg(test)]
mod tests {
    use resources::DAY_S;

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
    fn limits_change_while_they_are_in_use_and_what_was_used_stays_used() {
        let credit_limits = CreditLimits::new(Some(500), Some(1_000));
        let (now, noon) = (MonoTime(SECOND_NS), 20_000 * DAY_S + DAY_S / 2);
        assert_eq!(credit_limits.take(now, || noon, 450), Ok(()));
        credit_limits.set_limits(Some(4_000), Some(2_000), now);
        assert!(matches!(
            credit_limits.take(now, || noon, 100),
            Err(LimitExceeded::Second { allowed: 4_000, .. })
        ));
        let later = MonoTime(2 * SECOND_NS);
        assert_eq!(credit_limits.take(later, || noon, 1_550), Ok(()));
        assert_eq!(credit_limits.take(later, || noon, 1), Err(LimitExceeded::Day { wait_s: DAY_S / 2 }));
        credit_limits.set_limits(None, None, later);
        assert_eq!((credit_limits.is_limited(), credit_limits.take(later, || noon, 9_999)), (false, Ok(())));
    }

    #[test]
    fn an_account_without_limits_gets_some() {
        let credit_limits = CreditLimits::new(None, None);
        let (now, noon) = (MonoTime(SECOND_NS), 20_000 * DAY_S + DAY_S / 2);
        credit_limits.raise_used_today(70, noon);
        assert_eq!(credit_limits.take(now, || noon, 9_999), Ok(()));
        credit_limits.set_limits(None, Some(100), now);
        credit_limits.raise_used_today(70, noon);
        assert!(credit_limits.take(now, || noon, 31).is_err());
        assert_eq!(credit_limits.take(now, || noon, 30), Ok(()));
    }
}
