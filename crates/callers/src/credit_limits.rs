//! Credit limits of an account or a key: a token bucket per second, and a quota per day.
//!
//! The request path takes credits from memory only. If the limit per second is shared with other instances, a thread of
//! [`SharedLimits`] reports its use and changes the part that belongs to this instance. What others have used of the day comes from
//! the store.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use resources::MonoTime;

use crate::limit_state::{LimitExceeded, LimitState};
use crate::shared_limits::SharedLimits;

/// Credits per second and per day; each limit is optional, and can be changed while it is in use.
#[derive(Debug, Default)]
pub struct CreditLimits {
    /// Not set before there is a limit, so that unlimited accounts take no lock.
    state: OnceLock<Arc<Mutex<LimitState>>>,
    /// Not set if this instance counts for itself.
    sharing: OnceLock<SharedName>,
}

/// The name under which the limit per second is shared with other instances.
#[derive(Debug)]
struct SharedName {
    shared: Arc<SharedLimits>,
    name: Box<str>,
}

impl CreditLimits {
    pub fn new(credits_per_second: Option<u64>, credits_per_day: Option<u64>) -> Self {
        let credit_limits = Self::default();
        credit_limits.set_limits(credits_per_second, credits_per_day, MonoTime::default());
        credit_limits
    }

    /// Changes the limits. Credits used in the current second and day stay used; credits used while there is no limit are not
    /// counted.
    pub fn set_limits(&self, per_second: Option<u64>, per_day: Option<u64>, now: MonoTime) {
        if per_second.is_none() && per_day.is_none() && self.state.get().is_none() {
            return;
        }
        let mut state = self.state.get_or_init(Arc::default).lock();
        state.set_limits(per_second.map(|credits| credits.max(1)), per_day, now);
        if let Some(sharing) = self.sharing.get() {
            state.share_as(&sharing.name);
        }
    }

    /// From now on the limit per second holds over all instances that use the same name. The first name stays.
    pub fn share_as(&self, name: &str, shared: &Arc<SharedLimits>) {
        self.sharing.get_or_init(|| SharedName { shared: Arc::clone(shared), name: name.into() });
        if let Some(state) = self.state.get() {
            state.lock().share_as(name);
        }
    }

    /// The limits per second and per day.
    pub(crate) fn limits(&self) -> [Option<u64>; 2] {
        self.state.get().map_or([None; 2], |state| state.lock().limits())
    }

    /// Makes sure that at least this many credits count as used today, such as those that were used before a restart.
    pub fn raise_used_today(&self, credits: u64, unix_seconds: u64) {
        if let Some(state) = self.state.get() {
            state.lock().raise_used_today(credits, unix_seconds);
        }
    }

    /// The credits that were used today, over all instances with the same store, as far as this one knows.
    pub(crate) fn used_today(&self, unix_seconds: u64) -> u64 {
        self.state.get().map_or(0, |state| state.lock().used_today(unix_seconds))
    }

    pub fn is_limited(&self) -> bool {
        self.state.get().is_some_and(|state| state.lock().is_limited())
    }

    /// Takes the credits from both limits, or from neither. `unix_seconds` is called only if there is a limit per day.
    pub fn take(
        &self,
        now: MonoTime,
        unix_seconds: impl FnOnce() -> u64,
        credits: u64,
    ) -> Result<(), LimitExceeded> {
        let Some(shared_state) = self.state.get() else { return Ok(()) };
        let mut state = shared_state.lock();
        if state.is_to_be_activated()
            && let Some(sharing) = self.sharing.get()
        {
            sharing.shared.activate(shared_state, &mut state, now);
        }
        state.take(now, unix_seconds, credits)
    }

    /// Returns the credits of a call that is not charged after all.
    pub fn give_back(&self, unix_seconds: u64, credits: u64) {
        if let Some(state) = self.state.get() {
            state.lock().give_back(unix_seconds, credits);
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
