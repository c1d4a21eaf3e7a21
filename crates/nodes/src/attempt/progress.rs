//! The progress of one call, node by node. Pure: the time is passed in, and nothing here does I/O.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::{NodeReply, RangeLimit};
use crate::call::{Class, RpcCall};
use crate::node::UsualDelays;

/// Nodes that must report too many results of a log query before the call ends with that.
const TOO_MANY_RESULTS_OPINIONS: usize = 2;
/// Multiple of a node's usual delay after which an attempt is overdue.
const OVERDUE_FACTOR: u32 = 8;
/// Shortest time after which an attempt is overdue, however quick its node usually is.
const OVERDUE_MIN: Duration = Duration::from_millis(250);
/// Longest time after which a look-up is overdue, because look-ups seldom take longer. Twice the usual delay is always granted.
const QUICK_OVERDUE_MAX: Duration = Duration::from_millis(500);
/// Longest time after which a simulation or a whole block is overdue on a node that says nothing to anyone. It bounds
/// [`UsualDelays::silence_max`].
const SILENT_OVERDUE_MAX: Duration = Duration::from_millis(250);
/// Part of the remaining time after which an attempt is overdue at the latest, so that another node has as much.
const OVERDUE_TIME_PART: u32 = 2;
/// Part of the remaining time that a fallback waits for a better answer.
const FALLBACK_TIME_PART: u32 = 2;
/// How long a call that no budget pays for waits when all nodes that are left seem to be down. Meanwhile other calls find out
/// whether one of them is back.
const DOWN_WAIT_MAX: Duration = Duration::from_millis(100);

/// The status of one node in this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeStatus {
    /// It was not asked in this round.
    Untried,
    Running(RunningAttempt),
    /// It failed, or its answer was rejected. The next round may ask it again.
    Failed,
    /// It lacks something that exists, as the view knows. The next round may ask it again.
    Behind,
    /// It answered with a null or an empty list.
    Empty,
    /// It answered with a doubtful result that is not empty.
    Doubtful,
    /// It does not have the method, the block or the state of the call.
    Lacking,
    /// It grants less than the call asks for.
    Limited(RangeLimit),
    /// It was overdue and silent while a fallback was waiting.
    Abandoned,
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
}

/// The outcome of one attempt.
#[derive(Debug)]
pub(super) enum AttemptOutcome {
    Answer(NodeReply),
    Doubtful(Bytes),
    Behind,
    Failed,
    Lacking,
    Limited(RangeLimit),
}

/// One call over all nodes of a pool.
#[derive(Debug)]
pub(super) struct CallProgress {
    pub(super) class: Class,
    pub(super) may_hedge: bool,
    deadline: Instant,
    /// One for each node of the pool, in the same order.
    pub(super) nodes: Vec<NodeStatus>,
    /// The doubtful result that is the answer if no better one comes, and the node that gave it.
    pub(super) fallback: Option<(usize, Bytes)>,
    /// When the fallback becomes the answer, although the deadline is later.
    fallback_until: Option<Instant>,
    /// When another node is asked. `None` while those under way are enough.
    pub(super) next_ask_at: Option<Instant>,
    /// When a call that no budget pays for gives up, if by then all nodes that are left still seem to be down.
    hopeless_at: Option<Instant>,
    /// How often all nodes were tried, this round included. Zero before the first attempt.
    pub(super) rounds: u32,
    /// Whether a node was [`NodeStatus::Behind`], in this round or before: further attempts then cost no budget.
    pub(super) someone_was_behind: bool,
    /// Whether the hedge of a probe was paid for beforehand and not used yet.
    pub(super) has_prepaid_hedge: bool,
}

impl CallProgress {
    pub(super) fn new(call: &RpcCall, nodes: usize, deadline: Instant) -> Self {
        Self {
            class: call.class,
            may_hedge: call.may_hedge,
            deadline,
            nodes: vec![NodeStatus::Untried; nodes],
            fallback: None,
            fallback_until: None,
            next_ask_at: None,
            hopeless_at: None,
            rounds: 0,
            someone_was_behind: false,
            has_prepaid_hedge: false,
        }
    }

