//! A limit per day. This is the only place that knows when a day begins.

/// Seconds of a day.
pub const DAY_S: u64 = 86_400;

/// A correction over midnight affects two days; a wrong date that is corrected affects three.
const DAYS_KEPT: usize = 4;

/// The quota of the day is used up until midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayQuotaExceeded {
    pub wait_s: u64,
}

/// An amount per day; a day starts at 00:00 UTC.
///
/// The system clock may be corrected, also backwards over midnight. The amounts of the last few days are therefore kept: nothing is granted twice, and a wrong date has no effect after it was corrected.
#[derive(Clone, Copy, Debug)]
pub struct DayQuota {
    per_day: u64,
    /// The current day first.
    days: [UsedOnDay; DAYS_KEPT],
}

/// The amount used on one day; days count from 1970.
#[derive(Clone, Copy, Debug, Default)]
struct UsedOnDay {
    day: u64,
    amount: u64,
}

impl DayQuota {
    pub fn new(per_day: u64) -> Self {
        Self { per_day, days: Default::default() }
    }

    /// Changes the amount per day. The amounts used stay.
    pub fn set_per_day(&mut self, per_day: u64) {
        self.per_day = per_day;
    }

    pub fn per_day(&self) -> u64 {
        self.per_day
    }

    /// The amount that was used on the day of this time.
    pub fn used(&mut self, unix_seconds: u64) -> u64 {
        *self.used_on(unix_seconds / DAY_S)
    }

    /// Makes sure that at least this amount counts as used on a day, such as the one that was used before a restart.
    pub fn raise_used(&mut self, amount: u64, unix_seconds: u64) {
        let used = self.used_on(unix_seconds / DAY_S);
        *used = amount.max(*used);
    }

    /// Takes the whole amount or nothing.
    pub fn take(&mut self, amount: u64, unix_seconds: u64) -> Result<(), DayQuotaExceeded> {
        let per_day = self.per_day;
        let used = self.used_on(unix_seconds / DAY_S);
        let after = used.saturating_add(amount);
        if after > per_day {
            return Err(DayQuotaExceeded { wait_s: DAY_S - unix_seconds % DAY_S });
        }
        *used = after;
        Ok(())
    }

    pub fn give_back(&mut self, amount: u64, unix_seconds: u64) {
        let used = self.used_on(unix_seconds / DAY_S);
        *used = used.saturating_sub(amount);
    }

    /// The amount used on a day, which becomes the current one. A new day replaces the one that was current longest ago.
    fn used_on(&mut self, day: u64) -> &mut u64 {
        if self.days[0].day != day {
            match self.days.iter().position(|used| used.day == day) {
                Some(found) => self.days[..=found].rotate_right(1),
                None => {
                    self.days.rotate_right(1);
                    self.days[0] = UsedOnDay { day, amount: 0 };
                }
            }
        }
        &mut self.days[0].amount
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_midnight_utc() {
        let mut quota = DayQuota::new(100);
        let noon = 20_000 * DAY_S + DAY_S / 2;
        assert_eq!(quota.take(80, noon), Ok(()));
        assert_eq!(quota.take(80, noon), Err(DayQuotaExceeded { wait_s: DAY_S / 2 }));
        assert_eq!(quota.take(20, noon), Ok(()));
        quota.give_back(20, noon);
        assert_eq!(quota.take(20, noon), Ok(()));
        assert_eq!(quota.take(100, noon + DAY_S / 2), Ok(()));
    }

    #[test]
    fn a_change_of_the_amount_keeps_what_was_used() {
        let mut quota = DayQuota::new(100);
        let noon = 20_000 * DAY_S + DAY_S / 2;
        assert_eq!(quota.take(100, noon), Ok(()));
        quota.set_per_day(150);
        assert_eq!((quota.take(51, noon).is_err(), quota.take(50, noon)), (true, Ok(())));
        quota.set_per_day(100);
        assert!(quota.take(1, noon).is_err());
    }

    #[test]
    fn what_was_used_before_a_restart_is_not_granted_again() {
        let mut quota = DayQuota::new(100);
        let noon = 20_000 * DAY_S + DAY_S / 2;
        quota.take(30, noon).unwrap();
        quota.raise_used(80, noon);
        quota.raise_used(10, noon);
        assert_eq!((quota.take(21, noon).is_err(), quota.take(20, noon)), (true, Ok(())));
    }

    /// The date was the start of the process plus the time since then, so the day began at the wrong time after a correction
    /// or a suspension. With the wall clock, corrections must not grant the amount of a day twice.
    #[test]
    fn a_clock_that_steps_over_midnight_and_back_grants_each_day_once() {
        let mut quota = DayQuota::new(100);
        let midnight = 20_000 * DAY_S;
        let (before, after) = (midnight - 1, midnight + 1);
        assert_eq!(quota.take(70, before), Ok(()));
        assert_eq!(quota.take(60, after), Ok(()));
        for _ in 0..10 {
            assert_eq!(quota.take(70, before), Err(DayQuotaExceeded { wait_s: 1 }));
            assert_eq!(quota.take(60, after), Err(DayQuotaExceeded { wait_s: DAY_S - 1 }));
        }
        assert_eq!((quota.take(30, before), quota.take(40, after)), (Ok(()), Ok(())));
        assert!(quota.take(1, before).is_err() && quota.take(1, after).is_err());
    }

    #[test]
    fn a_wrong_date_has_no_effect_after_it_was_corrected() {
        let mut quota = DayQuota::new(100);
        let today = 20_000 * DAY_S;
        assert_eq!(quota.take(100, today), Ok(()));
        for wrong in [0, today + 3_650 * DAY_S] {
            assert_eq!(quota.take(100, wrong), Ok(()));
            assert!(quota.take(1, today).is_err(), "the amount of today is used up");
        }
        for day in 1..400 {
            assert_eq!(quota.take(100, today + day * DAY_S), Ok(()));
            assert!(quota.take(1, today + day * DAY_S).is_err());
        }
    }
}
