//! The state of one limit: what is left of the second and of the day, and which part of the limit belongs to this instance.

use resources::{
    BucketRate, DAY_S, DayLease, DayQuota, DayQuotaExceeded, MonoTime, RateExceeded, TokenBucket,
};

use crate::limit_share::{
    LimitShare, NextReport, SharingState, day_credits_before_answer, day_credits_without_redis,
};

/// Credits for a batch itself, on top of its calls: as much as one `eth_chainId`. They are taken first, so the most expensive
/// call is admitted although they are missing.
pub const BATCH_CREDITS: u64 = 5;

/// How long callers wait if the day is not used up, but what is left of it is leased to other instances.
const LEASE_WAIT_MS: u64 = 1_000;

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

/// What an instance reports about one limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitReport {
    pub(crate) second: Option<RateReport>,
    pub(crate) day: Option<DayReport>,
    /// Whether the instance stops to use the limit.
    pub(crate) is_leaving: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateReport {
    pub(crate) limit: u64,
    pub(crate) demand: u64,
    /// The rate in use; 0 before Redis has assigned one.
    pub(crate) rate: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DayReport {
    /// Days since 1970.
    pub(crate) day: u64,
    pub(crate) limit: u64,
    pub(crate) used: u64,
    /// Credits that are leased and not used.
    pub(crate) unused: u64,
    /// Credits that all instances have used, as far as this one knows.
    pub(crate) used_by_all: u64,
}

/// What Redis answers to a [`LimitReport`]. A part is absent if it was not reported, or if a later report was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitReply {
    pub(crate) second: Option<RateReply>,
    pub(crate) day: Option<DayReply>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateReply {
    pub(crate) rate: u64,
    /// Whether others used the limit already, so that the first burst of this instance was too much.
    pub(crate) owes_first_burst: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DayReply {
    /// Credits that may be used besides those that were reported as used.
    pub(crate) lease: u64,
    /// Credits that are left over all instances.
    pub(crate) left: u64,
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
            let scaled = |lease: DayLease| DayLease {
                allowed: in_proportion(lease.allowed, limit, quota.per_day()),
                allowed_before_lease: in_proportion(lease.allowed_before_lease, limit, quota.per_day()),
                ..lease
            };
            quota.set_lease(quota.lease().map(scaled));
            quota.set_per_day(limit);
            quota
        });
        if let Some(share) = &mut self.share {
            share.is_urgent = true;
        }
    }

    /// Makes sure that at least this many credits count as used, over all instances that share the limit.
    pub(crate) fn raise_used_today(&mut self, credits: u64, unix_seconds: u64) {
        match (&mut self.share, &mut self.day) {
            (Some(share), _) => {
                share.raise_used_by_all(unix_seconds / DAY_S, credits);
                share.is_urgent = true;
            }
            (None, Some(day)) => day.raise_used(credits, unix_seconds),
            (None, None) => {}
        }
    }

    /// The credits that were used today, over all instances that share the limit, as far as this one knows.
    pub(crate) fn used_today(&mut self, unix_seconds: u64) -> u64 {
        let used = self.day.as_mut().map_or(0, |day| day.used(unix_seconds));
        let used_by_all = self.share.as_ref().map_or(0, |share| share.known_used_on(unix_seconds / DAY_S));
        used.max(used_by_all)
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
        let unix_seconds = unix_seconds();
        day.take(credits, unix_seconds).map_err(|refused| {
            if let Some(second) = &mut self.second {
                second.put(credits);
            }
            match &self.share {
                // Other instances have leased what is left of the day, and return a part of it when they report.
                Some(share) if share.can_get(credits, unix_seconds / DAY_S, day.per_day()) => {
                    let allowed = self.per_second.unwrap_or(credits);
                    LimitExceeded::Second { allowed, current: allowed + credits, wait_ms: LEASE_WAIT_MS }
                }
                _ => refused.into(),
            }
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

/// What an instance does with its part of the limit.
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
        self.share.as_ref().is_some_and(|share| !share.is_active) && self.is_limited()
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
        let Some(share) = &mut self.share else { return };
        share.begin(now);
        if let Some(day) = &mut self.day {
            let first = others.first_day_credits(day.per_day());
            let lease = match day.lease() {
                None => DayLease { day: 0, allowed: first, allowed_before_lease: first },
                Some(lease) if others.is_connected => lease,
                // What was kept when the limit was left is enough only until Redis answers.
                Some(DayLease { day: leased, allowed, .. }) => {
                    let allowed = allowed.saturating_add(first.min(share.left_on(leased, day.per_day())));
                    DayLease { day: leased, allowed, allowed_before_lease: first }
                }
            };
            day.set_lease(Some(lease));
        }
    }

    /// What is reported now; `None` if nothing has to be. A limit is left only while Redis can be reached, because the last
    /// part of this instance is all that it has without Redis.
    pub(crate) fn report(
        &mut self,
        others: SharingState,
        now: MonoTime,
        unix_seconds: u64,
    ) -> Option<LimitReport> {
        let share = self.share.as_mut()?;
        share.instances = others.instances;
        match share.next_report(now) {
            NextReport::Later => None,
            NextReport::Leave if others.is_connected => self.leave(now, unix_seconds),
            NextReport::Leave | NextReport::Due => self.full_report(now, unix_seconds),
        }
    }

    fn full_report(&mut self, now: MonoTime, unix_seconds: u64) -> Option<LimitReport> {
        let share = self.share.as_mut()?;
        (share.is_urgent, share.reported_at) = (false, now);
        let demand = share.demand.measure(now).min(self.per_second.unwrap_or(u64::MAX));
        let has_joined = share.has_joined;
        let second = self.second.zip(self.per_second).map(|(bucket, limit)| {
            let rate = if has_joined { bucket.rate().per_second } else { 0 };
            RateReport { limit, demand, rate }
        });
        let day = self.day_report(unix_seconds);
        Some(LimitReport { second, day, is_leaving: false })
    }

    fn day_report(&mut self, unix_seconds: u64) -> Option<DayReport> {
        let quota = self.day.as_mut()?;
        let (day, used) = (unix_seconds / DAY_S, quota.used(unix_seconds));
        let lease = quota.lease().filter(|lease| lease.day == day);
        let unused = lease.map_or(0, |lease| lease.allowed.min(quota.per_day()).saturating_sub(used));
        let used_by_all = self.share.as_ref().map_or(0, |share| share.known_used_on(day));
        Some(DayReport { day, limit: quota.per_day(), used, unused, used_by_all })
    }

    /// Gives the part of this instance to others, but for what the next call may use before it is reported.
    pub(crate) fn leave(&mut self, now: MonoTime, unix_seconds: u64) -> Option<LimitReport> {
        let report = self.full_report(now, unix_seconds)?;
        let share = self.share.as_mut()?;
        (share.is_active, share.has_joined) = (false, false);
        if let Some(quota) = &mut self.day {
            let first = day_credits_before_answer(quota.per_day());
            let day = unix_seconds / DAY_S;
            let left = share.left_on(day, quota.per_day());
            let allowed = quota.used(unix_seconds).saturating_add(first.min(left));
            quota.set_lease(Some(DayLease { day, allowed, allowed_before_lease: first }));
        }
        Some(LimitReport { is_leaving: true, ..report })
    }

    /// Applies what Redis has answered to `report`.
    pub(crate) fn apply(&mut self, report: &LimitReport, reply: &LimitReply, now: MonoTime) {
        let Some(share) = self.share.as_mut().filter(|share| share.is_active && !report.is_leaving) else {
            return;
        };
        if let (Some(bucket), Some(reply)) = (&mut self.second, reply.second) {
            let rate = reply.rate.max(1);
            share.is_urgent |= rate != bucket.rate().per_second || !share.has_joined;
            if reply.owes_first_burst && !share.has_joined {
                // The burst belonged to others, so what was taken of it is owed, and the rest is not there.
                let taken = bucket.in_use(now);
                *bucket = TokenBucket::empty(one_second(rate), now);
                bucket.owe(taken);
            } else {
                bucket.set_rate(one_second(rate), now);
            }
        }
        if let (Some(quota), Some(reply), Some(report)) = (&mut self.day, reply.day, report.day) {
            let allowed = report.used.saturating_add(reply.lease);
            let allowed_before_lease = day_credits_before_answer(quota.per_day());
            quota.set_lease(Some(DayLease { day: report.day, allowed, allowed_before_lease }));
            share.raise_used_by_all(report.day, report.limit.saturating_sub(reply.left));
            // Others get what is returned here after the next report.
            share.is_urgent |= reply.lease < report.unused;
        }
        share.has_joined = true;
    }

    /// Redis cannot be reached: the part stays as it is, and is at least a little.
    pub(crate) fn lose_redis(&mut self, others: SharingState, now: MonoTime) {
        let Some(share) = &mut self.share else { return };
        share.is_urgent = true;
        if let (Some(bucket), Some(limit)) = (&mut self.second, self.per_second) {
            let kept = if share.has_joined { bucket.rate().per_second } else { 0 };
            bucket.set_rate(one_second(others.fallback_rate(limit).max(kept)), now);
        }
        if let Some(quota) = &mut self.day {
            let allowed_before_lease = day_credits_without_redis(quota.per_day());
            quota.set_lease(quota.lease().map(|lease| DayLease { allowed_before_lease, ..lease }));
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
    use super::*;

    const NOON: u64 = 20_000 * DAY_S + DAY_S / 2;
    const ALONE: SharingState = SharingState { is_connected: true, is_settled: true, instances: 1 };

    fn shared(per_second: Option<u64>, per_day: Option<u64>) -> LimitState {
        let mut state = LimitState::default();
        state.set_limits(per_second, per_day, MonoTime::default());
        state.share_as("account:a");
        state.activate(ALONE, MonoTime(1));
        state
    }

    /// Each instance would otherwise report the credits of all instances as its own, and a day would end early.
    #[test]
    fn credits_that_all_instances_have_used_are_not_reported_as_those_of_one() {
        let mut state = shared(None, Some(100_000));
        state.raise_used_today(70_000, NOON);
        state.take(MonoTime(1), || NOON, 80).unwrap();
        let day = state.report(ALONE, MonoTime(1), NOON).unwrap().day.unwrap();
        assert_eq!((day.used, day.used_by_all, day.unused), (80, 70_000, 0));
    }

    /// Three gateways granted 410,000 of 400,000 credits: each used a fortieth of the day before it heard that nothing was left.
    #[test]
    fn little_of_a_day_is_used_before_redis_answers_and_more_if_it_is_gone() {
        let most = |state: &mut LimitState, unix_seconds| {
            let credits = (0..=100_000)
                .rev()
                .find(|&credits| state.take(MonoTime(1), || unix_seconds, credits).is_ok());
            credits.unwrap()
        };
        let mut state = shared(None, Some(1_000_000));
        let report = state.report(ALONE, MonoTime(1), NOON).unwrap();
        assert_eq!(most(&mut state, NOON), 2_500);
        let day = Some(DayReply { lease: 40_000, left: 900_000 });
        state.apply(&report, &LimitReply { second: None, day }, MonoTime(1));
        assert_eq!(most(&mut state, NOON), 40_000 - 2_500);
        let gone = SharingState { is_connected: false, ..ALONE };
        state.lose_redis(gone, MonoTime(1));
        assert_eq!(most(&mut state, NOON + DAY_S), 25_000);
        // It was left while Redis was there, and is used again after Redis was lost.
        let mut state = shared(None, Some(1_000_000));
        state.leave(MonoTime(1), NOON).unwrap();
        state.activate(gone, MonoTime(1));
        assert_eq!(most(&mut state, NOON), 2_500 + 25_000);
    }

    #[test]
    fn a_refusal_is_told_in_terms_of_the_whole_limit() {
        let mut state = shared(Some(600), None);
        let report = state.report(ALONE, MonoTime(1), NOON).unwrap();
        let second = Some(RateReply { rate: 200, owes_first_burst: false });
        state.apply(&report, &LimitReply { second, day: None }, MonoTime(1));
        state.take(MonoTime(1), || NOON, 200).unwrap();
        let refused = state.take(MonoTime(1), || NOON, 100).unwrap_err();
        assert_eq!(refused, LimitExceeded::Second { allowed: 600, current: 700, wait_ms: 500 });
    }

    #[test]
    fn a_call_that_waits_for_the_lease_of_others_is_not_refused_for_the_day() {
        let mut state = shared(None, Some(10_000));
        let report = state.report(ALONE, MonoTime(1), NOON).unwrap();
        let reply = |left| LimitReply { second: None, day: Some(DayReply { lease: 100, left }) };
        state.apply(&report, &reply(4_000), MonoTime(1));
        let refused = state.take(MonoTime(1), || NOON, 200).unwrap_err();
        assert_eq!(refused, LimitExceeded::Second { allowed: 200, current: 400, wait_ms: 1_000 });
        // If Redis loses its data, it learns from the next report what was used.
        assert_eq!(state.report(ALONE, MonoTime(1), NOON).unwrap().day.unwrap().used_by_all, 6_000);
        state.apply(&report, &reply(150), MonoTime(1));
        let refused = state.take(MonoTime(1), || NOON, 200).unwrap_err();
        assert_eq!(refused, LimitExceeded::Day { wait_s: DAY_S / 2 });
    }

    #[test]
    fn what_was_taken_of_a_burst_that_belonged_to_others_is_owed_and_no_more() {
        let mut state = shared(Some(1_200), None);
        state.take(MonoTime(1), || NOON, 80).unwrap();
        let report = state.report(ALONE, MonoTime(1), NOON).unwrap();
        let second = Some(RateReply { rate: 160, owes_first_burst: true });
        state.apply(&report, &LimitReply { second, day: None }, MonoTime(1));
        let LimitExceeded::Second { wait_ms, .. } = state.take(MonoTime(1), || NOON, 80).unwrap_err() else {
            panic!("there is no limit per day");
        };
        assert_eq!(wait_ms, 1_000);
    }

    #[test]
    fn a_change_of_the_limit_changes_the_part_of_this_instance_in_proportion() {
        let mut state = shared(Some(600), None);
        let report = state.report(ALONE, MonoTime(1), NOON).unwrap();
        let second = Some(RateReply { rate: 200, owes_first_burst: false });
        state.apply(&report, &LimitReply { second, day: None }, MonoTime(1));
        state.set_limits(Some(1_200), None, MonoTime(1));
        assert_eq!(state.rate_in_use(), Some((400, true)));
    }
}
