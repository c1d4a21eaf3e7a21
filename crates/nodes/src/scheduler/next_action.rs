//! Decides what is done next for a call: a pure function of its progress, of what is known of the nodes, and of the time.

use std::time::Duration;

use tokio::time::Instant;

use super::policy::{
    DOUBTED_OPINION_WAIT_MIN, HEADS_CHECKED_EVERY, LATE_FREE_MAX, LOST_CHECKED_EVERY, RUNNING_MAX,
    SILENT_OPINION_WAIT_MAX,
};
use super::progress::{CallProgress, NodeProgress, NodeStatus, RunningAttempt, Wanted};
use crate::call::{Class, Needs};
use crate::health::Availability;
use crate::pick::{Candidate, pick};

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A first attempt goes to the best node, or to one that is due for a probe. A probe may cost the caller time, so a hedge must be
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
    /// Another node, or one that failed once more, is asked because those before have not answered.
    AskAnother(AnotherAttempt),
    /// This attempt is overdue: its node is blamed for it, and another one is asked.
    ReportOverdue {
        node: usize,
    },
    /// This attempt is dropped, because its node has been silent for too long.
    Abandon {
        node: usize,
    },
    /// The asker is told that all nodes that have not answered are overdue and silent.
    ReportStalled,
    /// Nothing is done until then, unless a reply comes.
    WaitUntil(Instant),
    Finish(Ending),
}

/// Why a call ends without a further answer.
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

/// The budget that pays for another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payment {
    Free,
    /// The hedge that was paid for with the probe.
    PrepaidHedge,
    /// The retry budget, because fewer nodes work on the call than answers are missing.
    Retry,
    /// The part of the retry budget that may be used while others work on the call.
    Replacement,
}

/// The facts about the nodes when a decision is made.
pub(super) trait NodeFacts {
    /// The capabilities that the call needs.
    fn needs(&self) -> Needs;
    /// The node as a candidate, whether or not this call has tried it.
    fn candidate(&self, node: usize, now: Instant) -> Candidate;
    /// Its health alone.
    fn availability(&self, node: usize, now: Instant) -> Availability;
    fn is_probe_due(&self, node: usize, now: Instant) -> bool;
    /// When it has replied to any call last, if that was after this time, or else this time.
    fn silent_since(&self, node: usize, then: Instant) -> Instant;
    /// Whether a call was given up because of its silence, and nothing was answered since.
    fn has_fallen_silent(&self, node: usize) -> bool;
    /// Whether its watcher has lost it.
    fn is_lost(&self, node: usize) -> bool;
    /// Whether a node that cannot answer may be able to soon: it does not have the block yet, while that is waited for, or it was
    /// not found out yet what it has of old blocks.
    fn may_know_soon(&self, node: usize, is_block_awaited: bool) -> bool;
    fn hedge_delay(&self, node: usize) -> Duration;
}

/// Decides what is done next. `random` chooses between nodes that are equally good.
pub(super) fn next_action(
    progress: &CallProgress,
    facts: &impl NodeFacts,
    random: u64,
    now: Instant,
) -> Action {
    if now >= progress.ends_at() {
        return Action::Finish(Ending::TimeUp);
    }
    let decision = ActionChooser { progress, facts, random, now };
    decision
        .first()
        .or_else(|| decision.overdue())
        .or_else(|| decision.abandoned())
        .or_else(|| decision.another())
        .or_else(|| decision.hedge())
        .or_else(|| decision.stalled())
        .unwrap_or_else(|| decision.wait())
}

struct ActionChooser<'a, F> {
    progress: &'a CallProgress,
    facts: &'a F,
    random: u64,
    now: Instant,
}

