//! Budgets for extra calls: retries and hedges.
//!
//! Retries and hedges can overload a pool that is already in trouble. Both are therefore limited to a share of the calls: each
//! call pays in a part of an extra call, and each extra call takes out a whole one.

use parking_lot::Mutex;
use resources::{BucketRate, MonoTime, TokenBucket};
use tokio::time::Instant;

/// The price of one extra call, in tokens.
const EXTRA_CALL: u64 = 1_000;

/// The most extra calls that a budget saves up. With more, a good day would end in a storm when all nodes fail.
const SAVED_CALLS_MAX: u64 = 100;

/// Extra calls after others have failed: one in five calls, and ten a second for gateways with too few calls to save up a share.
/// Hedges are taken out of this budget too, so that it bounds all extra calls.
const RETRY_RATE: BucketRate =
    BucketRate { per_second: 10 * EXTRA_CALL, capacity: SAVED_CALLS_MAX * EXTRA_CALL };
const RETRY_TOKENS_PER_CALL: u64 = EXTRA_CALL / 5;

/// Extra calls while others are under way: one in twenty calls, and none at the start.
const HEDGE_RATE: BucketRate = BucketRate { per_second: 0, capacity: SAVED_CALLS_MAX * EXTRA_CALL };
const HEDGE_TOKENS_PER_CALL: u64 = EXTRA_CALL / 20;

/// Hedges that are reserved for calls on nodes that have fallen silent, and for probes. Such a node is doubted after a handful of
/// calls.
const RESERVED_HEDGES: u64 = 20;

/// The budgets of one pool.
#[derive(Debug)]
pub(crate) struct Budgets {
    /// When the time of the buckets began.
    origin: Instant,
    pair: Mutex<BudgetPair>,
}

#[derive(Debug)]
struct BudgetPair {
    retry: TokenBucket,
    hedge: TokenBucket,
}

/// Takes out an extra call, if it can be paid such that `reserved` others remain.
fn withdraw(budget: &mut TokenBucket, reserved: u64, now: MonoTime) -> bool {
    budget.available(now) >= (reserved + 1) * EXTRA_CALL && budget.take(EXTRA_CALL, now).is_ok()
}

impl BudgetPair {
    fn deposit(&mut self) {
        self.retry.put(RETRY_TOKENS_PER_CALL);
        self.hedge.put(HEDGE_TOKENS_PER_CALL);
    }

    /// A hedge is taken out of both budgets or out of none.
    fn withdraw_hedge(&mut self, reserved: u64, now: MonoTime) -> bool {
        if !withdraw(&mut self.hedge, reserved, now) {
            return false;
        }
        let is_granted = withdraw(&mut self.retry, 0, now);
        if !is_granted {
            self.hedge.put(EXTRA_CALL);
        }
        is_granted
    }
}

impl Budgets {
    pub(crate) fn new(now: Instant) -> Self {
        let retry = TokenBucket::full(RETRY_RATE);
        let hedge = TokenBucket::empty(HEDGE_RATE, MonoTime::default());
        Self { origin: now, pair: Mutex::new(BudgetPair { retry, hedge }) }
    }

    fn time(&self, now: Instant) -> MonoTime {
        MonoTime::default().after(now.saturating_duration_since(self.origin))
    }

    /// Pays in the part of a call that begins.
    pub(crate) fn deposit(&self) {
        self.pair.lock().deposit();
    }

    /// Takes out a retry after all attempts so far have failed.
    pub(crate) fn withdraw_retry(&self, now: Instant) -> bool {
        withdraw(&mut self.pair.lock().retry, 0, self.time(now))
    }

    /// Takes out a retry beside an attempt that is overdue. Half of the budget is reserved for calls without any attempt under way.
    pub(crate) fn withdraw_replacement(&self, now: Instant) -> bool {
        withdraw(&mut self.pair.lock().retry, SAVED_CALLS_MAX / 2, self.time(now))
    }

