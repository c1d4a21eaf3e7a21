//! Carries out what [`next_action`] decides: asks nodes, pays from the budgets, and takes note of what replies say about nodes.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::next_action::{Action, AnotherAttempt, Ending, NodeFacts, Payment, next_action};
use super::progress::{AskReason, AttemptOutcome, CallProgress, NodeStatus, RunningAttempt, UsualDelays};
use super::{Answered, ErrorMeaning, Failed, Judge, Judgement, Judging, RangeLimit, Rules, Said};
use crate::budget::REFUSED_PAUSE;
use crate::call::{Ask, Call, Fault, Needs, Reply};
use crate::health::Grade;
use crate::node::{Node, Standing};
use crate::pick::Candidate;

type Replying<'a> = Pin<Box<dyn Future<Output = Result<Reply, Fault>> + Send + 'a>>;

pub(super) struct Driver<'a, 'j, A> {
    nodes: &'a [Arc<Node<A>>],
    call: &'a Call,
    judge: Judge<'a, 'j, A>,
    rules: &'a Rules,
    progress: CallProgress,
    /// The replies that are awaited, each with the position of its node.
    replies: Vec<(usize, Replying<'a>)>,
}

/// The nodes of a call, as its decisions see them.
struct CallNodes<'a, A> {
    nodes: &'a [Arc<Node<A>>],
    call: &'a Call,
}

impl<A: Ask> NodeFacts for CallNodes<'_, A> {
    fn needs(&self) -> Needs {
        self.call.needs
    }

    fn candidate(&self, node: usize, now: Instant) -> Candidate {
        self.nodes[node].candidate(self.call, now)
    }

    fn grade(&self, node: usize, now: Instant) -> Grade {
        self.nodes[node].grade(now)
    }

    fn is_probe_due(&self, node: usize, now: Instant) -> bool {
        self.nodes[node].health().probe_due(now)
    }

    fn is_silent_since(&self, node: usize, then: Instant) -> bool {
        self.nodes[node].silent_since(then)
    }

    fn has_fallen_silent(&self, node: usize) -> bool {
        self.nodes[node].has_fallen_silent()
    }

    fn hedge_delay(&self, node: usize) -> Duration {
        self.nodes[node].hedge_delay(self.call.class)
    }
}

impl<'a, 'j, A: Ask> Driver<'a, 'j, A> {
    pub(super) fn new(
        nodes: &'a [Arc<Node<A>>],
        call: &'a Call,
        judge: Judge<'a, 'j, A>,
        rules: &'a Rules,
        deadline: Instant,
    ) -> Self {
        let progress = CallProgress::new(call, nodes.len(), deadline);
        Self { nodes, call, judge, rules, progress, replies: Vec::with_capacity(1) }
    }

    pub(super) async fn run(mut self) -> Result<Answered<A>, Failed> {
        let facts = CallNodes { nodes: self.nodes, call: self.call };
        loop {
            let (now, random) = (Instant::now(), self.rules.rng.next_u64());
            match next_action(&self.progress, &facts, self.rules.rounds_max, random, now) {
                Action::AskFirst { best, probe } => self.ask_first(best, probe, now),
                Action::Hedge { node, beside } => self.hedge(node, beside, now),
                Action::AskAnother(another) => self.ask_another(another, now),
                Action::ReportOverdue { node } => {
                    self.stop_waiting(node, now);
                    self.progress.overdue(node, now);
                }
                Action::Abandon { node } => self.drop_attempt(node, NodeStatus::Abandoned, now),
                Action::BeginRound => self.progress.begin_round(self.pause(), now),
                Action::WaitUntil(until) => {
                    let Some((node, reply)) = self.reply_before(until).await else { continue };
                    match self.settle(node, reply).await {
                        Settled::Answer(reason, said) => return Ok(self.win(node, reason, said)),
                        Settled::Open => {}
                        Settled::Unchecked => return self.end(Failed::Unchecked),
                    }
                }
                Action::Finish(Ending::TimeUp) => return self.end(Failed::Deadline),
                Action::Finish(Ending::Exhausted) => return self.exhausted(),
            }
        }
    }

    fn ask_first(&mut self, best: usize, probe: Option<usize>, now: Instant) {
        let probe = probe.filter(|_| self.rules.budgets.may_hedge(false, now));
        self.progress.has_prepaid_hedge = probe.is_some();
        self.start(probe.unwrap_or(best), AskReason::First, now);
    }

    fn hedge(&mut self, node: usize, beside: usize, now: Instant) {
        let is_paid = std::mem::take(&mut self.progress.has_prepaid_hedge) || {
            let asked_at = self.running(beside).map_or(now, |attempt| attempt.asked_at);
            self.rules.budgets.may_hedge(self.nodes[beside].silent_since(asked_at), now)
        };
        if is_paid {
            self.progress.hedged(beside);
            self.start(node, AskReason::Hedge, now);
        } else {
            self.progress.hedge_refused(beside, REFUSED_PAUSE, now);
        }
    }

