//! The state of one limit: what is left of the second and of the day, and which part of the second belongs to this instance.

use resources::{BucketRate, DayQuota, DayQuotaExceeded, MonoTime, RateExceeded, TokenBucket};

use crate::limit_share::{LimitShare, NextReport, SharingState};

/// Credits for a batch itself, on top of its calls: as much as one `eth_chainId`. They are taken first, so the most expensive
/// call is admitted although they are missing.
pub const BATCH_CREDITS: u64 = 5;

/// Why credits were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitExceeded {
    /// The credits of the current second are used up.
    Second { allowed: u64, current: u64, wait_ms: u64 },
    /// The credits of the current day are used up.
    Day { wait_s: u64 },
}

impl From<DayQuotaExceeded> for LimitExceeded {
    fn from(DayQuotaExceeded { wait_s }: DayQuotaExceeded) -> Self {
        Self::Day { wait_s }
    }
}

/// Credits per second and per day; each limit is optional.
#[derive(Debug, Default)]
pub(crate) struct LimitState {
    /// The limit per second of all instances together.
    per_second: Option<u64>,
    /// Fills at the rate of this instance.
    second: Option<TokenBucket>,
    day: Option<DayQuota>,
    /// `None` if this instance counts for itself.
    share: Option<Box<LimitShare>>,
}

/// The report of an instance about one limit per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateReport {
    pub(crate) limit: u64,
    pub(crate) demand: u64,
    /// The rate in use; 0 before Redis has assigned one.
    pub(crate) rate: u64,
    /// Whether the instance stops to use the limit.
    pub(crate) is_leaving: bool,
}

impl LimitState {
    pub(crate) fn is_limited(&self) -> bool {
        self.second.is_some() || self.day.is_some()
    }

    /// Changes the limits. The part of this instance changes in proportion.
    pub(crate) fn set_limits(&mut self, per_second: Option<u64>, per_day: Option<u64>, now: MonoTime) {
        let old = self.per_second;
        self.second = per_second.map(|limit| match (self.second, old) {
            (Some(mut bucket), Some(old)) => {
                bucket.set_rate(one_second(in_proportion(bucket.rate().per_second, limit, old).max(1)), now);
                bucket
            }
            _ => TokenBucket::per_second(limit),
        });
        self.per_second = per_second;
        self.day = per_day.map(|limit| {
            let mut quota = self.day.unwrap_or_else(|| DayQuota::new(limit));
            quota.set_per_day(limit);
            quota
        });
        if let Some(share) = &mut self.share {
            share.is_urgent = true;
            share.is_active &= per_second.is_some();
        }
    }

    /// The limits per second and per day.
    pub(crate) fn limits(&self) -> [Option<u64>; 2] {
        [self.per_second, self.day.map(|day| day.per_day())]
    }

    /// Makes sure that at least this many credits count as used today.
    pub(crate) fn raise_used_today(&mut self, credits: u64, unix_seconds: u64) {
        if let Some(day) = &mut self.day {
            day.raise_used(credits, unix_seconds);
        }
    }

    /// The credits that were used today, over all instances with the same store, as far as this one knows.
    pub(crate) fn used_today(&mut self, unix_seconds: u64) -> u64 {
        self.day.as_mut().map_or(0, |day| day.used(unix_seconds))
    }

    /// Takes the credits from both limits, or from neither.
    pub(crate) fn take(
        &mut self,
        now: MonoTime,
        unix_seconds: impl FnOnce() -> u64,
        credits: u64,
    ) -> Result<(), LimitExceeded> {
        let taken = self.take_from_both(now, unix_seconds, credits);
        if let Some(share) = &mut self.share {
            share.demand.add(credits, now);
            share.is_urgent |= taken.is_err();
        }
        taken
    }

    fn take_from_both(
        &mut self,
        now: MonoTime,
        unix_seconds: impl FnOnce() -> u64,
        credits: u64,
    ) -> Result<(), LimitExceeded> {
        if let Some(second) = &mut self.second {
            let taken = second.take_or_owe(credits, BATCH_CREDITS, now);
            taken.map_err(|refused| rate_exceeded(refused, self.per_second))?;
        }
        let Some(day) = &mut self.day else { return Ok(()) };
        day.take(credits, unix_seconds()).map_err(|refused| {
            if let Some(second) = &mut self.second {
                second.put(credits);
            }
            refused.into()
        })
    }

    pub(crate) fn give_back(&mut self, unix_seconds: u64, credits: u64) {
        if let Some(second) = &mut self.second {
            second.put(credits);
        }
        if let Some(day) = &mut self.day {
            day.give_back(credits, unix_seconds);
        }
    }
}

/// The part of the limit that belongs to this instance.
impl LimitState {
    /// From now on other instances use the same limit, under this name.
    pub(crate) fn share_as(&mut self, name: &str) {
        self.share.get_or_insert_with(|| Box::new(LimitShare::new(name)));
    }

    /// The name of the limit; empty if it is not shared.
    pub(crate) fn name(&self) -> &str {
        self.share.as_ref().map_or("", |share| &share.name)
    }

    /// Whether the limit is shared, and not reported yet.
    pub(crate) fn is_to_be_activated(&self) -> bool {
        self.second.is_some() && self.share.as_ref().is_some_and(|share| !share.is_active)
    }

    /// Whether the limit is reported.
    pub(crate) fn is_active(&self) -> bool {
        self.share.as_ref().is_some_and(|share| share.is_active)
    }