impl<F: NodeFacts> ActionChooser<'_, F> {
    /// The call itself is worth as many attempts as it has answers and still wants.
    fn first(&self) -> Option<Action> {
        if !self.is_worth_more_attempts() {
            return None;
        }
        let candidates = self.untried();
        let best = pick(&candidates, self.facts.needs(), Availability::Down, self.random)?;
        Some(Action::AskFirst { best, probe: self.due_for_probe(&candidates, best) })
    }

    fn is_worth_more_attempts(&self) -> bool {
        let worth = self.progress.answers.saturating_add(self.progress.missing);
        self.progress.first_attempts < worth
    }

    /// A node that is due for a probe, if a better one can take over.
    fn due_for_probe(&self, candidates: &[Candidate], best: usize) -> Option<usize> {
        let terms = self.progress.terms;
        // Blocks are probes too, because some callers ask for nothing else. Other calls may take long without anything being
        // wrong.
        let is_probe = terms.wanted == Wanted::One
            && terms.may_hedge
            && matches!(terms.class, Class::Quick | Class::Bulk);
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
            let is_silent = || self.is_silent_since(node, attempt.asked_at);
            let is_due =
                self.now >= attempt.overdue_at || self.now >= attempt.overdue_if_silent_at && is_silent();
            is_due && !attempt.is_overdue
        });
        overdue.map(|(node, _)| Action::ReportOverdue { node })
    }

    fn is_silent_since(&self, node: usize, then: Instant) -> bool {
        self.facts.silent_since(node, then) <= then
    }

    fn abandoned(&self) -> Option<Action> {
        let is_abandoned = |&(node, attempt): &(usize, &RunningAttempt)| {
            self.abandoned_at(node, attempt).is_some_and(|at| at <= self.now)
        };
        self.progress.running().find(is_abandoned).map(|(node, _)| Action::Abandon { node })
    }

    /// When an attempt is given up if its node says nothing.
    fn abandoned_at(&self, node: usize, attempt: &RunningAttempt) -> Option<Instant> {
        match self.progress.terms.wanted {
            Wanted::One => {
                let is_silent = || self.is_silent_since(node, attempt.asked_at);
                let has_better = self.progress.fallback.is_some() && attempt.is_overdue;
                (has_better && is_silent()).then_some(self.now)
            }
            Wanted::Several => {
                let silent_until = self.facts.silent_since(node, attempt.asked_at) + attempt.silent_time;
                Some(attempt.down_until.map_or(silent_until, |until| until.min(silent_until)))
            }
            Wanted::All => self.facts.is_lost(node).then(|| attempt.asked_at + LOST_CHECKED_EVERY),
        }
    }

    /// A node that seems to be down is asked only if too few others work on the call that may still answer in time, and so is one
    /// that has failed.
    fn another(&self) -> Option<Action> {
        let progress = self.progress;
        progress.next_ask_at.filter(|at| *at <= self.now)?;
        if progress.terms.wanted != Wanted::One && progress.prompt() >= progress.missing {
            return None;
        }
        let are_too_few = progress.working() < progress.missing;
        let worst = if are_too_few { Availability::Down } else { Availability::InDoubt };
        let again = || self.choose(&self.due_again(), Availability::Down).filter(|_| are_too_few);
        let node = self.choose(&self.untried(), worst).or_else(again)?;
        let seems_down = self.facts.availability(node, self.now) > Availability::InDoubt;
        Some(Action::AskAnother(AnotherAttempt {
            node,
            payment: self.payment(node, seems_down),
            instead_of: self.superfluous(),
            is_worth_waiting_for: !seems_down || !self.facts.candidate(node, self.now).fails_calls,
            fallback_wait: self.fallback_wait(node),
        }))
    }

    /// A second opinion is not a retry: no node has failed, and each gives one at most. For a node that seems to be down, the budget must
    /// pay.
    fn payment(&self, node: usize, seems_down: bool) -> Payment {
        let progress = self.progress;
        let is_second_opinion = progress.fallback.is_some() || progress.is_limited();
        let is_free_of_late = progress.someone_was_late() && progress.nodes[node].times_late <= LATE_FREE_MAX;
        if is_second_opinion && !seems_down || is_free_of_late {
            Payment::Free
        } else if progress.has_prepaid_hedge {
            Payment::PrepaidHedge
        } else if progress.running().count() < progress.missing && !is_second_opinion {
            Payment::Retry
        } else {
            Payment::Replacement
        }
    }

    /// The most attempts that may be under way.
    fn running_max(&self) -> usize {
        let beside_one = if self.progress.terms.may_hedge { RUNNING_MAX } else { 1 };
        beside_one.saturating_add(self.progress.missing - 1)
    }

    /// The oldest attempt, if too many are under way for another one.
    fn superfluous(&self) -> Option<usize> {
        let is_full = self.progress.running().count() >= self.running_max();
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
        if self.progress.running().count() >= self.running_max() {
            return None;
        }
        self.choose(&self.untried(), Availability::InDoubt).map(|node| Action::Hedge { node, beside })
    }

    fn stalled(&self) -> Option<Action> {
        let is_due = self.stalled_at().is_some_and(|at| at <= self.now);
        (is_due && self.choose(&self.untried(), Availability::Up).is_none()).then_some(Action::ReportStalled)
    }

    /// When all that were asked are overdue and silent, if none of them replies to anyone until then.
    fn stalled_at(&self) -> Option<Instant> {
        let progress = self.progress;
        if progress.terms.wanted != Wanted::Several || progress.answers == 0 || progress.has_stalled {
            return None;
        }
        let stalled_at = |(node, attempt): (usize, &RunningAttempt)| match attempt.down_until {
            Some(_) => attempt.asked_at,
            None => {
                let overdue_after = attempt.overdue_if_silent_at - attempt.asked_at;
                self.facts.silent_since(node, attempt.asked_at) + overdue_after
            }
        };
        progress.running().map(stalled_at).max()
    }

    fn wait(&self) -> Action {
        let progress = self.progress;
        let of_attempts = progress.running().flat_map(|(node, attempt)| {
            let overdue = (!attempt.is_overdue).then_some([attempt.overdue_if_silent_at, attempt.overdue_at]);
            let abandoned = self.abandoned_at(node, attempt);
            overdue.into_iter().flatten().chain(attempt.hedge_at).chain(abandoned)
        });
        let of_others = progress.next_ask_at.into_iter().chain(self.again_at()).chain(self.checked_at());
        let next = of_attempts.chain(of_others).chain(self.stalled_at()).filter(|at| *at > self.now).min();
        if next.is_none() && progress.running().next().is_none() {
            return Action::Finish(Ending::Exhausted);
        }
        let ends_at = progress.ends_at();
        Action::WaitUntil(next.map_or(ends_at, |next| next.min(ends_at)))
    }

    /// When a node may be asked again, if that is wanted.
    fn again_at(&self) -> Option<Instant> {
        let is_wanted =
            self.progress.next_ask_at.is_some() && self.progress.working() < self.progress.missing;
        let times = self.progress.statuses().filter_map(|status| match status {
            NodeStatus::Again { at } => Some(*at).filter(|at| *at > self.now),
            _ => None,
        });
        times.min().filter(|_| is_wanted)
    }

    /// When it is looked at again what is known of nodes.
    fn checked_at(&self) -> Option<Instant> {
        let progress = self.progress;
        match progress.terms.wanted {
            Wanted::One => None,
            Wanted::Several
                if progress.prompt() < progress.missing
                    && (self.is_worth_more_attempts() || progress.next_ask_at.is_some()) =>
            {
                let is_block_awaited = self.now < progress.late_until();
                let may_know_soon = |(node, status): (usize, &NodeStatus)| {
                    *status == NodeStatus::Untried && self.facts.may_know_soon(node, is_block_awaited)
                };
                let is_some_awaited = progress.statuses().enumerate().any(may_know_soon);
                is_some_awaited.then(|| self.now + HEADS_CHECKED_EVERY)
            }
            Wanted::Several => None,
            Wanted::All => progress.running().next().map(|_| self.now + LOST_CHECKED_EVERY),
        }
    }

    fn choose(&self, candidates: &[Candidate], worst: Availability) -> Option<usize> {
        pick(candidates, self.facts.needs(), worst, self.random)
    }

    fn untried(&self) -> Vec<Candidate> {
        self.candidates(|node| node.status == NodeStatus::Untried)
    }

    fn due_again(&self) -> Vec<Candidate> {
        self.candidates(|node| matches!(node.status, NodeStatus::Again { at } if at <= self.now))
    }

    fn candidates(&self, may_be_asked: impl Fn(&NodeProgress) -> bool) -> Vec<Candidate> {
        let candidate = |(node, progress): (usize, &NodeProgress)| {
            let candidate = self.facts.candidate(node, self.now);
            Candidate { excluded: candidate.excluded || !may_be_asked(progress), ..candidate }
        };
        self.progress.nodes.iter().enumerate().map(candidate).collect()
    }
}
