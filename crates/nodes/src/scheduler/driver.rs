//! Carries out what [`next_action`] decides: asks nodes, pays from the budgets, and records what replies say about nodes.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::facts::{CallNodes, seems_down};
use super::next_action::{Action, AnotherAttempt, Ending, Payment, next_action};
use super::payload::{AttemptFuture, Payload, PayloadReply};
use super::policy::{AGAIN_PAUSE, ATTEMPTS_MAX};
use super::progress::{AttemptOutcome, CallProgress, CallTerms, NodeStatus, RunningAttempt, Wanted};
use super::{CallRules, ErrorMeaning, NodeReply, Nodes};
use crate::answering_node::record_answering_node;
use crate::call::{Ask, Fault};
use crate::node::MissingCapability;

/// One call under way.
pub(super) struct Driver<'a, A: Ask, P: Payload> {
    /// The nodes that there were when the call began.
    pub(super) nodes: Nodes<A>,
    pub(super) payload: &'a P,
    rules: &'a CallRules,
    pub(super) progress: CallProgress,
    attempts: Vec<AwaitedReply<'a, P::Results>>,
    pub(super) attempts_made: u64,
}

/// A reply that is awaited.
struct AwaitedReply<'a, R> {
    /// The position of its node.
    node: usize,
    reason: AskReason,
    reply: AttemptFuture<'a, R>,
}

/// Why a node was asked.
#[derive(Clone, Copy)]
pub(super) enum AskReason {
    First,
    Retry(Payment),
    Hedge,
}

/// The facts that the asker of a call must know.
pub(super) enum DriverEvent<R> {
    /// A reply to the call. It counts as an answer until the asker says otherwise, with [`Driver::settle`].
    Reply {
        node: usize,
        reason: AskReason,
        reply: NodeReply<R>,
    },
    /// An attempt has failed. It may be made once more.
    Failed {
        node: usize,
        fault: Fault,
    },
    Stalled,
    Ended(Ending),
}

impl<'a, A: Ask, P: Payload> Driver<'a, A, P> {
    pub(super) fn new(
        nodes: Nodes<A>,
        payload: &'a P,
        wanted: Wanted,
        rules: &'a CallRules,
        deadline: Instant,
    ) -> Self {
        rules.budgets.deposit();
        // One call is taken out of the quota of a partner, so it is asked once.
        let attempts_max = if nodes.first().is_some_and(|node| node.is_partner()) { 1 } else { ATTEMPTS_MAX };
        let terms = CallTerms::new(wanted, payload.call(), attempts_max, Instant::now(), deadline);
        let progress = CallProgress::new(terms, nodes.len());
        Self { nodes, payload, rules, progress, attempts: Vec::with_capacity(1), attempts_made: 0 }
    }

    /// Waits for the next event. It is cancel safe.
    pub(super) async fn next(&mut self) -> DriverEvent<P::Results> {
        loop {
            let (now, random) = (Instant::now(), self.rules.rng.next_u64());
            let (nodes, call) = (&self.nodes, self.payload.call());
            let facts = CallNodes { nodes, call, wanted: self.progress.terms.wanted };
            match next_action(&self.progress, &facts, random, now) {
                Action::AskFirst { best, probe } => self.ask_first(best, probe, now),
                Action::Hedge { node, beside } => self.hedge(node, beside, now),
                Action::AskAnother(another) => self.ask_another(another, now),
                Action::ReportOverdue { node } => {
                    self.blame_delay(node, now);
                    self.progress.record_overdue(node, now);
                }
                Action::Abandon { node } => {
                    self.stop_waiting(node, now);
                    self.progress.record_abandoned(node, now);
                }
                Action::ReportStalled => {
                    self.progress.has_stalled = true;
                    return DriverEvent::Stalled;
                }
                Action::WaitUntil(until) => {
                    let Some((node, reason, reply)) = self.reply_before(until).await else { continue };
                    if let Some(event) = self.read_reply(node, reason, reply) {
                        return event;
                    }
                }
                Action::Finish(ending) => return DriverEvent::Ended(ending),
            }
        }
    }

