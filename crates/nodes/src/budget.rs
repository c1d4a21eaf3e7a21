//! How many extra calls there may be.
//!
//! Trying again and asking twice are what makes a pool that is in trouble fall over. So both are a share of the calls
//! that are really made: each call pays a part of an extra call in, and an extra call takes a whole one out.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

/// What one extra call costs.
const WHOLE: u64 = 1_000;

/// Extra calls that may be made after others have failed. Those that are made while others are under way come out of
/// both budgets, so that this one bounds them all.
pub(crate) const RETRY: Share = Share { per_call: 200, calls_per_second: 10, kept_max: 100, at_first: 100 };
/// Extra calls that may be made while others are under way: one in twenty, and none on credit.
pub(crate) const HEDGE: Share = Share { per_call: 50, calls_per_second: 0, kept_max: 100, at_first: 0 };

/// Of these, what only calls on silent nodes may use. Such a node is doubted after a handful of calls.
const KEPT_FOR_THE_SILENT: u64 = 20;

/// How a budget fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Thousandths of an extra call for each call.
    pub(crate) per_call: u64,
    /// Extra calls for each second, for those who call too seldom to gather a share.
    pub(crate) calls_per_second: u64,
    /// Extra calls that are kept for bad times. More would be a storm when all nodes fail after a good day.
    pub(crate) kept_max: u64,
    /// Extra calls that are there at the start.
    pub(crate) at_first: u64,
}

/// What is left of a share.
#[derive(Debug)]
pub(crate) struct Budget {
    share: Share,
    origin: Instant,
    /// Thousandths of extra calls (low half), and the millisecond up to which seconds were paid (high half), which
    /// wraps around after 49 days: an idle gateway may then find a little less than it has earned.
    balance: AtomicU64,
}

impl Budget {
    pub(crate) fn new(share: Share, now: Instant) -> Self {
        let balance = AtomicU64::new(pack(0, share.at_first.min(share.kept_max) * WHOLE));
        Self { share, origin: now, balance }
    }

    /// Pays in the part of one call.
    pub(crate) fn deposit(&self, now: Instant) {
        let now_ms = self.milliseconds(now);
        let _always = self.balance.fetch_update(Relaxed, Relaxed, |word| {
            Some(pack(now_ms, self.capped(self.grown(word, now_ms) + self.share.per_call)))
        });
    }

    /// Takes an extra call out, if there is one and `kept` others remain.
    pub(crate) fn withdraw(&self, kept: u64, now: Instant) -> bool {
        let now_ms = self.milliseconds(now);
        let taken = self.balance.fetch_update(Relaxed, Relaxed, |word| {
            let balance = self.grown(word, now_ms);
            (balance >= (kept + 1) * WHOLE).then(|| pack(now_ms, balance - WHOLE))
        });
        taken.is_ok()
    }

    /// Gives back an extra call that was not made after all.
    pub(crate) fn give_back(&self) {
        let _always = self.balance.fetch_update(Relaxed, Relaxed, |word| {
            Some(pack((word >> 32) as u32, self.capped((word & u64::from(u32::MAX)) + WHOLE)))
        });
    }

    /// The balance with what the time since has earned.
    fn grown(&self, word: u64, now_ms: u32) -> u64 {
        let elapsed_ms = now_ms.wrapping_sub((word >> 32) as u32);
        // Calls are made by several threads, and one may be a moment late: that is no time at all.
        let elapsed_ms = if elapsed_ms > u32::MAX / 2 { 0 } else { u64::from(elapsed_ms) };
        self.capped((word & u64::from(u32::MAX)) + elapsed_ms * self.share.calls_per_second)
    }

    fn capped(&self, balance: u64) -> u64 {
        balance.min(self.share.kept_max * WHOLE)
    }

    #[expect(clippy::cast_possible_truncation, reason = "wraps around by intention")]
    fn milliseconds(&self, now: Instant) -> u32 {
        now.saturating_duration_since(self.origin).as_millis() as u32
    }
}

fn pack(ms: u32, balance: u64) -> u64 {
    u64::from(ms) << 32 | balance.min(u32::MAX.into())
}

/// Both budgets of one pool.
#[derive(Debug)]
pub struct Budgets {
    retry: Budget,
    hedge: Budget,
}

impl Budgets {
    pub fn new(now: Instant) -> Self {
        Self { retry: Budget::new(RETRY, now), hedge: Budget::new(HEDGE, now) }
    }

