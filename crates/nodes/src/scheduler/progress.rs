//! The progress of one call, node by node. Pure: the time is passed in, and nothing here does I/O.

use std::time::Duration;

use tokio::time::Instant;

use super::RangeLimit;
use super::policy::{
    DOWN_TIME_MAX, FALLBACK_TIME_PART, HOPELESS_AFTER, LATE_PAUSE, LATE_TIME_MAX, OVERDUE_FACTOR,
    OVERDUE_MIN, OVERDUE_TIME_PART, QUICK_OVERDUE_MAX, SILENT_FACTOR, SILENT_OVERDUE_MAX, SILENT_TIME_MIN,
    TOO_MANY_RESULTS_OPINIONS,
};
use crate::call::{Class, RpcCall};
use crate::node::UsualDelays;

/// How many answers a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The first that is believed.
    One,
    /// As many as the asker says, who compares them.
    Several,
    /// One of every node.
    All,
}

/// The status of one node in this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeStatus {
    Untried,
    Running(RunningAttempt),
    /// It failed, or lacks something that exists, and may be asked again from this time on.
    Again {
        at: Instant,
    },
    /// It failed, or was late, as often as it may.
    Failed,
    /// It has given its answer, and gives no other.
    Answered,
    /// It answered with a null or an empty list, where one answer is wanted.
    Empty,
    /// It answered with a doubtful result that is not empty, where one answer is wanted.
    Doubtful,
    /// It does not have the method, the block or the state of the call.
    Lacking,
    /// It grants less than the call asks for.
    Limited(RangeLimit),
    /// It was silent for too long.
    Abandoned,
}

/// One node in this call.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeProgress {
    pub(super) status: NodeStatus,
    /// How often it failed.
    failures: u32,
    /// How often it did not have the block yet.
    pub(super) times_late: u32,
}

/// One attempt under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunningAttempt {
    pub(super) asked_at: Instant,
    /// When another node may be asked beside it. `None` once that was done, and for calls that must not be hedged.
    pub(super) hedge_at: Option<Instant>,
    /// When it becomes overdue if its node has replied to no call since it was asked.
    pub(super) overdue_if_silent_at: Instant,
    /// When it becomes overdue in any case.
    pub(super) overdue_at: Instant,
    /// Whether its node has been blamed for the delay, and another node asked.
    pub(super) is_overdue: bool,
    /// Of several: when it is given up because its node seemed to be down from the start.
    pub(super) down_until: Option<Instant>,
    /// Of several: how long its node may reply to no call before it is given up.
    pub(super) silent_time: Duration,
}

/// The outcome of one attempt.
#[derive(Clone, Copy, Debug)]
pub(super) enum AttemptOutcome {
    Answered,
    Doubtful {
        is_empty: bool,
    },
    /// Something is missing that exists, as the view or the other nodes know.
    Late,
    Failed,
    /// It failed in a way that another attempt does not mend.
    FailedForGood,
    Lacking,
    Limited(RangeLimit),
}

/// The terms of a call, which do not change while it is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTerms {
    pub(super) wanted: Wanted,
    pub(super) class: Class,
    pub(super) may_hedge: bool,
    pub(super) begun: Instant,
    pub(super) deadline: Instant,
    /// How often a node that fails is asked.
    pub(super) attempts_max: u32,
}

impl CallTerms {
    pub(super) fn new(
        wanted: Wanted,
        call: &RpcCall,
        attempts_max: u32,
        begun: Instant,
        deadline: Instant,
    ) -> Self {
        let may_hedge = match wanted {
            Wanted::One => call.may_hedge,
            Wanted::Several => true,
            Wanted::All => false,
        };
        Self { wanted, class: call.class, may_hedge, begun, deadline, attempts_max }
    }
}

/// A doubtful result that is the answer if no better one comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fallback {
    pub(super) node: usize,
    is_empty: bool,
    /// When it becomes the answer, although the deadline is later.
    until: Instant,
}

/// One call over all nodes of a pool.
#[derive(Debug)]
pub(super) struct CallProgress {
    pub(super) terms: CallTerms,
    /// One for each node of the call, in the same order.
    pub(super) nodes: Vec<NodeProgress>,
    /// How many more answers are wanted.
    pub(super) missing: usize,
    pub(super) answers: usize,
    /// Attempts that the call itself is worth, before any that a budget pays for.
    pub(super) first_attempts: usize,
    pub(super) fallback: Option<Fallback>,
    /// When another node is asked. `None` while those under way are enough.
    pub(super) next_ask_at: Option<Instant>,
    /// When a call that no budget pays for gives up, if by then all nodes that are left still seem to be down.
    hopeless_at: Option<Instant>,
    /// Whether the hedge of a probe was paid for beforehand and not used yet.
    pub(super) has_prepaid_hedge: bool,
    pub(super) has_stalled: bool,
}