    fn ask_first(&mut self, best: usize, probe: Option<usize>, now: Instant) {
        // A node that fell may use what is reserved for silent nodes. Otherwise it would stay out for hundreds of calls.
        let probe = probe.filter(|_| self.rules.budgets.withdraw_hedge(true, now));
        self.progress.has_prepaid_hedge = probe.is_some();
        self.progress.first_attempts += 1;
        self.start(probe.unwrap_or(best), AskReason::First, now);
    }

    fn hedge(&mut self, node: usize, beside: usize, now: Instant) {
        let is_paid = std::mem::take(&mut self.progress.has_prepaid_hedge) || {
            let asked_at = self.running(beside).map_or(now, |attempt| attempt.asked_at);
            let is_silent = self.nodes[beside].silent_since(asked_at) <= asked_at;
            self.rules.budgets.withdraw_hedge(is_silent, now)
        };
        if is_paid {
            self.progress.record_hedge(beside);
            self.start(node, AskReason::Hedge, now);
        } else {
            self.progress.record_hedge_refused(beside, AGAIN_PAUSE, now);
        }
    }

    fn ask_another(&mut self, another: AnotherAttempt, now: Instant) {
        let budgets = &self.rules.budgets;
        let is_paid = match another.payment {
            Payment::Free => true,
            Payment::PrepaidHedge => std::mem::take(&mut self.progress.has_prepaid_hedge),
            Payment::Retry => budgets.withdraw_retry(now),
            Payment::Replacement => budgets.withdraw_replacement(now),
        };
        if !is_paid {
            return self.progress.record_another_refused(another.is_worth_waiting_for, self.pause(), now);
        }
        if let Some(oldest) = another.instead_of {
            self.stop_waiting(oldest, now);
            self.progress.settle(oldest, AttemptOutcome::FailedForGood, self.pause(), now);
        }
        self.progress.record_started_another(another.fallback_wait, now);
        self.start(another.node, AskReason::Retry(another.payment), now);
    }

    fn start(&mut self, position: usize, reason: AskReason, now: Instant) {
        let (node, call) = (Arc::clone(&self.nodes[position]), self.payload.call());
        match reason {
            AskReason::First => {}
            AskReason::Retry(_) => _ = node.counts().retries.fetch_add(1, Relaxed),
            AskReason::Hedge => _ = node.counts().hedges.fetch_add(1, Relaxed),
        }
        let seems_down = self.progress.terms.wanted == Wanted::Several && seems_down(&node, now);
        let usual = node.begin_attempt(call.class, now);
        self.progress.record_started(position, usual, seems_down, now);
        let reply = self.payload.ask(node, self.progress.terms.deadline);
        self.attempts_made += 1;
        self.attempts.push(AwaitedReply { node: position, reason, reply });
    }

    /// The first reply, the position of its node, and why that was asked.
    async fn reply_before(
        &mut self,
        until: Instant,
    ) -> Option<(usize, AskReason, Result<PayloadReply<'a, P::Results>, Fault>)> {
        let mut time = pin!(sleep_until(until));
        let (place, reply) = poll_fn(|context| {
            for (place, awaited) in self.attempts.iter_mut().enumerate() {
                if let Poll::Ready(reply) = awaited.reply.as_mut().poll(context) {
                    return Poll::Ready(Some((place, reply)));
                }
            }
            time.as_mut().poll(context).map(|()| None)
        })
        .await?;
        let AwaitedReply { node, reason, .. } = self.attempts.swap_remove(place);
        Some((node, reason, reply))
    }

    /// Records what a reply says about its node, and updates the call. Returns what the asker must know.
    fn read_reply(
        &mut self,
        node: usize,
        reason: AskReason,
        reply: Result<PayloadReply<'a, P::Results>, Fault>,
    ) -> Option<DriverEvent<P::Results>> {
        let reply = match reply {
            Ok(PayloadReply::Results(results)) => Ok(NodeReply::Result(results)),
            Ok(PayloadReply::Error(error, call)) => match (self.rules.read)(&error, call) {
                ErrorMeaning::Caller(error) => Ok(NodeReply::Error(error)),
                ErrorMeaning::Limit(limit) => Ok(NodeReply::Limit(limit)),
                ErrorMeaning::NotHere(missing) => Err(self.record_missing(node, missing)),
                ErrorMeaning::Unclear => {
                    self.give_back(reason);
                    Err(AttemptOutcome::Failed)
                }
                ErrorMeaning::Node(fault) => {
                    self.nodes[node].record_fault(fault, Instant::now());
                    Err(AttemptOutcome::Failed)
                }
            },
            // The node has recorded the fault.
            Err(fault) => {
                if fault.is_our_shortage() {
                    self.give_back(reason);
                }
                let is_lasting = self.progress.terms.wanted == Wanted::All && !fault.may_be_temporary();
                self.settle(
                    node,
                    if is_lasting { AttemptOutcome::FailedForGood } else { AttemptOutcome::Failed },
                );
                return Some(DriverEvent::Failed { node, fault });
            }
        };
        match reply {
            Ok(reply) => {
                self.settle(node, AttemptOutcome::Answered);
                Some(DriverEvent::Reply { node, reason, reply })
            }
            Err(outcome) => {
                self.settle(node, outcome);
                None
            }
        }
    }