    /// The rate of a limit in use, and whether Redis has told it.
    #[cfg(test)]
    pub(crate) fn rate_in_use(&self) -> Option<(u64, bool)> {
        let share = self.share.as_ref().filter(|share| share.is_active)?;
        Some((self.second?.rate().per_second, share.has_joined))
    }

    /// Begins to use the limit, before Redis has said with which part.
    pub(crate) fn activate(&mut self, others: SharingState, now: MonoTime) {
        let first_rate = self.per_second.map_or(0, |limit| others.first_rate(limit));
        if let Some(second) = &mut self.second {
            second.set_rate(one_second(first_rate), now);
        }
        if let Some(share) = &mut self.share {
            share.begin(now);
        }
    }

    /// The report that is due now, if one is. A limit is left only while Redis can be reached, because the last part of this
    /// instance is all that it has without Redis.
    pub(crate) fn report(&mut self, others: SharingState, now: MonoTime) -> Option<RateReport> {
        match self.share.as_ref()?.next_report(now) {
            NextReport::Later => None,
            NextReport::Leave if others.is_connected => self.leave(now),
            NextReport::Leave | NextReport::Due => self.full_report(now),
        }
    }

    fn full_report(&mut self, now: MonoTime) -> Option<RateReport> {
        let share = self.share.as_mut()?;
        let (bucket, limit) = self.second.as_ref().zip(self.per_second)?;
        (share.is_urgent, share.reported_at) = (false, now);
        let rate = if share.has_joined { bucket.rate().per_second } else { 0 };
        Some(RateReport { limit, demand: share.demand.measure(now).min(limit), rate, is_leaving: false })
    }

    /// Gives the part of this instance to others.
    pub(crate) fn leave(&mut self, now: MonoTime) -> Option<RateReport> {
        let report = self.full_report(now);
        let share = self.share.as_mut()?;
        (share.is_active, share.has_joined) = (false, false);
        Some(RateReport { is_leaving: true, ..report? })
    }

    /// Uses the rate that Redis has answered.
    pub(crate) fn apply(&mut self, rate: u64, now: MonoTime) {
        let (Some(share), Some(bucket)) =
            (self.share.as_mut().filter(|share| share.is_active), &mut self.second)
        else {
            return;
        };
        let rate = rate.max(1);
        share.is_urgent |= rate != bucket.rate().per_second || !share.has_joined;
        bucket.set_rate(one_second(rate), now);
        share.has_joined = true;
    }

    /// Redis cannot be reached: the part stays as it is, and is at least a little.
    pub(crate) fn lose_redis(&mut self, others: SharingState, now: MonoTime) {
        let Some(share) = &mut self.share else { return };
        share.is_urgent = true;
        if let (Some(bucket), Some(limit)) = (&mut self.second, self.per_second) {
            let kept = if share.has_joined { bucket.rate().per_second } else { 0 };
            bucket.set_rate(one_second(others.least_rate(limit).max(kept)), now);
        }
    }
}

/// A rate with which the credits of one second are saved up.
fn one_second(credits: u64) -> BucketRate {
    BucketRate { per_second: credits, capacity: credits }
}

fn in_proportion(amount: u64, new: u64, old: u64) -> u64 {
    let scaled = u128::from(amount) * u128::from(new) / u128::from(old.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A refusal in terms of the whole limit: what belongs to other instances counts as in use.
fn rate_exceeded(refused: RateExceeded, per_second: Option<u64>) -> LimitExceeded {
    let RateExceeded { allowed, current, wait_ms } = refused;
    let limit = per_second.unwrap_or(allowed);
    let of_others = limit.saturating_sub(allowed);
    LimitExceeded::Second { allowed: limit, current: current.saturating_add(of_others), wait_ms }
}

#[cfg(test)]
mod tests {
    use resources::DAY_S;

    use super::*;

    const NOON: u64 = 20_000 * DAY_S + DAY_S / 2;
    const ALONE: SharingState = SharingState { is_connected: true, is_settled: true, instances: 1 };

    fn shared(per_second: u64) -> LimitState {
        let mut state = LimitState::default();
        state.set_limits(Some(per_second), None, MonoTime::default());
        state.share_as("account:a");
        state.activate(ALONE, MonoTime(1));
        state
    }

    #[test]
    fn a_refusal_is_told_in_terms_of_the_whole_limit() {
        let mut state = shared(600);
        state.apply(200, MonoTime(1));
        state.take(MonoTime(1), || NOON, 200).unwrap();
        let refused = state.take(MonoTime(1), || NOON, 100).unwrap_err();
        assert_eq!(refused, LimitExceeded::Second { allowed: 600, current: 700, wait_ms: 500 });
    }

    #[test]
    fn a_limit_that_was_removed_is_not_reported_and_begins_anew() {
        let mut state = shared(600);
        state.apply(200, MonoTime(1));
        state.set_limits(None, None, MonoTime(1));
        assert_eq!((state.is_active(), state.report(ALONE, MonoTime(1))), (false, None));
        state.set_limits(Some(600), None, MonoTime(1));
        assert!(state.is_to_be_activated());
    }

    #[test]
    fn a_change_of_the_limit_changes_the_part_of_this_instance_in_proportion() {
        let mut state = shared(600);
        state.apply(200, MonoTime(1));
        state.set_limits(Some(1_200), None, MonoTime(1));
        assert_eq!(state.rate_in_use(), Some((400, true)));
    }
}
