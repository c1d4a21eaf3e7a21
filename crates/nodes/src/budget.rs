//! Budgets for extra calls: retries and hedges.
//!
//! Retries and hedges can overload a pool that is already in trouble. Both are therefore limited to a share of the calls: each
//! call pays in a part of an extra call, and each extra call takes out a whole one.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The price of one extra call, in the units of a balance.
const EXTRA_CALL: u64 = 1_000;

/// Extra calls after others have failed. Hedges are taken out of this budget too, so that it bounds all extra calls.
const RETRY: BudgetRule =
    BudgetRule { per_call: 200, calls_per_second: 10, saved_calls_max: 100, initial_calls: 100 };
/// Extra calls while others are under way: one in twenty calls, and none at the start.
const HEDGE: BudgetRule =
    BudgetRule { per_call: 50, calls_per_second: 0, saved_calls_max: 100, initial_calls: 0 };

/// Hedges that are reserved for calls on nodes that have fallen silent. Such a node is doubted after a handful of calls.
const RESERVED_FOR_SILENT_NODES: u64 = 20;

/// How a budget fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BudgetRule {
    /// Thousandths of an extra call that each call pays in.
    per_call: u64,
    /// Extra calls that each second pays in, for gateways with too few calls to save up a share.
    calls_per_second: u64,
    /// The most extra calls that are saved up. With more, a good day would end in a storm when all nodes fail.
    saved_calls_max: u64,
    /// Extra calls at the start.
    initial_calls: u64,
}

/// A budget and its present balance.
#[derive(Clone, Copy, Debug)]
struct ExtraCallBudget {
    rule: BudgetRule,
    /// Thousandths of extra calls.
    balance: u64,
    /// The time up to which seconds have been paid in.
    paid_until: Instant,
}

impl ExtraCallBudget {
    fn new(rule: BudgetRule, now: Instant) -> Self {
        let balance = rule.initial_calls.min(rule.saved_calls_max) * EXTRA_CALL;
        Self { rule, balance, paid_until: now }
    }

    /// Pays in the part of one call.
    fn deposit(&mut self, now: Instant) {
        self.pay_time(now);
        self.add(self.rule.per_call);
    }

    /// Whether an extra call can be paid such that `reserved` others remain.
    fn can_pay(&mut self, reserved: u64, now: Instant) -> bool {
        self.pay_time(now);
        self.balance >= (reserved + 1) * EXTRA_CALL
    }

    /// Takes out an extra call, if it can be paid such that `reserved` others remain.
    fn withdraw(&mut self, reserved: u64, now: Instant) -> bool {
        let is_granted = self.can_pay(reserved, now);
        if is_granted {
            self.balance -= EXTRA_CALL;
        }
        is_granted
    }

    /// Returns an extra call that was not made.
    fn give_back(&mut self) {
        self.add(EXTRA_CALL);
    }

    /// Pays in what the whole milliseconds since the last payment have earned.
    fn pay_time(&mut self, now: Instant) {
        let elapsed_ms = now.saturating_duration_since(self.paid_until).as_millis();
        let elapsed_ms = u64::try_from(elapsed_ms).unwrap_or(u64::MAX);
        self.paid_until += Duration::from_millis(elapsed_ms);
        self.add(elapsed_ms.saturating_mul(self.rule.calls_per_second));
    }

    fn add(&mut self, amount: u64) {
        self.balance = self.balance.saturating_add(amount).min(self.rule.saved_calls_max * EXTRA_CALL);
    }
}

/// The budgets of one pool.
#[derive(Debug)]
pub(crate) struct Budgets(Mutex<BudgetPair>);

#[derive(Debug)]
struct BudgetPair {
    retry: ExtraCallBudget,
    hedge: ExtraCallBudget,
}

impl BudgetPair {
    /// A hedge is taken out of both budgets or out of none.
    fn withdraw_hedge(&mut self, reserved: u64, now: Instant) -> bool {
        let is_granted = self.hedge.can_pay(reserved, now) && self.retry.withdraw(0, now);
        is_granted && self.hedge.withdraw(reserved, now)
    }
}

impl Budgets {
    pub(crate) fn new(now: Instant) -> Self {
        Self(Mutex::new(BudgetPair {
            retry: ExtraCallBudget::new(RETRY, now),
            hedge: ExtraCallBudget::new(HEDGE, now),
        }))
    }