    fn record_missing(&self, position: usize, missing: MissingCapability) -> AttemptOutcome {
        let (node, call) = (&self.nodes[position], self.payload.call());
        node.record_success(Instant::now());
        node.record_missing(call, missing);
        if self.progress.terms.wanted == Wanted::Several && missing == MissingCapability::Block {
            self.rules.view.request_polls();
            return AttemptOutcome::Late;
        }
        AttemptOutcome::Lacking
    }

    /// Records what became of an attempt.
    pub(super) fn settle(&mut self, node: usize, outcome: AttemptOutcome) {
        let pause = self.pause();
        self.progress.settle(node, outcome, pause, Instant::now());
    }

    fn running(&self, position: usize) -> Option<&RunningAttempt> {
        match &self.progress.nodes[position].status {
            NodeStatus::Running(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// Records that the reply took longer than the call could wait, unless it was recorded before. Of all nodes, everybody is waited
    /// for.
    fn blame_delay(&self, position: usize, now: Instant) {
        let attempt = self.running(position).filter(|attempt| !attempt.is_overdue);
        if let Some(attempt) = attempt.filter(|_| self.progress.terms.wanted != Wanted::All) {
            self.nodes[position].record_abandoned(self.payload.call().class, attempt.asked_at, now);
        }
    }

    fn stop_waiting(&mut self, position: usize, now: Instant) {
        self.blame_delay(position, now);
        self.attempts.retain(|awaited| awaited.node != position);
    }

    /// A pause of random length, so that calls that were refused together do not come back together.
    fn pause(&self) -> Duration {
        AGAIN_PAUSE + AGAIN_PAUSE * (self.rules.rng.next_u64() % 256) as u32 / 256
    }

    /// Returns what an attempt cost that failed because of its account or of the call itself. One account would otherwise use up
    /// the budgets of all.
    fn give_back(&self, reason: AskReason) {
        let budgets = &self.rules.budgets;
        match reason {
            AskReason::Retry(Payment::Retry | Payment::Replacement) => budgets.give_retry_back(),
            AskReason::Retry(Payment::PrepaidHedge) | AskReason::Hedge => budgets.give_hedge_back(),
            AskReason::Retry(Payment::Free) | AskReason::First => {}
        }
    }

    /// Records that an attempt has brought an answer. Only retries in vain make a storm, so others cost nothing.
    pub(super) fn record_won(&self, position: usize, reason: AskReason) {
        record_answering_node(self.nodes[position].id());
        match reason {
            AskReason::Hedge => _ = self.nodes[position].counts().hedges_won.fetch_add(1, Relaxed),
            AskReason::Retry(Payment::Retry | Payment::Replacement) => self.rules.budgets.give_retry_back(),
            AskReason::Retry(Payment::Free | Payment::PrepaidHedge) | AskReason::First => {}
        }
    }

    /// Ends the attempts that are still under way: they took longer than those that were enough.
    pub(super) fn drop_all(&mut self) {
        if !self.attempts.is_empty() {
            let now = Instant::now();
            for awaited in std::mem::take(&mut self.attempts) {
                self.blame_delay(awaited.node, now);
            }
        }
        if std::mem::take(&mut self.progress.has_prepaid_hedge) {
            self.rules.budgets.give_hedge_back();
        }
    }
}

/// A caller may go before the call has ended.
impl<A: Ask, P: Payload> Drop for Driver<'_, A, P> {
    fn drop(&mut self) {
        self.drop_all();
    }
}