    /// A call begins, and pays its part.
    pub fn deposit(&self, now: Instant) {
        self.retry.deposit(now);
        self.hedge.deposit(now);
    }

    pub fn may_retry(&self, now: Instant) -> bool {
        self.retry.withdraw(0, now)
    }

    /// Another attempt beside one that is overdue. Half of the budget is kept for calls that nobody is at.
    pub fn may_replace(&self, now: Instant) -> bool {
        self.retry.withdraw(RETRY.kept_max / 2, now)
    }

    /// A part of the budget is kept for calls on nodes that have fallen silent. Else the slow twentieth of the usual
    /// answers would use it up, and nothing would be left when a node hangs.
    pub fn may_hedge(&self, silent: bool, now: Instant) -> bool {
        let kept = if silent { 0 } else { KEPT_FOR_THE_SILENT };
        if !self.hedge.withdraw(kept, now) {
            return false;
        }
        let granted = self.retry.withdraw(0, now);
        if !granted {
            self.hedge.give_back();
        }
        granted
    }

    /// Gives back a retry that was answered: only those in vain are a storm. Calls that lost their node all at once would
    /// else wait for a budget that only further calls could fill.
    pub fn give_retry_back(&self) {
        self.retry.give_back();
    }

    /// Gives back a hedge that was granted and not needed.
    pub fn give_hedge_back(&self) {
        self.hedge.give_back();
        self.retry.give_back();
    }
}

/// How long one who was refused waits before it asks again.
pub(crate) const REFUSED_PAUSE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn a_dead_pool_is_asked_for_no_more_than_a_quarter_above_what_was_offered() {
        let budget = Budget::new(RETRY, Instant::now());
        let (mut calls, mut retries) = (0, 0);
        for _ in 0..10_000 {
            calls += 2;
            (0..2).for_each(|_| budget.deposit(Instant::now()));
            while budget.withdraw(0, Instant::now()) {
                retries += 1;
            }
            advance(MS).await;
        }
        assert!(retries * 4 <= calls, "{retries} retries for {calls} calls");
        assert!(retries * 5 >= calls, "{retries} retries for {calls} calls");
    }

    #[tokio::test(start_paused = true)]
    async fn who_calls_seldom_may_try_again_too() {
        let budget = Budget::new(RETRY, Instant::now());
        while budget.withdraw(0, Instant::now()) {}
        advance(99 * MS).await;
        assert!(!budget.withdraw(0, Instant::now()));
        advance(MS).await;
        assert!(budget.withdraw(0, Instant::now()));
        assert!(!budget.withdraw(0, Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_good_day_is_not_saved_up_for_a_storm() {
        let budget = Budget::new(RETRY, Instant::now());
        (0..1_000_000).for_each(|_| budget.deposit(Instant::now()));
        advance(Duration::from_secs(100_000)).await;
        let granted = (0..1_000).filter(|_| budget.withdraw(0, Instant::now())).count();
        assert_eq!(granted, 100);
    }

    #[tokio::test(start_paused = true)]
    async fn one_in_twenty_is_asked_twice_and_none_on_credit() {
        let budgets = Budgets::new(Instant::now());
        assert!(!budgets.may_hedge(true, Instant::now()));
        let mut hedges = 0;
        for _ in 0..1_000 {
            budgets.deposit(Instant::now());
            hedges += u32::from(budgets.may_hedge(true, Instant::now()));
            advance(MS).await;
        }
        assert_eq!(hedges, 50);
    }

    #[tokio::test(start_paused = true)]
    async fn usual_slowness_leaves_a_part_for_the_silent() {
        let budgets = Budgets::new(Instant::now());
        (0..10_000).for_each(|_| budgets.deposit(Instant::now()));
        let usual = (0..1_000).filter(|_| budgets.may_hedge(false, Instant::now())).count();
        let silent = (0..1_000).filter(|_| budgets.may_hedge(true, Instant::now())).count();
        assert_eq!((usual, silent), (80, 20));
    }

    #[tokio::test(start_paused = true)]
    async fn hedges_are_within_the_retries() {
        let budgets = Budgets::new(Instant::now());
        (0..10_000).for_each(|_| budgets.deposit(Instant::now()));
        while budgets.may_retry(Instant::now()) {}
        assert!(!budgets.may_hedge(true, Instant::now()));
        advance(100 * MS).await;
        assert!(budgets.may_hedge(true, Instant::now()), "what was refused was given back");
    }
}