    /// When the call ends: at its deadline, or when its fallback has waited long enough.
    pub(super) fn ends_at(&self) -> Instant {
        self.fallback_until.map_or(self.deadline, |until| until.min(self.deadline))
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The attempts under way, each with the position of its node.
    pub(super) fn running(&self) -> impl Iterator<Item = (usize, &RunningAttempt)> {
        self.nodes.iter().enumerate().filter_map(|(node, status)| match status {
            NodeStatus::Running(attempt) => Some((node, attempt)),
            _ => None,
        })
    }

    pub(super) fn is_limited(&self) -> bool {
        self.nodes.iter().any(|status| matches!(status, NodeStatus::Limited(_)))
    }

    /// The widest range that a node has granted, and that node.
    pub(super) fn widest_limit(&self) -> Option<(usize, RangeLimit)> {
        let limits = self.nodes.iter().enumerate().filter_map(|(node, status)| match status {
            NodeStatus::Limited(limit) => Some((node, *limit)),
            _ => None,
        });
        limits.max_by_key(|(_, limit)| limit.blocks)
    }

    /// Whether a node lacks the method, the block or the state of the call, and no node failed.
    pub(super) fn is_lacking(&self) -> bool {
        let is_failed = |status: &NodeStatus| matches!(status, NodeStatus::Failed | NodeStatus::Behind);
        !self.nodes.iter().any(is_failed) && self.nodes.contains(&NodeStatus::Lacking)
    }

    /// Whether a node may be asked once more when no other is left.
    pub(super) fn may_be_asked_again(&self) -> bool {
        self.nodes.iter().any(|status| matches!(status, NodeStatus::Failed | NodeStatus::Behind))
    }

    pub(super) fn record_started(&mut self, node: usize, usual: UsualDelays, now: Instant) {
        self.rounds = self.rounds.max(1);
        let overdue_after = self.overdue_after(usual.hedge_delay, now);
        let overdue_if_silent_after = match self.class {
            Class::Evm | Class::Bulk if self.may_hedge => {
                overdue_after.min(usual.silence_max).min(SILENT_OVERDUE_MAX)
            }
            Class::Quick | Class::Evm | Class::Bulk | Class::Logs => overdue_after,
        };
        self.nodes[node] = NodeStatus::Running(RunningAttempt {
            asked_at: now,
            hedge_at: self.may_hedge.then(|| now + usual.hedge_delay),
            overdue_if_silent_at: now + overdue_if_silent_after,
            overdue_at: now + overdue_after,
            is_overdue: false,
        });
    }

    /// Time after which an attempt is overdue on a node that usually answers within `usual`.
    fn overdue_after(&self, usual: Duration, now: Instant) -> Duration {
        let part_of_rest = self.ends_at().saturating_duration_since(now) / OVERDUE_TIME_PART;
        let patience = (usual * OVERDUE_FACTOR).max(OVERDUE_MIN);
        match self.class {
            _ if !self.may_hedge => part_of_rest,
            Class::Quick => patience.min(QUICK_OVERDUE_MAX.max(2 * usual)).min(part_of_rest),
            Class::Evm | Class::Bulk | Class::Logs => patience.min(part_of_rest),
        }
    }

    /// Records that a node was asked in place of those that failed. A fallback waits for it for `fallback_wait` at most.
    pub(super) fn record_started_another(&mut self, fallback_wait: Option<Duration>, now: Instant) {
        self.next_ask_at = None;
        if let (Some(wait), Some(until)) = (fallback_wait, self.fallback_until) {
            self.fallback_until = Some(until.min(now + wait));
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
            self.deadline
        } else {
            *self.hopeless_at.get_or_insert(now + DOWN_WAIT_MAX)
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

    pub(super) fn begin_round(&mut self, pause: Duration, now: Instant) {
        self.rounds += 1;
        for status in &mut self.nodes {
            if matches!(status, NodeStatus::Failed | NodeStatus::Behind) {
                *status = NodeStatus::Untried;
            }
        }
        self.next_ask_at = Some(now + pause);
    }

    /// Records the outcome of an attempt. Returns the answer if that ends the call.
    pub(super) fn settle(&mut self, node: usize, outcome: AttemptOutcome, now: Instant) -> Option<NodeReply> {
        self.next_ask_at = Some(now);
        self.nodes[node] = match outcome {
            AttemptOutcome::Answer(reply) => return Some(reply),
            AttemptOutcome::Doubtful(result) => self.remember_fallback(node, result, now),
            AttemptOutcome::Behind => {
                self.someone_was_behind = true;
                NodeStatus::Behind
            }
            AttemptOutcome::Failed => NodeStatus::Failed,
            AttemptOutcome::Lacking => NodeStatus::Lacking,
            AttemptOutcome::Limited(limit) => NodeStatus::Limited(limit),
        };
        let too_many = NodeStatus::Limited(RangeLimit { blocks: None });
        let opinions = self.nodes.iter().filter(|status| **status == too_many).count();
        let limit = self.widest_limit().filter(|_| opinions >= TOO_MANY_RESULTS_OPINIONS);
        limit.map(|(_, limit)| NodeReply::Limit(limit))
    }

    /// Remembers a doubtful result as the fallback: the first one, or the first that is not empty.
    fn remember_fallback(&mut self, node: usize, result: Bytes, now: Instant) -> NodeStatus {
        let status = if is_nothing(&result) { NodeStatus::Empty } else { NodeStatus::Doubtful };
        match &self.fallback {
            None => {
                let rest = self.deadline.saturating_duration_since(now);
                self.fallback_until = Some(now + rest / FALLBACK_TIME_PART);
                self.fallback = Some((node, result));
            }
            Some((_, earlier)) if is_nothing(earlier) && status == NodeStatus::Doubtful => {
                self.fallback = Some((node, result));
            }
            Some(_) => {}
        }
        status
    }

    fn update_running(&mut self, node: usize, update: impl FnOnce(&mut RunningAttempt)) {
        if let NodeStatus::Running(attempt) = &mut self.nodes[node] {
            update(attempt);
        }
    }
}

/// Whether a result is a null or an empty list.
fn is_nothing(result: &[u8]) -> bool {
    matches!(result.trim_ascii(), b"null" | b"[]")
}
