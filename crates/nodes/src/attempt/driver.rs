//! Carries out what [`next_action`] decides: asks nodes, pays from the budgets, and records what replies say about nodes.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use super::next_action::{Action, AnotherAttempt, Ending, NodeFacts, Payment, next_action};
use super::progress::{AttemptOutcome, CallProgress, NodeStatus, RunningAttempt};
use super::{
    AttemptRules, CallFailure, CallOutcome, ErrorMeaning, Judgement, NodeReply, PoolAnswer, RangeLimit,
    ResultFinding, ResultJudge,
};
use crate::budget::REFUSED_PAUSE;
use crate::call::{Ask, Fault, Needs, ReplyFuture, RpcCall, RpcReply};
use crate::health::Availability;
use crate::node::{Membership, Node};
use crate::pick::Candidate;

pub(super) struct Driver<'a, 'j, A: Ask, F: ResultFinding> {
    nodes: &'a [Arc<Node<A>>],
    call: &'a RpcCall,
    judge: ResultJudge<'a, 'j, F>,
    rules: &'a AttemptRules,
    progress: CallProgress,
    replies: Vec<AwaitedReply<'a>>,
    /// What was found out about each result, with the position of its node.
    findings: Vec<(usize, Option<F>)>,
}

/// A reply that is awaited.
struct AwaitedReply<'a> {
    /// The position of its node.
    node: usize,
    reason: AskReason,
    reply: ReplyFuture<'a>,
}

/// Why a node was asked.
#[derive(Clone, Copy)]
enum AskReason {
    First,
    Retry(Payment),
    Hedge,
}

/// The nodes of a call, as its decisions see them.
struct CallNodes<'a, A> {
    nodes: &'a [Arc<Node<A>>],
    call: &'a RpcCall,
}

impl<A: Ask> NodeFacts for CallNodes<'_, A> {
    fn needs(&self) -> Needs {
        self.call.needs
    }

    fn candidate(&self, node: usize, now: Instant) -> Candidate {
        self.nodes[node].candidate(self.call, now)
    }

    fn availability(&self, node: usize, now: Instant) -> Availability {
        self.nodes[node].availability(now)
    }

    fn is_probe_due(&self, node: usize, now: Instant) -> bool {
        self.nodes[node].is_probe_due(now)
    }

    fn is_silent_since(&self, node: usize, then: Instant) -> bool {
        self.nodes[node].is_silent_since(then)
    }

    fn has_fallen_silent(&self, node: usize) -> bool {
        self.nodes[node].has_fallen_silent()
    }

    fn hedge_delay(&self, node: usize) -> Duration {
        self.nodes[node].hedge_delay(self.call.class)
    }
}

impl<'a, 'j, A: Ask, F: ResultFinding> Driver<'a, 'j, A, F> {
    pub(super) fn new(
        nodes: &'a [Arc<Node<A>>],
        call: &'a RpcCall,
        judge: ResultJudge<'a, 'j, F>,
        rules: &'a AttemptRules,
        deadline: Instant,
    ) -> Self {
        let progress = CallProgress::new(call, nodes.len(), deadline);
        let (replies, findings) = (Vec::with_capacity(1), Vec::new());
        Self { nodes, call, judge, rules, progress, replies, findings }
    }

    pub(super) async fn run(mut self) -> CallOutcome<A, F> {
        let answer = self.answer().await;
        CallOutcome { answer, findings: std::mem::take(&mut self.findings) }
    }