    fn ask_another(&mut self, another: AnotherAttempt, now: Instant) {
        let budgets = &self.rules.budgets;
        let is_paid = match another.payment {
            Payment::Free => true,
            Payment::PrepaidHedge => std::mem::take(&mut self.progress.has_prepaid_hedge),
            Payment::Retry => budgets.may_retry(now),
            Payment::Replacement => budgets.may_replace(now),
        };
        if !is_paid {
            return self.progress.another_refused(another.is_worth_waiting_for, self.pause(), now);
        }
        if let Some(oldest) = another.instead_of {
            self.drop_attempt(oldest, NodeStatus::Failed, now);
        }
        let is_paid = matches!(another.payment, Payment::Retry | Payment::Replacement);
        self.progress.started_another(another.fallback_wait, now);
        self.start(another.node, AskReason::Retry { is_paid }, now);
    }

    fn start(&mut self, position: usize, reason: AskReason, now: Instant) {
        let node: &'a Node<A> = &self.nodes[position];
        match reason {
            AskReason::First => {}
            AskReason::Retry { .. } => _ = node.counts().retries.fetch_add(1, Relaxed),
            AskReason::Hedge => _ = node.counts().hedges.fetch_add(1, Relaxed),
        }
        // Whatever a node that is not well says now is as good as a probe.
        node.health().begin_probe(now);
        let class = self.call.class;
        let usual =
            UsualDelays { hedge_delay: node.hedge_delay(class), silence_max: node.silence_max(class) };
        self.progress.started(position, reason, usual, now);
        self.replies.push((position, Box::pin(node.ask(self.call, self.progress.deadline()))));
    }

    async fn reply_before(&mut self, until: Instant) -> Option<(usize, Result<Reply, Fault>)> {
        let mut time = pin!(sleep_until(until));
        let (place, reply) = poll_fn(|context| {
            for (place, (_, reply)) in self.replies.iter_mut().enumerate() {
                if let Poll::Ready(reply) = reply.as_mut().poll(context) {
                    return Poll::Ready(Some((place, reply)));
                }
            }
            time.as_mut().poll(context).map(|()| None)
        })
        .await?;
        Some((self.replies.swap_remove(place).0, reply))
    }

    /// What follows from a reply: for the node's health, for what is known of it, and for the call.
    async fn settle(&mut self, position: usize, reply: Result<Reply, Fault>) -> Settled {
        let reason = self.running(position).map_or(AskReason::First, |attempt| attempt.reason);
        let outcome = match reply {
            Ok(Reply::Result(result)) => match self.judge_result(position, result).await {
                Some(outcome) => outcome,
                None => return Settled::Unchecked,
            },
            Ok(Reply::Error(error)) => self.read_error(position, (self.rules.read)(&error, self.call)),
            // The node has taken note of it.
            Err(_) => AttemptOutcome::Failed,
        };
        match self.progress.settle(position, outcome, Instant::now()) {
            Some(said) => Settled::Answer(reason, said),
            None => Settled::Open,
        }
    }

    /// What a result is worth; `None` if it could not be checked.
    async fn judge_result(&mut self, position: usize, result: Bytes) -> Option<AttemptOutcome> {
        let nodes = self.nodes;
        let node = &nodes[position];
        let judgement = match (self.judge)(node, &result) {
            Judging::Done(judgement) => judgement,
            Judging::Elsewhere(work) => timeout_at(self.progress.ends_at(), work).await.ok()?,
        };
        let now = Instant::now();
        Some(match judgement {
            Judgement::Believed => {
                node.good(now);
                AttemptOutcome::Answer(Said::Result(result))
            }
            Judgement::Doubtful => {
                node.good(now);
                AttemptOutcome::Doubtful(result)
            }
            Judgement::Late => {
                node.good(now);
                AttemptOutcome::Behind
            }
            Judgement::Wrong(reason) => {
                tracing::warn!(
                    node = node.name(),
                    method = self.call.method,
                    reason,
                    "a node's answer is wrong"
                );
                node.bad(Fault::Wrong, now);
                AttemptOutcome::Failed
            }
            Judgement::Unproven => AttemptOutcome::Failed,
            Judgement::Unchecked => return None,
        })
    }