    /// Takes out a hedge. Without the reserve for silent nodes, the slowest twentieth of ordinary answers would use up the budget,
    /// and nothing would be left when a node hangs.
    pub(crate) fn withdraw_hedge(&self, may_use_reserve: bool, now: Instant) -> bool {
        let reserved = if may_use_reserve { 0 } else { RESERVED_HEDGES };
        self.pair.lock().withdraw_hedge(reserved, self.time(now))
    }

    /// Returns a retry that was answered or never sent, because only retries in vain make a storm. Calls that lost their node at
    /// the same time would otherwise wait for a budget that only further calls could fill.
    pub(crate) fn give_retry_back(&self) {
        self.pair.lock().retry.put(EXTRA_CALL);
    }

    /// Returns a hedge that was granted and not needed.
    pub(crate) fn give_hedge_back(&self) {
        let mut budgets = self.pair.lock();
        budgets.hedge.put(EXTRA_CALL);
        budgets.retry.put(EXTRA_CALL);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn retries_on_a_dead_pool_are_at_most_a_quarter_of_the_calls() {
        let budgets = Budgets::new(Instant::now());
        let (mut calls, mut retries) = (0, 0);
        for _ in 0..10_000 {
            calls += 2;
            (0..2).for_each(|_| budgets.deposit());
            while budgets.withdraw_retry(Instant::now()) {
                retries += 1;
            }
            advance(MS).await;
        }
        assert!(retries * 4 <= calls, "{retries} retries for {calls} calls");
        assert!(retries * 5 >= calls, "{retries} retries for {calls} calls");
    }

    #[tokio::test(start_paused = true)]
    async fn time_pays_for_retries_of_gateways_with_few_calls() {
        let budgets = Budgets::new(Instant::now());
        while budgets.withdraw_retry(Instant::now()) {}
        advance(99 * MS).await;
        assert!(!budgets.withdraw_retry(Instant::now()));
        advance(MS).await;
        assert!(budgets.withdraw_retry(Instant::now()));
        assert!(!budgets.withdraw_retry(Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn at_most_a_hundred_retries_are_saved_up() {
        let budgets = Budgets::new(Instant::now());
        (0..1_000_000).for_each(|_| budgets.deposit());
        advance(Duration::from_secs(100_000)).await;
        let granted = (0..1_000).filter(|_| budgets.withdraw_retry(Instant::now())).count();
        assert_eq!(granted, 100);
    }

    #[tokio::test(start_paused = true)]
    async fn one_in_twenty_calls_is_hedged() {
        let budgets = Budgets::new(Instant::now());
        assert!(!budgets.withdraw_hedge(true, Instant::now()));
        let mut hedges = 0;
        for _ in 0..1_000 {
            budgets.deposit();
            hedges += u32::from(budgets.withdraw_hedge(true, Instant::now()));
            advance(MS).await;
        }
        assert_eq!(hedges, 50);
    }

    #[tokio::test(start_paused = true)]
    async fn hedges_of_slow_answers_leave_some_for_silent_nodes() {
        let budgets = Budgets::new(Instant::now());
        (0..10_000).for_each(|_| budgets.deposit());
        let usual = (0..1_000).filter(|_| budgets.withdraw_hedge(false, Instant::now())).count();
        let silent = (0..1_000).filter(|_| budgets.withdraw_hedge(true, Instant::now())).count();
        assert_eq!((usual, silent), (80, 20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_hedge_needs_a_retry_too() {
        let budgets = Budgets::new(Instant::now());
        (0..10_000).for_each(|_| budgets.deposit());
        while budgets.withdraw_retry(Instant::now()) {}
        assert!(!budgets.withdraw_hedge(true, Instant::now()));
        advance(100 * MS).await;
        assert!(budgets.withdraw_hedge(true, Instant::now()), "what was refused was given back");
    }
}
