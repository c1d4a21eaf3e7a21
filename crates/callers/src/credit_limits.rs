//! Credit limits of an account or a key: a token bucket per second, and a quota per day.

use parking_lot::Mutex;
use resources::{DayQuota, DayQuotaExceeded, MonoTime, RateExceeded, TokenBucket};

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

/// Credits per second and per day; each limit is optional.
#[derive(Debug, Default)]
pub struct CreditLimits {
    /// `None` without any limit, so that unlimited accounts take no lock.
    limits: Option<Mutex<LimitState>>,
}

#[derive(Debug)]
struct LimitState {
    second: Option<TokenBucket>,
    day: Option<DayQuota>,
}

impl CreditLimits {
    pub fn new(credits_per_second: Option<u64>, credits_per_day: Option<u64>) -> Self {
        let second = credits_per_second.map(|credits| TokenBucket::per_second(credits.max(1)));
        let state = LimitState { second, day: credits_per_day.map(DayQuota::new) };
        let is_limited = state.second.is_some() || state.day.is_some();
        Self { limits: is_limited.then(|| Mutex::new(state)) }
    }

    pub fn is_limited(&self) -> bool {
        self.limits.is_some()
    }

    /// Takes the credits from both limits, or from neither. `unix_seconds` is called only if there is a limit per day.
    pub fn take(
        &self,
        now: MonoTime,
        unix_seconds: impl FnOnce() -> u64,
        credits: u64,
    ) -> Result<(), LimitExceeded> {
        let Some(limits) = &self.limits else { return Ok(()) };
        let LimitState { second, day } = &mut *limits.lock();
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
        let Some(limits) = &self.limits else { return };
        let LimitState { second, day } = &mut *limits.lock();
        if let Some(second) = second {
            second.put(credits);
        }
        if let Some(day) = day {
            day.give_back(credits, unix_seconds);
        }
    }
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
}