    /// Pays in the part of a call that begins.
    pub(crate) fn deposit(&self, now: Instant) {
        let mut budgets = self.0.lock();
        budgets.retry.deposit(now);
        budgets.hedge.deposit(now);
    }

    /// Takes out a retry after all attempts so far have failed.
    pub(crate) fn withdraw_retry(&self, now: Instant) -> bool {
        self.0.lock().retry.withdraw(0, now)
    }

    /// Takes out a retry beside an attempt that is overdue. Half of the budget is reserved for calls without any attempt under way.
    pub(crate) fn withdraw_replacement(&self, now: Instant) -> bool {
        self.0.lock().retry.withdraw(RETRY.saved_calls_max / 2, now)
    }

    /// Takes out a hedge. Without the reserve for silent nodes, the slowest twentieth of ordinary answers would use up the budget,
    /// and nothing would be left when a node hangs.
    pub(crate) fn withdraw_hedge(&self, is_node_silent: bool, now: Instant) -> bool {
        let reserved = if is_node_silent { 0 } else { RESERVED_FOR_SILENT_NODES };
        self.0.lock().withdraw_hedge(reserved, now)
    }

    /// Returns a retry that was answered, because only retries in vain make a storm. Calls that lost their node at the same time
    /// would otherwise wait for a budget that only further calls could fill.
    pub(crate) fn give_retry_back(&self) {
        self.0.lock().retry.give_back();
    }

    /// Returns a hedge that was granted and not needed.
    pub(crate) fn give_hedge_back(&self) {
        let mut budgets = self.0.lock();
        budgets.hedge.give_back();
        budgets.retry.give_back();
    }
}

/// How long a call that was refused an extra call waits before it asks for one again.
pub(crate) const REFUSED_PAUSE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn a_dead_pool_is_asked_for_no_more_than_a_quarter_above_what_was_offered() {
        let mut budget = ExtraCallBudget::new(RETRY, Instant::now());
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
        let mut budget = ExtraCallBudget::new(RETRY, Instant::now());
        while budget.withdraw(0, Instant::now()) {}
        advance(99 * MS).await;
        assert!(!budget.withdraw(0, Instant::now()));
        advance(MS).await;
        assert!(budget.withdraw(0, Instant::now()));
        assert!(!budget.withdraw(0, Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_good_day_is_not_saved_up_for_a_storm() {
        let mut budget = ExtraCallBudget::new(RETRY, Instant::now());
        (0..1_000_000).for_each(|_| budget.deposit(Instant::now()));
        advance(Duration::from_secs(100_000)).await;
        let granted = (0..1_000).filter(|_| budget.withdraw(0, Instant::now())).count();
        assert_eq!(granted, 100);
    }

    #[tokio::test(start_paused = true)]
    async fn one_in_twenty_is_asked_twice_and_none_on_credit() {
        let budgets = Budgets::new(Instant::now());
        assert!(!budgets.withdraw_hedge(true, Instant::now()));
        let mut hedges = 0;
        for _ in 0..1_000 {
            budgets.deposit(Instant::now());
            hedges += u32::from(budgets.withdraw_hedge(true, Instant::now()));
            advance(MS).await;
        }
        assert_eq!(hedges, 50);
    }

    #[tokio::test(start_paused = true)]
    async fn usual_slowness_leaves_a_part_for_the_silent() {
        let budgets = Budgets::new(Instant::now());
        (0..10_000).for_each(|_| budgets.deposit(Instant::now()));
        let usual = (0..1_000).filter(|_| budgets.withdraw_hedge(false, Instant::now())).count();
        let silent = (0..1_000).filter(|_| budgets.withdraw_hedge(true, Instant::now())).count();
        assert_eq!((usual, silent), (80, 20));
    }

    #[tokio::test(start_paused = true)]
    async fn hedges_are_within_the_retries() {
        let budgets = Budgets::new(Instant::now());
        (0..10_000).for_each(|_| budgets.deposit(Instant::now()));
        while budgets.withdraw_retry(Instant::now()) {}
        assert!(!budgets.withdraw_hedge(true, Instant::now()));
        advance(100 * MS).await;
        assert!(budgets.withdraw_hedge(true, Instant::now()), "what was refused was given back");
    }
}
