//! Decides what is done next for a call: a pure function of its progress, of what is known of the nodes, and of the time.

use std::time::Duration;

use tokio::time::Instant;

use super::progress::CallProgress;
use super::progress::NodeStatus;
use crate::call::{Class, Needs};
use crate::health::Availability;
use crate::pick::{Candidate, pick};

/// The most nodes that work on one call at the same time. A fourth would hardly be faster than the third.
const RUNNING_MAX: usize = 3;
/// Longest time that a fallback waits for a node that seems to be down or has fallen silent.
const SILENT_OPINION_WAIT_MAX: Duration = Duration::from_millis(100);
/// Shortest time that a fallback waits for a node that is only doubted. The node may be slow for the reason for which
/// it is doubted, and is overdue after half of this time.
const DOUBTED_OPINION_WAIT_MIN: Duration = Duration::from_millis(500);

/// What is done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The first attempt goes to the best node, or to one that is due for a probe. A probe may cost the caller time, so a hedge must be
    /// paid for beforehand.
    AskFirst {
        best: usize,
        probe: Option<usize>,
    },
    /// A node is asked beside one that is slow, if the hedge budget pays for it.
    Hedge {
        node: usize,
        beside: usize,
    },
    /// Another node is asked because those before have not answered.
    AskAnother(AnotherAttempt),
    /// This attempt is overdue: its node is blamed for it, and another one is asked.
    ReportOverdue {
        node: usize,
    },
    /// This attempt is overdue and its node silent, while there is a fallback: it is dropped.
    Abandon {
        node: usize,
    },
    /// Nodes that failed may be asked once more, after a pause.
    BeginRound,
    /// Nothing is done until then, unless a reply comes.
    WaitUntil(Instant),
    Finish(Ending),
}

/// Why a call ends without an answer that is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The deadline of the call or of its fallback has passed.
    TimeUp,
    /// No node is left that could be asked.
    Exhausted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnotherAttempt {
    pub(super) node: usize,
    pub(super) payment: Payment,
    /// The attempt that is dropped for it, because too many are under way.
    pub(super) instead_of: Option<usize>,
    /// Whether the node is well or answered its last call. If not, the call does not wait long for a budget.
    pub(super) is_worth_waiting_for: bool,
    /// How long a fallback waits for it, if that is less than usual.
    pub(super) fallback_wait: Option<Duration>,
}

/// What pays for another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payment {
    Free,
    /// The hedge that was paid for with the probe.
    PrepaidHedge,
    /// The retry budget, because no other node works on the call.
    Retry,
    /// The part of the retry budget that may be used while others work on the call.
    Replacement,
}

/// What is known of the nodes when a decision is made.
pub(super) trait NodeFacts {
    /// What the call needs of a node.
    fn needs(&self) -> Needs;
    /// The node as a candidate, whether or not this call has tried it.
    fn candidate(&self, node: usize, now: Instant) -> Candidate;
    /// Its health alone.
    fn availability(&self, node: usize, now: Instant) -> Availability;
    fn is_probe_due(&self, node: usize, now: Instant) -> bool;
    /// Whether it has replied to no call since then.
    fn is_silent_since(&self, node: usize, then: Instant) -> bool;
    /// Whether a call was given up because of its silence, and nothing was answered since.
    fn has_fallen_silent(&self, node: usize) -> bool;
    fn hedge_delay(&self, node: usize) -> Duration;
}

/// Decides what is done next. `random` chooses between nodes that are equally good.
pub(super) fn next_action(
    progress: &CallProgress,
    facts: &impl NodeFacts,
    rounds_max: u32,
    random: u64,
    now: Instant,
) -> Action {
    let decision = ActionChooser { progress, facts, rounds_max, random, now };
    if now >= progress.ends_at() {
        return Action::Finish(Ending::TimeUp);
    }
    if progress.rounds == 0 {
        return decision.first();
    }
    decision
        .overdue()
        .or_else(|| decision.abandoned())
        .or_else(|| decision.another())
        .or_else(|| decision.hedge())
        .unwrap_or_else(|| decision.wait())
}

struct ActionChooser<'a, F> {
    progress: &'a CallProgress,
    facts: &'a F,
    rounds_max: u32,
    random: u64,
    now: Instant,
}

