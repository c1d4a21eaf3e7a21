//! Partners: nodes of foreign providers, which cost money. They are asked within their quotas, and only when no own node can answer.

use std::sync::Arc;

use parking_lot::Mutex;
use resources::{Clock, DayQuota, MonoTime, TokenBucket};
use tokio::time::Instant;

/// The role of a node in its pool.
#[derive(Debug)]
pub enum NodeRole {
    /// A node of the operator. Its watcher follows it, and it has a vote.
    Own,
    /// A node of another provider. It never has a vote.
    Partner(Box<PartnerTerms>),
}

/// How many calls may be sent to a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartnerQuota {
    pub calls_per_second: u64,
    pub calls_per_day: u64,
}

/// The calls of a day to a partner, which all gateways share.
pub trait DayCalls: std::fmt::Debug + Send + Sync {
    /// Takes all of these calls, or none.
    fn take(&self, calls: u64, unix_seconds: u64) -> bool;

    /// The calls that all gateways have used on the day of this time, as far as this one knows.
    fn used(&self, unix_seconds: u64) -> u64;
}

/// The methods of a partner, and how often it may be asked.
#[derive(Debug)]
pub struct PartnerTerms {
    /// The methods of callers for which it may be asked. `None` means all.
    methods: Option<Vec<&'static str>>,
    quota: PartnerQuota,
    /// Says which day it is.
    clock: Clock,
    created_at: Instant,
    state: Mutex<QuotaState>,
}

/// The rest of the quota.
#[derive(Debug)]
struct QuotaState {
    second: TokenBucket,
    /// The calls that this gateway has used.
    day: DayQuota,
    /// `None` before it is known what others use.
    shared_day: Option<Arc<dyn DayCalls>>,
}

impl PartnerTerms {
    pub fn new(methods: Option<Vec<&'static str>>, quota: PartnerQuota) -> Self {
        let second = TokenBucket::per_second(quota.calls_per_second);
        let state = QuotaState { second, day: DayQuota::new(quota.calls_per_day), shared_day: None };
        Self { methods, quota, clock: Clock::default(), created_at: Instant::now(), state: Mutex::new(state) }
    }

    /// Whether it may be asked for this method of a caller.
    pub(crate) fn has(&self, method: &str) -> bool {
        self.methods.as_ref().is_none_or(|methods| methods.contains(&method))
    }

    pub fn quota(&self) -> PartnerQuota {
        self.quota
    }

    /// From now on all gateways share the calls of a day. What was used before counts.
    pub fn share_day(&self, shared: Arc<dyn DayCalls>) {
        let now = self.clock.unix_seconds();
        let mut quota = self.state.lock();
        let used = quota.day.used(now);
        // If it is refused, others have used up the rest.
        let _is_left = used == 0 || shared.take(used, now);
        quota.shared_day = Some(shared);
    }

    /// The calls that were sent today, UTC; those of all gateways if they are known.
    pub fn used_today(&self) -> u64 {
        let now = self.clock.unix_seconds();
        let quota = &mut *self.state.lock();
        quota.shared_day.as_ref().map_or_else(|| quota.day.used(now), |shared| shared.used(now))
    }

    /// Takes calls out of the quota, if all of them are left.
    pub(crate) fn take(&self, calls: u64) -> bool {
        self.take_on(Instant::now(), self.clock.unix_seconds(), calls)
    }

    fn take_on(&self, now: Instant, unix_seconds: u64, calls: u64) -> bool {
        let now = MonoTime::default().after(now.saturating_duration_since(self.created_at));
        let QuotaState { second, day, shared_day } = &mut *self.state.lock();
        if second.take(calls, now).is_err() {
            return false;
        }
        let is_within_day = match shared_day {
            Some(shared) => shared.take(calls, unix_seconds),
            None => day.take(calls, unix_seconds).is_ok(),
        };
        if !is_within_day {
            second.put(calls);
        }
        is_within_day
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;

    use resources::DAY_S;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const DAY_7: u64 = 7 * DAY_S;

    fn partner(calls_per_second: u64, calls_per_day: u64) -> PartnerTerms {
        let quota = PartnerQuota { calls_per_second, calls_per_day };
        PartnerTerms::new(Some(vec!["eth_getStorageAt"]), quota)
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_limited_per_second_and_per_day() {
        let partner = partner(2, 5);
        let mut taken = Vec::new();
        for second in 0..4 {
            let now = Instant::now() + SECOND * second;
            taken.push((0..3).filter(|_| partner.take_on(now, DAY_7, 1)).count());
        }
        assert_eq!(taken, [2, 2, 1, 0]);
        assert!(partner.take_on(Instant::now() + SECOND * 9, DAY_7 + DAY_S, 1), "another day");
    }

    /// The calls of a day that other gateways have left.
    #[derive(Debug)]
    struct LeftByOthers(AtomicU64);

    impl DayCalls for LeftByOthers {
        fn take(&self, calls: u64, _unix_seconds: u64) -> bool {
            self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(calls)).is_ok()
        }

        fn used(&self, _unix_seconds: u64) -> u64 {
            5 - self.0.load(Relaxed)
        }
    }

    /// Each gateway granted the calls of the day for itself.
    #[tokio::test(start_paused = true)]
    async fn gateways_share_the_calls_of_a_day() {
        let (one, other) = (partner(100, 5), partner(100, 5));
        assert!(one.take(1), "before the quota is shared");
        let shared = Arc::new(LeftByOthers(AtomicU64::new(5)));
        for partner in [&one, &other] {
            partner.share_day(Arc::<LeftByOthers>::clone(&shared));
        }
        assert_eq!([&one, &other].map(|partner| partner.take(2)), [true, true]);
        assert_eq!([&one, &other].map(|partner| partner.take(1)), [false, false]);
        assert_eq!((one.used_today(), other.used_today()), (5, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_belong_together_are_taken_together_or_not_at_all() {
        let (partner, now) = (partner(3, 5), Instant::now());
        assert!(!partner.take_on(now, DAY_7, 4));
        assert!(partner.take_on(now, DAY_7, 2));
        assert!(!partner.take_on(now, DAY_7, 2));
        assert!(partner.take_on(now, DAY_7, 1));
        assert!(!partner.take_on(now + SECOND, DAY_7, 3), "two are left of the day");
        assert!(partner.take_on(now + SECOND, DAY_7, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_partner_is_asked_only_its_methods() {
        assert!(partner(1, 1).has("eth_getStorageAt"));
        assert!(!partner(1, 1).has("eth_call"));
    }
}