    async fn answer(&mut self) -> Result<PoolAnswer<A>, CallFailure> {
        let facts = CallNodes { nodes: self.nodes, call: self.call };
        loop {
            let (now, random) = (Instant::now(), self.rules.rng.next_u64());
            match next_action(&self.progress, &facts, self.rules.rounds_max, random, now) {
                Action::AskFirst { best, probe } => self.ask_first(best, probe, now),
                Action::Hedge { node, beside } => self.hedge(node, beside, now),
                Action::AskAnother(another) => self.ask_another(another, now),
                Action::ReportOverdue { node } => {
                    self.stop_waiting(node, now);
                    self.progress.record_overdue(node, now);
                }
                Action::Abandon { node } => self.drop_attempt(node, NodeStatus::Abandoned, now),
                Action::BeginRound => self.progress.begin_round(self.pause(), now),
                Action::WaitUntil(until) => {
                    let Some((node, reason, reply)) = self.reply_before(until).await else { continue };
                    match self.settle(node, reason, reply).await {
                        Settled::Answer(reply) => return Ok(self.win(node, reason, reply)),
                        Settled::Open => {}
                        Settled::Unchecked => return self.end(CallFailure::Unchecked),
                    }
                }
                Action::Finish(Ending::TimeUp) => return self.end(CallFailure::Deadline),
                Action::Finish(Ending::Exhausted) => return self.exhausted(),
            }
        }
    }

    fn ask_first(&mut self, best: usize, probe: Option<usize>, now: Instant) {
        // A node that fell may use what is reserved for silent nodes. Otherwise it would stay out for hundreds of calls.
        let probe = probe.filter(|_| self.rules.budgets.withdraw_hedge(true, now));
        self.progress.has_prepaid_hedge = probe.is_some();
        self.start(probe.unwrap_or(best), AskReason::First, now);
    }

    fn hedge(&mut self, node: usize, beside: usize, now: Instant) {
        let is_paid = std::mem::take(&mut self.progress.has_prepaid_hedge) || {
            let asked_at = self.running(beside).map_or(now, |attempt| attempt.asked_at);
            self.rules.budgets.withdraw_hedge(self.nodes[beside].is_silent_since(asked_at), now)
        };
        if is_paid {
            self.progress.record_hedge(beside);
            self.start(node, AskReason::Hedge, now);
        } else {
            self.progress.record_hedge_refused(beside, REFUSED_PAUSE, now);
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
            self.drop_attempt(oldest, NodeStatus::Failed, now);
        }
        self.progress.record_started_another(another.fallback_wait, now);
        self.start(another.node, AskReason::Retry(another.payment), now);
    }

    fn start(&mut self, position: usize, reason: AskReason, now: Instant) {
        let node: &'a Node<A> = &self.nodes[position];
        match reason {
            AskReason::First => {}
            AskReason::Retry(_) => _ = node.counts().retries.fetch_add(1, Relaxed),
            AskReason::Hedge => _ = node.counts().hedges.fetch_add(1, Relaxed),
        }
        let usual = node.begin_attempt(self.call.class, now);
        self.progress.record_started(position, usual, now);
        let reply = Box::pin(node.ask(self.call, self.progress.deadline()));
        self.replies.push(AwaitedReply { node: position, reason, reply });
    }

    /// The first reply, the position of its node, and why that was asked.
    async fn reply_before(&mut self, until: Instant) -> Option<(usize, AskReason, Result<RpcReply, Fault>)> {
        let mut time = pin!(sleep_until(until));
        let (place, reply) = poll_fn(|context| {
            for (place, awaited) in self.replies.iter_mut().enumerate() {
                if let Poll::Ready(reply) = awaited.reply.as_mut().poll(context) {
                    return Poll::Ready(Some((place, reply)));
                }
            }
            time.as_mut().poll(context).map(|()| None)
        })
        .await?;
        let AwaitedReply { node, reason, .. } = self.replies.swap_remove(place);
        Some((node, reason, reply))
    }