impl<F: NodeFacts> ActionChooser<'_, F> {
    fn first(&self) -> Action {
        let candidates = self.candidates();
        match pick(&candidates, self.facts.needs(), Availability::Down, self.random) {
            Some(best) => Action::AskFirst { best, probe: self.due_for_probe(&candidates, best) },
            None => Action::Finish(Ending::Exhausted),
        }
    }

    /// A node that is due for a probe, if a better one can take over.
    fn due_for_probe(&self, candidates: &[Candidate], best: usize) -> Option<usize> {
        let CallProgress { class, may_hedge, .. } = *self.progress;
        // Blocks are probes too, because some callers ask for nothing else. Other calls may take long without anything being
        // wrong.
        let is_probe = may_hedge && matches!(class, Class::Quick | Class::Bulk);
        if candidates[best].availability != Availability::Up || !is_probe {
            return None;
        }
        candidates.iter().enumerate().position(|(node, candidate)| {
            candidate.availability > Availability::Up
                && candidate.can_answer(self.facts.needs())
                && self.facts.is_probe_due(node, self.now)
        })
    }

    fn overdue(&self) -> Option<Action> {
        let overdue = self.progress.running().find(|&(node, attempt)| {
            let is_silent = || self.facts.is_silent_since(node, attempt.asked_at);
            let is_due =
                self.now >= attempt.overdue_at || self.now >= attempt.overdue_if_silent_at && is_silent();
            is_due && !attempt.is_overdue
        });
        overdue.map(|(node, _)| Action::ReportOverdue { node })
    }

    fn abandoned(&self) -> Option<Action> {
        self.progress.fallback.as_ref()?;
        let abandoned = self.progress.running().find(|&(node, attempt)| {
            attempt.is_overdue && self.facts.is_silent_since(node, attempt.asked_at)
        });
        abandoned.map(|(node, _)| Action::Abandon { node })
    }

    /// A node that seems to be down is asked only if no other node works on the call that may still answer in time.
    fn another(&self) -> Option<Action> {
        self.progress.next_ask_at.filter(|at| *at <= self.now)?;
        let is_alone = self.progress.running().next().is_none();
        let all_are_overdue = self.progress.running().all(|(_, attempt)| attempt.is_overdue);
        let worst = if all_are_overdue { Availability::Down } else { Availability::InDoubt };
        let Some(node) = self.choose(worst) else {
            let may_begin =
                is_alone && self.progress.may_be_asked_again() && self.progress.rounds < self.rounds_max;
            return may_begin.then_some(Action::BeginRound);
        };
        let seems_down = self.facts.availability(node, self.now) > Availability::InDoubt;
        Some(Action::AskAnother(AnotherAttempt {
            node,
            payment: self.payment(is_alone, seems_down),
            instead_of: self.superfluous(),
            is_worth_waiting_for: !seems_down || !self.facts.candidate(node, self.now).fails_calls,
            fallback_wait: self.fallback_wait(node),
        }))
    }

    /// A second opinion is not a retry: no node has failed, and each gives one at most. For a node that seems to be down, the budget must
    /// pay.
    fn payment(&self, is_alone: bool, seems_down: bool) -> Payment {
        let is_second_opinion = self.progress.fallback.is_some() || self.progress.is_limited();
        if is_second_opinion && !seems_down || self.progress.someone_was_behind {
            Payment::Free
        } else if self.progress.has_prepaid_hedge {
            Payment::PrepaidHedge
        } else if is_alone && !is_second_opinion {
            Payment::Retry
        } else {
            Payment::Replacement
        }
    }

    /// The oldest attempt, if too many are under way for another one.
    fn superfluous(&self) -> Option<usize> {
        let most = if self.progress.may_hedge { RUNNING_MAX - 1 } else { 0 };
        let is_full = self.progress.running().count() > most;
        let oldest = self.progress.running().min_by_key(|(_, attempt)| attempt.asked_at);
        oldest.filter(|_| is_full).map(|(node, _)| node)
    }

    /// A fallback does not wait long for a node that is not well.
    fn fallback_wait(&self, node: usize) -> Option<Duration> {
        let usual = self.facts.hedge_delay(node);
        match self.facts.availability(node, self.now) {
            Availability::Up => None,
            Availability::InDoubt if !self.facts.has_fallen_silent(node) => {
                Some(usual.max(DOUBTED_OPINION_WAIT_MIN))
            }
            Availability::InDoubt | Availability::RateLimited | Availability::Down => {
                Some(usual.min(SILENT_OPINION_WAIT_MAX))
            }
        }
    }

    fn hedge(&self) -> Option<Action> {
        let is_slow = |at: Option<Instant>| at.is_some_and(|at| at <= self.now);
        let (beside, _) = self.progress.running().find(|(_, attempt)| is_slow(attempt.hedge_at))?;
        if self.progress.running().count() >= RUNNING_MAX {
            return None;
        }
        self.choose(Availability::InDoubt).map(|node| Action::Hedge { node, beside })
    }

    fn wait(&self) -> Action {
        let of_attempts = self.progress.running().flat_map(|(_, attempt)| {
            let overdue = (!attempt.is_overdue).then_some([attempt.overdue_if_silent_at, attempt.overdue_at]);
            overdue.into_iter().flatten().chain(attempt.hedge_at)
        });
        let next = of_attempts.chain(self.progress.next_ask_at).filter(|at| *at > self.now).min();
        if next.is_none() && self.progress.running().next().is_none() {
            return Action::Finish(Ending::Exhausted);
        }
        let ends_at = self.progress.ends_at();
        Action::WaitUntil(next.map_or(ends_at, |next| next.min(ends_at)))
    }

    fn choose(&self, worst: Availability) -> Option<usize> {
        pick(&self.candidates(), self.facts.needs(), worst, self.random)
    }

    fn candidates(&self) -> Vec<Candidate> {
        let candidate = |(node, status): (usize, &NodeStatus)| {
            let candidate = self.facts.candidate(node, self.now);
            Candidate { excluded: candidate.excluded || *status != NodeStatus::Untried, ..candidate }
        };
        self.progress.nodes.iter().enumerate().map(candidate).collect()
    }
}