impl CallProgress {
    pub(super) fn new(terms: CallTerms, nodes: usize) -> Self {
        let node = NodeProgress { status: NodeStatus::Untried, failures: 0, times_late: 0 };
        Self {
            terms,
            nodes: vec![node; nodes],
            missing: if terms.wanted == Wanted::All { usize::MAX } else { 1 },
            answers: 0,
            first_attempts: 0,
            fallback: None,
            next_ask_at: None,
            hopeless_at: None,
            has_prepaid_hedge: false,
            has_stalled: false,
        }
    }

    /// When the call ends: at its deadline, or when its fallback has waited long enough.
    pub(super) fn ends_at(&self) -> Instant {
        let deadline = self.terms.deadline;
        self.fallback.map_or(deadline, |fallback| fallback.until.min(deadline))
    }

    pub(super) fn statuses(&self) -> impl Iterator<Item = &NodeStatus> {
        self.nodes.iter().map(|node| &node.status)
    }

    /// The attempts under way, each with the position of its node.
    pub(super) fn running(&self) -> impl Iterator<Item = (usize, &RunningAttempt)> {
        self.statuses().enumerate().filter_map(|(node, status)| match status {
            NodeStatus::Running(attempt) => Some((node, attempt)),
            _ => None,
        })
    }

    /// Attempts under way that may still answer in time.
    pub(super) fn working(&self) -> usize {
        self.running().filter(|(_, attempt)| !attempt.is_overdue).count()
    }

    /// Attempts under way beside which no other node was asked.
    pub(super) fn prompt(&self) -> usize {
        let is_prompt = |attempt: &RunningAttempt| {
            !attempt.is_overdue && (attempt.hedge_at.is_some() || !self.terms.may_hedge)
        };
        self.running().filter(|(_, attempt)| is_prompt(attempt)).count()
    }

    /// Whether a node lacks something that exists: further attempts then cost no budget, within limits.
    pub(super) fn someone_was_late(&self) -> bool {
        self.nodes.iter().any(|node| node.times_late > 0)
    }

    pub(super) fn is_limited(&self) -> bool {
        self.statuses().any(|status| matches!(status, NodeStatus::Limited(_)))
    }

    /// The widest range that a node has granted, and that node.
    pub(super) fn widest_limit(&self) -> Option<(usize, RangeLimit)> {
        let limits = self.statuses().enumerate().filter_map(|(node, status)| match status {
            NodeStatus::Limited(limit) => Some((node, *limit)),
            _ => None,
        });
        limits.max_by_key(|(_, limit)| limit.blocks)
    }

    /// The widest range, once enough nodes find the results too many.
    pub(super) fn agreed_limit(&self) -> Option<RangeLimit> {
        let too_many = NodeStatus::Limited(RangeLimit { blocks: None });
        let opinions = self.statuses().filter(|status| **status == too_many).count();
        self.widest_limit().filter(|_| opinions >= TOO_MANY_RESULTS_OPINIONS).map(|(_, limit)| limit)
    }

    /// Whether a node lacks the method, the block or the state of the call, and no node failed.
    pub(super) fn is_lacking(&self) -> bool {
        let is_failed = |status: &NodeStatus| matches!(status, NodeStatus::Again { .. } | NodeStatus::Failed);
        !self.statuses().any(is_failed) && self.statuses().any(|status| *status == NodeStatus::Lacking)
    }

    pub(super) fn record_started(&mut self, node: usize, usual: UsualDelays, seems_down: bool, now: Instant) {
        let CallTerms { wanted, class, may_hedge, deadline, .. } = self.terms;
        let delay = usual.hedge_delay;
        let overdue_after = self.overdue_after(delay, now);
        let overdue_if_silent_after = match class {
            Class::Evm | Class::Bulk if may_hedge => {
                overdue_after.min(usual.silence_max).min(SILENT_OVERDUE_MAX)
            }
            Class::Quick | Class::Evm | Class::Bulk | Class::Logs => overdue_after,
        };
        let is_given_up = wanted == Wanted::Several && seems_down;
        self.nodes[node].status = NodeStatus::Running(RunningAttempt {
            asked_at: now,
            hedge_at: may_hedge.then(|| now + delay),
            overdue_if_silent_at: now + overdue_if_silent_after,
            overdue_at: now + overdue_after,
            is_overdue: false,
            down_until: is_given_up.then(|| deadline.min(now + delay.max(DOWN_TIME_MAX))),
            silent_time: (delay * SILENT_FACTOR).max(SILENT_TIME_MIN),
        });
    }

    /// Time after which an attempt is overdue on a node that usually answers within `usual`.
    fn overdue_after(&self, usual: Duration, now: Instant) -> Duration {
        let rest = self.ends_at().saturating_duration_since(now);
        let part_of_rest = rest / OVERDUE_TIME_PART;
        let patience = (usual * OVERDUE_FACTOR).max(OVERDUE_MIN);
        match self.terms.class {
            // Nobody is left who could be asked in its place.
            _ if self.terms.wanted == Wanted::All => rest,
            _ if !self.terms.may_hedge => part_of_rest,
            Class::Quick => patience.min(QUICK_OVERDUE_MAX.max(2 * usual)).min(part_of_rest),
            Class::Evm | Class::Bulk | Class::Logs => patience.min(part_of_rest),
        }
    }

