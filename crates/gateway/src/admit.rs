//! Step 4: `&Caller` and a price → `Permit`.
//!
//! The price of a call follows from its method's row, or from what is wrong with it. An invalid call is charged before its
//! error is reported, so that a flood of invalid calls is not free.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use answers::CallAccount;
use callers::{Account, LimitExceeded};
use resources::{Clock, MonoTime, is_within_share};

use crate::authenticate::Caller;
use crate::policy::{REFUSED_BYTES, REFUSED_CREDITS};

/// Proof that a call was admitted. While it lives, the call counts as in flight.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    credits: u64,
    account: &'a Account,
    _place: CapacitySlot<'a>,
}

impl<'a> Permit<'a> {
    pub(crate) fn credits(&self) -> u64 {
        self.credits
    }

    /// The account that pays for the call, and in whose share of threads and memory it is answered.
    pub(crate) fn account(&self) -> CallAccount<'a> {
        let Account { id, inline_tries_rest, .. } = self.account;
        CallAccount { id: *id, inline_tries_rest }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    LimitExceeded(LimitExceeded),
    OverCapacity,
}

/// Admits one call that costs `credits`.
pub(crate) fn admit<'a>(
    caller: &'a Caller,
    credits: u64,
    capacity: &'a Capacity,
    clock: &Clock,
    now: MonoTime,
) -> Result<Permit<'a>, NotAdmitted> {
    let place = capacity.enter(caller.account()).ok_or(NotAdmitted::OverCapacity)?;
    // A repeated call costs nothing, and is admitted although its account may owe credits by now.
    if credits > 0 {
        charge(caller, credits, clock, now)?;
    }
    Ok(Permit { credits, account: caller.account(), _place: place })
}

/// Takes the credits without admitting anything: from the account and from what the key itself may use, or from neither.
pub(crate) fn charge(caller: &Caller, credits: u64, clock: &Clock, now: MonoTime) -> Result<(), NotAdmitted> {
    let unix_seconds = || clock.unix_seconds();
    let account = &caller.account().credit_limits;
    account.take(now, unix_seconds, credits).map_err(NotAdmitted::LimitExceeded)?;
    if let Some(settings) = caller.settings() {
        let taken = settings.credit_limits().take(now, unix_seconds, credits);
        taken
            .inspect_err(|_| account.give_back(unix_seconds(), credits))
            .map_err(NotAdmitted::LimitExceeded)?;
    }
    Ok(())
}

/// Credits for a body or call of so many bytes that is malformed or refused.
pub(crate) fn refused_credits(bytes: usize) -> u64 {
    REFUSED_CREDITS * bytes.div_ceil(REFUSED_BYTES).max(1) as u64
}

/// Credits for decompressing a body of `received` bytes to `inflated` bytes, beside those of its calls.
pub(crate) fn inflate_credits(received: usize, inflated: usize) -> u64 {
    refused_credits(received) + REFUSED_CREDITS * (inflated / REFUSED_BYTES) as u64
}

/// Returns what [`charge`] took for a call that turned out to cost nothing.
pub(crate) fn give_back(caller: &Caller, credits: u64, unix_seconds: u64) {
    caller.account().credit_limits.give_back(unix_seconds, credits);
    if let Some(settings) = caller.settings() {
        settings.credit_limits().give_back(unix_seconds, credits);
    }
}

/// How many calls may be in flight at once, over all callers.
#[derive(Debug)]
pub(crate) struct Capacity {
    calls_max: AtomicUsize,
    taken: AtomicUsize,
}

impl Capacity {
    pub(crate) fn new(calls_max: usize) -> Self {
        Self { calls_max: AtomicUsize::new(calls_max), taken: AtomicUsize::new(0) }
    }

    /// Calls that have a place keep it.
    pub(crate) fn set_calls_max(&self, calls_max: usize) {
        self.calls_max.store(calls_max, Relaxed);
    }

    pub(crate) fn calls_max(&self) -> usize {
        self.calls_max.load(Relaxed)
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }

    /// Takes a place, unless that exceeds the account's share.
    pub(crate) fn enter<'a>(&'a self, account: &'a Account) -> Option<CapacitySlot<'a>> {
        let place = CapacitySlot { all: &self.taken, own: &account.calls_in_flight };
        let used = place.all.fetch_add(1, Relaxed);
        let own = place.own.fetch_add(1, Relaxed);
        is_within_share(own, 1, used, self.calls_max.load(Relaxed)).then_some(place)
    }
}

/// One taken place; given back when dropped.
#[derive(Debug)]
pub(crate) struct CapacitySlot<'a> {
    all: &'a AtomicUsize,
    own: &'a AtomicUsize,
}

impl Drop for CapacitySlot<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Relaxed);
        self.own.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callers::Plans;

    #[test]
    fn a_place_is_given_back_however_its_call_ends() {
        let (capacity, account) = (Capacity::new(4), account());
        let (first, second) = (capacity.enter(&account), capacity.enter(&account));
        assert!(first.is_some() && second.is_some());
        assert!(capacity.enter(&account).is_none(), "half of the places are left to others");
        drop(first);
        assert!(capacity.enter(&account).is_some());
        drop(second);
        assert_eq!((capacity.taken(), account.calls_in_flight.load(Relaxed)), (0, 0));
    }

    #[test]
    fn one_account_does_not_take_all_places() {
        let (capacity, greedy, other) = (Capacity::new(100), account(), account());
        let taken: Vec<_> = std::iter::from_fn(|| capacity.enter(&greedy)).collect();
        assert_eq!(taken.len(), 50);
        assert!(capacity.enter(&other).is_some());
    }

    #[test]
    fn refused_calls_are_paid_for_by_their_size() {
        for (bytes, credits) in [(0, 5), (1, 5), (64 << 10, 5), ((64 << 10) + 1, 10), (5 << 20, 400)] {
            assert_eq!(refused_credits(bytes), credits, "{bytes} bytes");
        }
    }

    #[test]
    fn a_compressed_body_is_paid_for_by_its_sizes() {
        for (received, inflated, credits) in [
            (47, 59, 5),
            (500, (64 << 10) - 1, 5),
            (500, 64 << 10, 10),
            (500, 5 << 20, 405),
            (5 << 20, 0, 400),
        ] {
            assert_eq!(inflate_credits(received, inflated), credits, "{received} and {inflated} bytes");
        }
    }

    fn account() -> Account {
        Account::new("a".into(), Plans::default().named("core").unwrap().clone())
    }
}