    fn read_error(&self, position: usize, meaning: ErrorMeaning) -> AttemptOutcome {
        let (node, now) = (&self.nodes[position], Instant::now());
        match meaning {
            ErrorMeaning::Node(fault) => {
                node.bad(fault, now);
                AttemptOutcome::Failed
            }
            ErrorMeaning::Unclear => AttemptOutcome::Failed,
            ErrorMeaning::Caller(error) => {
                node.good(now);
                AttemptOutcome::Answer(Said::Error(error))
            }
            ErrorMeaning::NotHere(lack) => {
                node.good(now);
                node.known().learn(lack, self.call.method, self.call.needs.block);
                AttemptOutcome::Lacking
            }
            ErrorMeaning::Limit(limit) => {
                node.good(now);
                limit.blocks.into_iter().for_each(|blocks| node.known().narrow_log_range(blocks));
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

    /// Tells the node that its reply took longer than the call could wait, unless it was told before.
    fn stop_waiting(&self, position: usize, now: Instant) {
        if let Some(attempt) = self.running(position).filter(|attempt| !attempt.is_overdue) {
            self.nodes[position].given_up(self.call.class, attempt.asked_at, now);
        }
    }

    fn drop_attempt(&mut self, position: usize, status: NodeStatus, now: Instant) {
        self.stop_waiting(position, now);
        self.replies.retain(|(running, _)| *running != position);
        self.progress.nodes[position] = status;
    }

    /// A pause that differs from call to call, so that calls that were refused together do not come back together.
    fn pause(&self) -> Duration {
        REFUSED_PAUSE + REFUSED_PAUSE * (self.rules.rng.next_u64() % 256) as u32 / 256
    }

    fn win(mut self, position: usize, reason: AskReason, said: Said) -> Answered<A> {
        match reason {
            AskReason::Hedge => _ = self.nodes[position].counts().hedges_won.fetch_add(1, Relaxed),
            // Only retries in vain are a storm, and another call may need this one.
            AskReason::Retry { is_paid: true } => self.rules.budgets.give_retry_back(),
            AskReason::Retry { is_paid: false } | AskReason::First => {}
        }
        self.drop_all();
        Answered { said, node: Arc::clone(&self.nodes[position]), sure: true, nowhere: false }
    }

    /// Nobody is left who could be asked.
    fn exhausted(self) -> Result<Answered<A>, Failed> {
        let is_lacking = self.progress.is_lacking() || self.is_lacked_by_all();
        self.end(if is_lacking { Failed::Lacking } else { Failed::Unavailable })
    }

    /// No answer is believed: the fallback, the widest range that is granted, or the reason why there is nothing.
    fn end(mut self, failed: Failed) -> Result<Answered<A>, Failed> {
        self.drop_all();
        let nowhere = self.is_nowhere();
        let (position, said) = match self.progress.fallback.take() {
            Some((position, result)) => (position, Said::Result(result)),
            None => {
                let limit = self.progress.widest_limit().or_else(|| self.narrower_range(failed));
                limit.map(|(position, limit)| (position, Said::Limit(limit))).ok_or(failed)?
            }
        };
        let sure = matches!(said, Said::Limit(_));
        Ok(Answered { said, node: Arc::clone(&self.nodes[position]), sure, nowhere })
    }

    /// Ends the attempts that are still under way.
    fn drop_all(&mut self) {
        if !self.replies.is_empty() {
            let now = Instant::now();
            for (position, _) in std::mem::take(&mut self.replies) {
                self.stop_waiting(position, now);
            }
        }
        if self.progress.has_prepaid_hedge {
            self.rules.budgets.give_hedge_back();
        }
    }

    /// Nodes that were not asked because they search fewer blocks at once, when nobody else is left: the widest range of those.
    fn narrower_range(&self, failed: Failed) -> Option<(usize, RangeLimit)> {
        if !matches!(failed, Failed::Unavailable | Failed::Lacking) {
            return None;
        }
        let ranges = self.nodes.iter().enumerate().filter_map(|(position, node)| {
            let range = node.known().log_range();
            let is_narrower = is_member(node) && range < self.call.needs.log_blocks;
            is_narrower.then_some((position, RangeLimit { blocks: Some(range) }))
        });
        ranges.max_by_key(|(_, limit)| limit.blocks)
    }

    /// Whether no node was asked because all of this chain are known to lack the method or the state.
    fn is_lacked_by_all(&self) -> bool {
        let is_untried = |status: &NodeStatus| *status == NodeStatus::Untried;
        let members = || self.nodes.iter().filter(|node| is_member(node)).map(|node| node.known());
        let (method, needs) = (self.call.method, self.call.needs);
        let block = needs.block.unwrap_or(0);
        self.progress.nodes.iter().all(is_untried)
            && members().next().is_some()
            && (members().all(|known| known.lacks(method))
                || needs.state && members().all(|known| known.lowest_state_for(method) > block))
    }

    /// Whether every node of this chain has answered with a null or an empty list.
    fn is_nowhere(&self) -> bool {
        let mut nodes = self.nodes.iter().zip(&self.progress.nodes);
        nodes.all(|(node, status)| *status == NodeStatus::Empty || !is_member(node))
    }
}

fn is_member<A: Ask>(node: &Node<A>) -> bool {
    node.known().standing() == Standing::Member
}

/// What a reply came to.
enum Settled {
    Answer(AskReason, Said),
    /// Another node may have to be asked.
    Open,
    Unchecked,
}