    /// Records that a node was asked in place of those that failed. A fallback waits for it for `fallback_wait` at most.
    pub(super) fn record_started_another(&mut self, fallback_wait: Option<Duration>, now: Instant) {
        self.next_ask_at = None;
        if let (Some(wait), Some(fallback)) = (fallback_wait, &mut self.fallback) {
            fallback.until = fallback.until.min(now + wait);
        }
    }

    /// Records that a node was asked beside this one.
    pub(super) fn record_hedge(&mut self, beside: usize) {
        self.update_running(beside, |attempt| attempt.hedge_at = None);
    }

    /// Records that no budget pays for a node beside this one. It is tried again after a pause.
    pub(super) fn record_hedge_refused(&mut self, beside: usize, pause: Duration, now: Instant) {
        self.update_running(beside, |attempt| attempt.hedge_at = Some(now + pause));
    }

    /// Records that no budget pays for another node. It is tried again after a pause, unless there is an answer already.
    pub(super) fn record_another_refused(
        &mut self,
        is_worth_waiting_for: bool,
        pause: Duration,
        now: Instant,
    ) {
        self.next_ask_at = None;
        if self.fallback.is_some() || self.is_limited() {
            return;
        }
        let hopeless_at = if is_worth_waiting_for {
            // While a node is well, the budget will pay at some time.
            self.terms.deadline
        } else {
            *self.hopeless_at.get_or_insert(now + HOPELESS_AFTER)
        };
        if now < hopeless_at {
            self.next_ask_at = Some(now + pause);
        }
    }

    /// Records that a node takes much longer than is usual. Another one is asked, and this one may still answer.
    pub(super) fn record_overdue(&mut self, node: usize, now: Instant) {
        self.update_running(node, |attempt| {
            attempt.is_overdue = true;
            attempt.hedge_at = None;
        });
        self.next_ask_at = Some(now);
    }

    /// Records that an attempt is given up.
    pub(super) fn record_abandoned(&mut self, node: usize, now: Instant) {
        if matches!(self.nodes[node].status, NodeStatus::Running(attempt) if !attempt.is_overdue) {
            self.next_ask_at = Some(now);
        }
        self.nodes[node].status = NodeStatus::Abandoned;
    }

    /// Records the outcome of an attempt. What was recorded as answered may turn out to be something else.
    pub(super) fn settle(&mut self, node: usize, outcome: AttemptOutcome, pause: Duration, now: Instant) {
        self.next_ask_at = Some(now);
        self.answers -= usize::from(self.nodes[node].status == NodeStatus::Answered);
        self.nodes[node].status = match outcome {
            AttemptOutcome::Answered => {
                self.answers += 1;
                NodeStatus::Answered
            }
            AttemptOutcome::Doubtful { is_empty } => self.remember_fallback(node, is_empty, now),
            AttemptOutcome::Late => {
                self.nodes[node].times_late += 1;
                match self.terms.wanted {
                    Wanted::Several => self.late_again(node, now),
                    Wanted::One | Wanted::All => self.failed(node, pause, now),
                }
            }
            AttemptOutcome::Failed => self.failed(node, pause, now),
            AttemptOutcome::FailedForGood => NodeStatus::Failed,
            AttemptOutcome::Lacking => NodeStatus::Lacking,
            AttemptOutcome::Limited(limit) => NodeStatus::Limited(limit),
        };
    }

    fn failed(&mut self, node: usize, pause: Duration, now: Instant) -> NodeStatus {
        let node = &mut self.nodes[node];
        node.failures += 1;
        if node.failures < self.terms.attempts_max {
            NodeStatus::Again { at: now + pause }
        } else {
            NodeStatus::Failed
        }
    }

    /// The pauses grow, because a node that does not have the block soon may never have it.
    fn late_again(&self, node: usize, now: Instant) -> NodeStatus {
        let doublings = self.nodes[node].times_late.saturating_sub(1).min(8);
        let at = now + LATE_PAUSE * 2_u32.pow(doublings);
        if at < self.late_until() { NodeStatus::Again { at } } else { NodeStatus::Failed }
    }

    /// How long the call waits for nodes that do not have the block yet.
    pub(super) fn late_until(&self) -> Instant {
        self.terms.begun + LATE_TIME_MAX
    }

    /// Remembers a doubtful result as the fallback: the first one, or the first that is not empty.
    fn remember_fallback(&mut self, node: usize, is_empty: bool, now: Instant) -> NodeStatus {
        match &mut self.fallback {
            None => {
                let rest = self.terms.deadline.saturating_duration_since(now);
                let until = now + rest / FALLBACK_TIME_PART;
                self.fallback = Some(Fallback { node, is_empty, until });
            }
            Some(earlier) if earlier.is_empty && !is_empty => {
                (earlier.node, earlier.is_empty) = (node, false);
            }
            Some(_) => {}
        }
        if is_empty { NodeStatus::Empty } else { NodeStatus::Doubtful }
    }

    fn update_running(&mut self, node: usize, update: impl FnOnce(&mut RunningAttempt)) {
        if let NodeStatus::Running(attempt) = &mut self.nodes[node].status {
            update(attempt);
        }
    }
}