    /// Records what a reply says about its node, and updates the call.
    async fn settle(
        &mut self,
        position: usize,
        reason: AskReason,
        reply: Result<RpcReply, Fault>,
    ) -> Settled {
        let outcome = match reply {
            Ok(RpcReply::Result(result)) => match self.judge_result(position, result).await {
                Some(outcome) => outcome,
                None => return Settled::Unchecked,
            },
            Ok(RpcReply::Error(error)) => {
                let meaning = (self.rules.read)(&error, self.call);
                if matches!(meaning, ErrorMeaning::Unclear) {
                    self.give_back(reason);
                }
                self.read_error(position, meaning)
            }
            // The node has recorded the fault.
            Err(fault) => {
                if fault.is_our_shortage() {
                    self.give_back(reason);
                }
                AttemptOutcome::Failed
            }
        };
        match self.progress.settle(position, outcome, Instant::now()) {
            Some(reply) => Settled::Answer(reply),
            None => Settled::Open,
        }
    }

    /// Judges a result. Returns `None` if it could not be checked.
    async fn judge_result(&mut self, position: usize, result: Bytes) -> Option<AttemptOutcome> {
        let finding = (self.judge)(position, &result).finish_before(self.progress.ends_at()).await;
        let judgement = finding.as_ref().map(ResultFinding::judgement);
        self.findings.push((position, finding));
        let (node, now) = (&self.nodes[position], Instant::now());
        Some(match judgement? {
            Judgement::Believed => {
                node.record_success(now);
                AttemptOutcome::Answer(NodeReply::Result(result))
            }
            Judgement::Doubtful => {
                node.record_success(now);
                AttemptOutcome::Doubtful(result)
            }
            Judgement::Late => {
                node.record_success(now);
                AttemptOutcome::Behind
            }
            Judgement::Wrong(failure) => {
                node.record_wrong_answer(self.call, failure.to_string());
                AttemptOutcome::Failed
            }
            Judgement::Unproven => AttemptOutcome::Failed,
        })
    }

    fn read_error(&self, position: usize, meaning: ErrorMeaning) -> AttemptOutcome {
        let (node, now) = (&self.nodes[position], Instant::now());
        match meaning {
            ErrorMeaning::Node(fault) => {
                node.record_fault(fault, now);
                AttemptOutcome::Failed
            }
            ErrorMeaning::Unclear => AttemptOutcome::Failed,
            ErrorMeaning::Caller(error) => {
                node.record_success(now);
                AttemptOutcome::Answer(NodeReply::Error(error))
            }
            ErrorMeaning::NotHere(missing) => {
                node.record_success(now);
                node.capabilities().record_missing(missing, self.call.method, self.call.needs.state_block());
                AttemptOutcome::Lacking
            }
            ErrorMeaning::Limit(limit) => {
                node.record_success(now);
                limit.blocks.into_iter().for_each(|blocks| node.capabilities().narrow_log_range(blocks));
                AttemptOutcome::Limited(limit)
            }
        }
    }

