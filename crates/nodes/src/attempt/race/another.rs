//! When to start another attempt, beside those under way or in their place.

use std::time::Duration;

use tokio::time::Instant;

use super::{Kind, Race, Runner};
use crate::budget::REFUSED_PAUSE;
use crate::call::Ask;
use crate::health::Grade;

/// The most nodes that are at one call at the same time. A fourth would hardly be quicker than the third.
const RUNNERS_MAX: usize = 3;
/// How long a call without budget waits when all who are left seem to be down: in this time others find out if one is not.
const LAST_HOPE: Duration = Duration::from_millis(100);
/// How long a null or an empty list is kept back at most for one that seems to be down or has fallen silent,
const SECOND_OPINION_MAX: Duration = Duration::from_millis(100);
/// and at least for one that is only doubted: it may be slow for the same reason for which it is doubted. After half of it
/// the node is overdue.
const DOUBTED_OPINION_MIN: Duration = Duration::from_millis(500);

impl<A: Ask> Race<'_, A> {
    /// Asks a second node while the first is at it, if there is a good one and the budget allows it.
    pub(in crate::attempt) fn hedge(&mut self, runner: usize) {
        let now = Instant::now();
        let (by, asked_at) = (self.runners[runner].by, self.runners[runner].asked_at);
        self.runners[runner].slow_at = None;
        let Some(other) = self.choose(Grade::Doubted, now) else { return };
        if self.runners.len() >= RUNNERS_MAX {
            return;
        }
        let silent = self.node(by).silent_since(asked_at);
        if std::mem::take(&mut self.so_far.hedge_paid) || self.rules.budgets.may_hedge(silent, now) {
            self.start(other, Kind::Hedge, now);
        } else {
            self.runners[runner].slow_at = Some(now + REFUSED_PAUSE);
        }
    }

    /// Asks another node because this one is overdue. It may go on, if the call is one that two may be at.
    pub(in crate::attempt) fn replace(&mut self, runner: usize) {
        let now = Instant::now();
        let Runner { by, asked_at, overdue_anyway_at, .. } = self.runners[runner];
        if now < overdue_anyway_at && !self.node(by).silent_since(asked_at) {
            self.runners[runner].overdue_at = Some(overdue_anyway_at);
            return;
        }
        self.runners[runner].overdue_at = None;
        self.runners[runner].slow_at = None;
        self.node(by).given_up(self.call.class, asked_at, now);
        self.ask_another();
    }

    /// Asks one more node: at once if the budget allows it, else later. One that seems to be down is asked only if nobody
    /// else is at it.
    pub(in crate::attempt) fn ask_another(&mut self) {
        let now = Instant::now();
        self.let_the_silent_go();
        let worst = if self.runners.is_empty() { Grade::Down } else { Grade::Doubted };
        let Some(other) = self.choose(worst, now) else { return self.go_round_again(now) };
        let seems_down = self.nodes[other].grade(now) > Grade::Doubted;
        if let Some(kind) = self.may_ask_another(seems_down, now) {
            self.make_room(now);
            self.keep_back_a_moment(other, now);
            self.start(other, kind, now);
        } else if self.fallback.is_none() && self.limit.is_none() {
            self.wait_for_budget(seems_down, now);
        }
    }

    /// What there is already is not kept back for those that are overdue and have fallen silent.
    fn let_the_silent_go(&mut self) {
        if self.fallback.is_some() {
            let nodes = self.nodes;
            self.runners.retain(|runner| {
                runner.overdue_at.is_some() || !nodes[runner.by.position].silent_since(runner.asked_at)
            });
        }
    }

    /// A second opinion is no retry: nobody has failed, and each node gives one at most. One that seems to be down is not
    /// bothered for it without a budget.
    fn may_ask_another(&mut self, seems_down: bool, now: Instant) -> Option<Kind> {
        let budgets = &self.rules.budgets;
        let second_opinion = self.fallback.is_some() || self.limit.is_some();
        if second_opinion && !seems_down || self.so_far.late || std::mem::take(&mut self.so_far.hedge_paid) {
            return Some(Kind::Retry { paid: false });
        }
        let alone = self.runners.is_empty() && !second_opinion;
        let granted = if alone { budgets.may_retry(now) } else { budgets.may_replace(now) };
        granted.then_some(Kind::Retry { paid: true })
    }

    fn wait_for_budget(&mut self, seems_down: bool, now: Instant) {
        // As long as someone is well, it is only a matter of time.
        let hopeless_at =
            if seems_down { *self.hopeless_at.get_or_insert(now + LAST_HOPE) } else { self.deadline };
        if now < hopeless_at {
            self.budget_at = Some(now + self.pause());
        }
    }

    /// What there is already is not kept back for long while one is asked that is not well.
    fn keep_back_a_moment(&mut self, other: usize, now: Instant) {
        let node = &self.nodes[other];
        let usual = node.hedge_delay(self.call.class);
        let patience = match node.grade(now) {
            Grade::Up => return,
            Grade::Doubted if !node.has_fallen_silent() => usual.max(DOUBTED_OPINION_MIN),
            Grade::Doubted | Grade::Resting | Grade::Down => usual.min(SECOND_OPINION_MAX),
        };
        if self.fallback.is_some() {
            self.deadline = self.deadline.min(now + patience);
        }
    }

    /// Those that failed may be tried once more, after a short while, when there is nobody else. A null that another node
    /// has is no reason not to.
    fn go_round_again(&mut self, now: Instant) {
        let alone = self.runners.is_empty();
        if alone && self.so_far.failed != 0 && self.so_far.rounds < self.rules.rounds_max {
            self.so_far.rounds += 1;
            self.so_far.tried &= !self.so_far.failed;
            self.so_far.failed = 0;
            self.budget_at = Some(now + self.pause());
        }
    }

    /// Drops the oldest runner if there are too many, or if only one may be at it.
    fn make_room(&mut self, now: Instant) {
        let most = if self.call.may_hedge { RUNNERS_MAX - 1 } else { 0 };
        while self.runners.len() > most {
            let oldest = (0..self.runners.len()).min_by_key(|&position| self.runners[position].asked_at);
            let Some(oldest) = oldest else { return };
            let dropped = self.runners.swap_remove(oldest);
            self.failed(dropped.by);
            self.give_up(&dropped, now);
        }
    }

    /// A while that differs from call to call, so that those who were refused together do not come back together.
    fn pause(&self) -> Duration {
        REFUSED_PAUSE + REFUSED_PAUSE * (self.rules.dice.roll() % 256) as u32 / 256
    }
}