    fn running(&self, position: usize) -> Option<&RunningAttempt> {
        match &self.progress.nodes[position] {
            NodeStatus::Running(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// Records that the reply took longer than the call could wait, unless it was recorded before.
    fn stop_waiting(&self, position: usize, now: Instant) {
        if let Some(attempt) = self.running(position).filter(|attempt| !attempt.is_overdue) {
            self.nodes[position].record_abandoned(self.call.class, attempt.asked_at, now);
        }
    }

    fn drop_attempt(&mut self, position: usize, status: NodeStatus, now: Instant) {
        self.stop_waiting(position, now);
        self.replies.retain(|awaited| awaited.node != position);
        self.progress.nodes[position] = status;
    }

    /// A pause of random length, so that calls that were refused together do not come back together.
    fn pause(&self) -> Duration {
        REFUSED_PAUSE + REFUSED_PAUSE * (self.rules.rng.next_u64() % 256) as u32 / 256
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

    fn win(&mut self, position: usize, reason: AskReason, reply: NodeReply) -> PoolAnswer<A> {
        match reason {
            AskReason::Hedge => _ = self.nodes[position].counts().hedges_won.fetch_add(1, Relaxed),
            AskReason::Retry(Payment::Retry | Payment::Replacement) => self.rules.budgets.give_retry_back(),
            AskReason::Retry(Payment::Free | Payment::PrepaidHedge) | AskReason::First => {}
        }
        self.drop_all();
        PoolAnswer {
            reply,
            node: Arc::clone(&self.nodes[position]),
            is_confirmed: true,
            is_absent_everywhere: false,
        }
    }

    /// Ends the call because nobody is left who could be asked.
    fn exhausted(&mut self) -> Result<PoolAnswer<A>, CallFailure> {
        let is_lacking = self.progress.is_lacking() || self.is_lacked_by_all();
        self.end(if is_lacking { CallFailure::Lacking } else { CallFailure::Unavailable })
    }

    /// Ends the call without an answer that is believed: with the fallback, the widest range that is granted, or the failure.
    fn end(&mut self, failed: CallFailure) -> Result<PoolAnswer<A>, CallFailure> {
        self.drop_all();
        let is_absent_everywhere = self.is_absent_everywhere();
        let (position, reply) = match self.progress.fallback.take() {
            Some((position, result)) => (position, NodeReply::Result(result)),
            None => {
                let limit = self.progress.widest_limit().or_else(|| self.narrower_range(failed));
                limit.map(|(position, limit)| (position, NodeReply::Limit(limit))).ok_or(failed)?
            }
        };
        let is_confirmed = matches!(reply, NodeReply::Limit(_));
        Ok(PoolAnswer { reply, node: Arc::clone(&self.nodes[position]), is_confirmed, is_absent_everywhere })
    }

    /// Ends the attempts that are still under way.
    fn drop_all(&mut self) {
        if !self.replies.is_empty() {
            let now = Instant::now();
            for awaited in std::mem::take(&mut self.replies) {
                self.stop_waiting(awaited.node, now);
            }
        }
        if std::mem::take(&mut self.progress.has_prepaid_hedge) {
            self.rules.budgets.give_hedge_back();
        }
    }

    /// The widest range of the nodes that were not asked because they search fewer blocks at once.
    fn narrower_range(&self, failed: CallFailure) -> Option<(usize, RangeLimit)> {
        if !matches!(failed, CallFailure::Unavailable | CallFailure::Lacking) {
            return None;
        }
        let ranges = self.nodes.iter().enumerate().filter_map(|(position, node)| {
            let range = node.capabilities().log_range_max();
            let is_narrower = is_member(node) && range < self.call.needs.log_blocks;
            is_narrower.then_some((position, RangeLimit { blocks: Some(range) }))
        });
        ranges.max_by_key(|(_, limit)| limit.blocks)
    }

    /// Whether no node was asked because all of this chain are known to lack the method or the state.
    fn is_lacked_by_all(&self) -> bool {
        let is_untried = |status: &NodeStatus| *status == NodeStatus::Untried;
        let members = || self.nodes.iter().filter(|node| is_member(node)).map(|node| node.capabilities());
        let (method, needs) = (self.call.method, self.call.needs);
        let block = needs.block.unwrap_or(0);
        self.progress.nodes.iter().all(is_untried)
            && members().next().is_some()
            && (members().all(|capabilities| capabilities.lacks(method))
                || needs.state && members().all(|capabilities| capabilities.lowest_state_for(method) > block))
    }

    /// Whether every node of this chain has answered with a null or an empty list.
    fn is_absent_everywhere(&self) -> bool {
        let mut nodes = self.nodes.iter().zip(&self.progress.nodes);
        nodes.all(|(node, status)| *status == NodeStatus::Empty || !is_member(node))
    }
}

fn is_member<A: Ask>(node: &Node<A>) -> bool {
    node.capabilities().membership() == Membership::Member
}

/// A caller may go before the call has ended.
impl<A: Ask, F: ResultFinding> Drop for Driver<'_, '_, A, F> {
    fn drop(&mut self) {
        self.drop_all();
    }
}

/// The effect of a reply on the call.
enum Settled {
    Answer(NodeReply),
    /// Another node may have to be asked.
    Open,
    Unchecked,
}
