//! The decisions of a call against a naive model: whatever nodes reply and when, both ask the same nodes at the same times, and
//! come to the same end.
//!
//! The model knows no timers. It keeps every instant at which something might change, and looks at each of them which of its
//! rules apply. Times are nanoseconds since the call began.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::next_action::{Action, AnotherAttempt, Ending, NodeFacts, Payment, next_action};
use super::super::progress::{AskReason, AttemptOutcome, CallProgress, NodeStatus, UsualDelays};
use super::*;
use crate::budget::REFUSED_PAUSE;
use crate::pick::{Candidate, pick};

type Nanoseconds = u64;

const MILLISECOND: Nanoseconds = 1_000_000;

/// What a node replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyKind {
    Data,
    Null,
    Guess,
    Behind,
    Fault,
    NotHere,
    GrantsBlocks(u64),
    TooManyResults,
}

/// One reply, and how long it takes. `None` for ever.
type TimedReply = (Option<Nanoseconds>, ReplyKind);

#[derive(Clone, Debug)]
struct ModelNode {
    availability: Availability,
    cost: u64,
    usual: Nanoseconds,
    silence_max: Nanoseconds,
    is_probe_due: bool,
    has_fallen_silent: bool,
    /// When it replies to another call.
    speaks_at: Option<Nanoseconds>,
    /// To the first and to the second attempt.
    replies: [TimedReply; 2],
}

#[derive(Clone, Debug)]
struct Schedule {
    nodes: Vec<ModelNode>,
    class: Class,
    may_hedge: bool,
    deadline: Nanoseconds,
    retries: u32,
    hedges: u32,
}

/// Who was asked when, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Trace {
    asked: Vec<(Nanoseconds, usize)>,
    ended_at: Nanoseconds,
    outcome: Option<ModelOutcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelOutcome {
    Data { node: usize },
    Fallback { node: usize },
    Limit(Option<u64>),
    Lacking,
    Unavailable,
    Deadline,
}

/// Budgets that never fill.
#[derive(Clone, Copy, Debug)]
struct Purse {
    retries: u32,
    hedges: u32,
}

impl Purse {
    fn retry(&mut self, kept: u32) -> bool {
        let is_paid = self.retries > kept;
        self.retries -= u32::from(is_paid);
        is_paid
    }

    fn hedge(&mut self) -> bool {
        let is_paid = self.hedges > 0 && self.retries > 0;
        self.hedges -= u32::from(is_paid);
        self.retries -= u32::from(is_paid);
        is_paid
    }
}

/// Retries that only calls may use that nobody works on.
const KEPT_FOR_RETRIES: u32 = 2;

/// Whether the last call on it failed, which has nothing to do with its cost otherwise.
fn fails_calls(node: &ModelNode) -> bool {
    node.cost.is_multiple_of(2)
}

fn candidate(node: &ModelNode, excluded: bool) -> Candidate {
    let fails_calls = fails_calls(node);
    Candidate {
        availability: node.availability,
        fails_calls,
        cost: node.cost,
        head: Some(100),
        lowest_state: 0,
        excluded,
    }
}

mod machine {
    //! The code under test, in simulated time.

    use super::*;

    struct Facts<'a> {
        schedule: &'a Schedule,
        begun: Instant,
        now: Nanoseconds,
        replied_at: &'a [Nanoseconds],
    }

    impl NodeFacts for Facts<'_> {
        fn needs(&self) -> Needs {
            quick().needs
        }

        fn candidate(&self, node: usize, _: Instant) -> Candidate {
            candidate(&self.schedule.nodes[node], false)
        }

        fn availability(&self, node: usize, _: Instant) -> Availability {
            self.schedule.nodes[node].availability
        }

        fn is_probe_due(&self, node: usize, _: Instant) -> bool {
            self.schedule.nodes[node].is_probe_due
        }

        fn is_silent_since(&self, node: usize, then: Instant) -> bool {
            let then = (then - self.begun).as_nanos() as Nanoseconds;
            let has_spoken =
                self.schedule.nodes[node].speaks_at.is_some_and(|at| then < at && at <= self.now);
            !has_spoken && self.replied_at[node] <= then
        }

        fn has_fallen_silent(&self, node: usize) -> bool {
            self.schedule.nodes[node].has_fallen_silent
        }

        fn hedge_delay(&self, node: usize) -> Duration {
            Duration::from_nanos(self.schedule.nodes[node].usual)
        }
    }

    struct Machine<'a> {
        schedule: &'a Schedule,
        begun: Instant,
        progress: CallProgress,
        purse: Purse,
        /// When the reply to each node's attempt comes.
        awaited: Vec<Option<(Nanoseconds, ReplyKind)>>,
        attempts: Vec<usize>,
        replied_at: Vec<Nanoseconds>,
        now: Nanoseconds,
        trace: Trace,
    }

    pub(super) fn run(schedule: &Schedule) -> Trace {
        let (begun, count) = (Instant::now(), schedule.nodes.len());
        let call = RpcCall { class: schedule.class, may_hedge: schedule.may_hedge, ..quick() };
        let deadline = begun + Duration::from_nanos(schedule.deadline);
        let mut machine = Machine {
            schedule,
            begun,
            progress: CallProgress::new(&call, count, deadline),
            purse: Purse { retries: schedule.retries, hedges: schedule.hedges },
            awaited: vec![None; count],
            attempts: vec![0; count],
            replied_at: vec![0; count],
            now: 0,
            trace: Trace::default(),
        };
        while machine.trace.outcome.is_none() {
            machine.step();
        }
        machine.trace.ended_at = machine.now;
        machine.trace
    }

    impl Machine<'_> {
        fn step(&mut self) {
            let now = self.begun + Duration::from_nanos(self.now);
            let Self { schedule, begun, replied_at, .. } = self;
            let facts = Facts { schedule, begun: *begun, now: self.now, replied_at };
            match next_action(&self.progress, &facts, ROUNDS_MAX, 0, now) {
                Action::AskFirst { best, probe } => {
                    let probe = probe.filter(|_| self.purse.hedge());
                    self.progress.has_prepaid_hedge = probe.is_some();
                    self.start(probe.unwrap_or(best), AskReason::First, now);
                }
                Action::Hedge { node, beside } => {
                    if std::mem::take(&mut self.progress.has_prepaid_hedge) || self.purse.hedge() {
                        self.progress.record_hedge(beside);
                        self.start(node, AskReason::Hedge, now);
                    } else {
                        self.progress.record_hedge_refused(beside, REFUSED_PAUSE, now);
                    }
                }
                Action::AskAnother(another) => self.ask_another(another, now),
                Action::ReportOverdue { node } => self.progress.record_overdue(node, now),
                Action::Abandon { node } => self.drop_attempt(node, NodeStatus::Abandoned),
                Action::BeginRound => self.progress.begin_round(REFUSED_PAUSE, now),
                Action::WaitUntil(until) => self.wait((until - self.begun).as_nanos() as Nanoseconds),
                Action::Finish(ending) => self.finish(ending),
            }
        }

        fn ask_another(&mut self, another: AnotherAttempt, now: Instant) {
            let is_paid = match another.payment {
                Payment::Free => true,
                Payment::PrepaidHedge => std::mem::take(&mut self.progress.has_prepaid_hedge),
                Payment::Retry => self.purse.retry(0),
                Payment::Replacement => self.purse.retry(KEPT_FOR_RETRIES),
            };
            if !is_paid {
                return self.progress.record_another_refused(
                    another.is_worth_waiting_for,
                    REFUSED_PAUSE,
                    now,
                );
            }
            if let Some(oldest) = another.instead_of {
                self.drop_attempt(oldest, NodeStatus::Failed);
            }
            self.progress.record_started_another(another.fallback_wait, now);
            self.start(another.node, AskReason::Retry { is_paid: true }, now);
        }

        fn start(&mut self, node: usize, reason: AskReason, now: Instant) {
            let ModelNode { usual, silence_max, replies, .. } = &self.schedule.nodes[node];
            let [hedge_delay, silence_max] = [*usual, *silence_max].map(Duration::from_nanos);
            self.progress.record_started(node, reason, UsualDelays { hedge_delay, silence_max }, now);
            let (after, kind) = replies[self.attempts[node].min(1)];
            self.attempts[node] += 1;
            self.awaited[node] = after.map(|after| (self.now + after, kind));
            self.trace.asked.push((self.now, node));
        }

        fn drop_attempt(&mut self, node: usize, status: NodeStatus) {
            self.awaited[node] = None;
            self.progress.nodes[node] = status;
        }

        /// Waits for the first reply, at most until then.
        fn wait(&mut self, until: Nanoseconds) {
            let awaited = self.awaited.iter().enumerate();
            let replies = awaited.filter_map(|(node, reply)| reply.map(|(at, kind)| (at, node, kind)));
            let first = replies.min_by_key(|(at, node, _)| (*at, *node)).filter(|(at, ..)| *at <= until);
            let Some((at, node, kind)) = first else {
                assert!(until > self.now, "it would wait for ever");
                self.now = until;
                return;
            };
            self.now = at;
            self.awaited[node] = None;
            self.replied_at[node] = at;
            let outcome = match kind {
                ReplyKind::Data => AttemptOutcome::Answer(NodeReply::Result(Bytes::from_static(b"1"))),
                ReplyKind::Null => AttemptOutcome::Doubtful(Bytes::from_static(b"null")),
                ReplyKind::Guess => AttemptOutcome::Doubtful(Bytes::from_static(b"2")),
                ReplyKind::Behind => AttemptOutcome::Behind,
                ReplyKind::Fault => AttemptOutcome::Failed,
                ReplyKind::NotHere => AttemptOutcome::Lacking,
                ReplyKind::GrantsBlocks(blocks) => {
                    AttemptOutcome::Limited(RangeLimit { blocks: Some(blocks) })
                }
                ReplyKind::TooManyResults => AttemptOutcome::Limited(RangeLimit { blocks: None }),
            };
            let now = self.begun + Duration::from_nanos(self.now);
            self.trace.outcome = self.progress.settle(node, outcome, now).map(|said| match said {
                NodeReply::Limit(limit) => ModelOutcome::Limit(limit.blocks),
                _ => ModelOutcome::Data { node },
            });
        }

        fn finish(&mut self, ending: Ending) {
            let fallback =
                self.progress.fallback.as_ref().map(|(node, _)| ModelOutcome::Fallback { node: *node });
            let limit = || self.progress.widest_limit().map(|(_, limit)| ModelOutcome::Limit(limit.blocks));
            let failed = match ending {
                Ending::TimeUp => ModelOutcome::Deadline,
                Ending::Exhausted if self.progress.is_lacking() => ModelOutcome::Lacking,
                Ending::Exhausted => ModelOutcome::Unavailable,
            };
            self.trace.outcome = Some(fallback.or_else(limit).unwrap_or(failed));
        }
    }
}

/// What the model knows of an attempt.
#[derive(Clone, Copy, Debug)]
struct Pending {
    asked_at: Nanoseconds,
    reply: Option<(Nanoseconds, ReplyKind)>,
    hedge_from: Option<Nanoseconds>,
    overdue_if_silent_from: Nanoseconds,
    overdue_from: Nanoseconds,
    is_overdue: bool,
}

struct Model<'a> {
    schedule: &'a Schedule,
    now: Nanoseconds,
    /// Every instant at which something might change.
    instants: BTreeSet<Nanoseconds>,
    pending: Vec<Option<Pending>>,
    /// What each node has said last.
    said: Vec<Option<ReplyKind>>,
    replied_at: Vec<Nanoseconds>,
    is_used_up: Vec<bool>,
    attempts: Vec<usize>,
    purse: Purse,
    prepaid: bool,
    fallback: Option<usize>,
    end: Nanoseconds,
    ask_from: Option<Nanoseconds>,
    hopeless_from: Option<Nanoseconds>,
    rounds: u32,
    free: bool,
    trace: Trace,
}

fn run_model(schedule: &Schedule) -> Trace {
    let count = schedule.nodes.len();
    let mut model = Model {
        schedule,
        now: 0,
        instants: BTreeSet::from([0, schedule.deadline]),
        pending: vec![None; count],
        said: vec![None; count],
        replied_at: vec![0; count],
        is_used_up: vec![false; count],
        attempts: vec![0; count],
        purse: Purse { retries: schedule.retries, hedges: schedule.hedges },
        prepaid: false,
        fallback: None,
        end: schedule.deadline,
        ask_from: None,
        hopeless_from: None,
        rounds: 0,
        free: false,
        trace: Trace::default(),
    };
    model.instants.extend(schedule.nodes.iter().filter_map(|node| node.speaks_at));
    while let Some(now) = model.instants.pop_first() {
        model.now = now;
        model.look();
        if model.trace.outcome.is_some() {
            break;
        }
    }
    model.trace.ended_at = model.now;
    model.trace
}

impl Model<'_> {
    /// Everything that happens at this instant: replies in the order of the nodes, and after each what follows from it.
    fn look(&mut self) {
        loop {
            let due = (0..self.pending.len()).find(|&node| {
                let reply = self.pending[node].and_then(|pending| pending.reply);
                reply.is_some_and(|(at, _)| at == self.now)
            });
            if let Some(node) = due {
                self.hear(node);
            }
            while self.trace.outcome.is_none() && self.apply_one_rule() {}
            if due.is_none() || self.trace.outcome.is_some() {
                return;
            }
        }
    }

    fn hear(&mut self, node: usize) {
        let Some((_, kind)) = self.pending[node].take().and_then(|pending| pending.reply) else { return };
        self.said[node] = Some(kind);
        self.replied_at[node] = self.now;
        self.ask_from = Some(self.now);
        match kind {
            ReplyKind::Data => self.trace.outcome = Some(ModelOutcome::Data { node }),
            ReplyKind::Null if self.fallback.is_none() => self.set_fallback(node),
            ReplyKind::Guess => match self.fallback {
                None => self.set_fallback(node),
                Some(kept) if self.said[kept] == Some(ReplyKind::Null) => self.fallback = Some(node),
                Some(_) => {}
            },
            ReplyKind::Behind => self.free = true,
            ReplyKind::TooManyResults => {
                let opinions = self.said.iter().filter(|said| **said == Some(ReplyKind::TooManyResults));
                if opinions.count() == 2 {
                    self.trace.outcome = self.limit();
                }
            }
            ReplyKind::Null | ReplyKind::Fault | ReplyKind::NotHere | ReplyKind::GrantsBlocks(_) => {}
        }
    }

    fn set_fallback(&mut self, node: usize) {
        self.fallback = Some(node);
        self.end = self.now + (self.schedule.deadline - self.now) / 2;
        self.instants.insert(self.end);
    }

    fn limit(&self) -> Option<ModelOutcome> {
        let limits = self.said.iter().filter_map(|said| match said {
            Some(ReplyKind::GrantsBlocks(blocks)) => Some(Some(*blocks)),
            Some(ReplyKind::TooManyResults) => Some(None),
            _ => None,
        });
        limits.max().map(ModelOutcome::Limit)
    }

    /// Whether a rule applied.
    fn apply_one_rule(&mut self) -> bool {
        if self.now >= self.end {
            self.finish(ModelOutcome::Deadline);
            return true;
        }
        if self.rounds == 0 {
            self.begin();
            return true;
        }
        self.blame_overdue()
            || self.leave_silent()
            || self.ask_another()
            || self.hedge()
            || self.is_hopeless()
    }

    fn finish(&mut self, failed: ModelOutcome) {
        let fallback = self.fallback.map(|node| ModelOutcome::Fallback { node });
        self.trace.outcome = fallback.or_else(|| self.limit()).or(Some(failed));
    }

    fn begin(&mut self) {
        let Some(best) = self.best(Availability::Down) else { return self.finish(ModelOutcome::Unavailable) };
        self.rounds = 1;
        let nodes = &self.schedule.nodes;
        let may_probe = nodes[best].availability == Availability::Up
            && self.schedule.may_hedge
            && self.schedule.class == Class::Quick;
        let probe = nodes.iter().position(|node| node.availability != Availability::Up && node.is_probe_due);
        let probe = probe.filter(|_| may_probe && self.purse.hedge());
        self.prepaid = probe.is_some();
        self.ask(probe.unwrap_or(best));
    }

    fn blame_overdue(&mut self) -> bool {
        for node in 0..self.pending.len() {
            let Some(pending) = self.pending[node].filter(|pending| !pending.is_overdue) else { continue };
            let is_late = self.now >= pending.overdue_from;
            if is_late || self.now >= pending.overdue_if_silent_from && self.is_silent(node, pending.asked_at)
            {
                self.pending[node] = Some(Pending { is_overdue: true, hedge_from: None, ..pending });
                self.ask_from = Some(self.now);
                return true;
            }
        }
        false
    }

    fn is_silent(&self, node: usize, since: Nanoseconds) -> bool {
        let others = self.schedule.nodes[node].speaks_at.filter(|at| *at <= self.now).unwrap_or(0);
        self.replied_at[node].max(others) <= since
    }

    fn leave_silent(&mut self) -> bool {
        for node in 0..self.pending.len() {
            let Some(pending) = self.pending[node] else { continue };
            if self.fallback.is_some() && pending.is_overdue && self.is_silent(node, pending.asked_at) {
                self.pending[node] = None;
                return true;
            }
        }
        false
    }

    fn working(&self) -> usize {
        self.pending.iter().flatten().count()
    }

    fn ask_another(&mut self) -> bool {
        if self.ask_from.is_none_or(|from| from > self.now) {
            return false;
        }
        let is_alone = self.working() == 0;
        let are_overdue = self.pending.iter().flatten().all(|pending| pending.is_overdue);
        let Some(node) = self.best(if are_overdue { Availability::Down } else { Availability::Doubted })
        else {
            return is_alone && self.begin_round();
        };
        let seems_down =
            matches!(self.schedule.nodes[node].availability, Availability::Resting | Availability::Down);
        let has_something = self.fallback.is_some() || self.limit().is_some();
        let is_paid = self.free
            || has_something && !seems_down
            || std::mem::take(&mut self.prepaid)
            || self.purse.retry(if is_alone && !has_something { 0 } else { KEPT_FOR_RETRIES });
        if is_paid {
            self.make_room();
            self.shorten_fallback(node);
            self.ask_from = None;
            self.ask(node);
        } else {
            self.wait_for_budget(seems_down && fails_calls(&self.schedule.nodes[node]), has_something);
        }
        true
    }

    fn begin_round(&mut self) -> bool {
        let is_worth_it =
            |said: &Option<ReplyKind>| matches!(said, Some(ReplyKind::Fault | ReplyKind::Behind));
        if self.rounds > 1 || !self.said.iter().any(is_worth_it) {
            return false;
        }
        self.rounds = 2;
        for node in 0..self.said.len() {
            if is_worth_it(&self.said[node]) {
                self.said[node] = None;
                self.is_used_up[node] = false;
            }
        }
        self.ask_after_pause();
        true
    }

    fn ask_after_pause(&mut self) {
        self.ask_from = Some(self.now + 20 * MILLISECOND);
        self.instants.insert(self.now + 20 * MILLISECOND);
    }

    fn wait_for_budget(&mut self, is_useless: bool, has_something: bool) {
        self.ask_from = None;
        if is_useless && !has_something && self.hopeless_from.is_none() {
            self.hopeless_from = Some(self.now + 100 * MILLISECOND);
        }
        let is_hopeless = is_useless && self.hopeless_from.is_some_and(|from| self.now >= from);
        if !has_something && !is_hopeless {
            self.ask_after_pause();
        }
    }

    fn make_room(&mut self) {
        if self.working() <= if self.schedule.may_hedge { 2 } else { 0 } {
            return;
        }
        let working = (0..self.pending.len()).filter_map(|node| Some((self.pending[node]?.asked_at, node)));
        if let Some((_, oldest)) = working.min() {
            self.pending[oldest] = None;
            self.said[oldest] = Some(ReplyKind::Fault);
        }
    }

    fn shorten_fallback(&mut self, node: usize) {
        let ModelNode { availability, usual, has_fallen_silent, .. } = self.schedule.nodes[node];
        let wait = match availability {
            Availability::Up => return,
            Availability::Doubted if !has_fallen_silent => usual.max(500 * MILLISECOND),
            _ => usual.min(100 * MILLISECOND),
        };
        if self.fallback.is_some() {
            self.end = self.end.min(self.now + wait);
            self.instants.insert(self.end);
        }
    }

    fn hedge(&mut self) -> bool {
        let slow = (0..self.pending.len()).find(|&node| {
            let from = self.pending[node].and_then(|pending| pending.hedge_from);
            from.is_some_and(|from| from <= self.now)
        });
        let Some(slow) = slow.filter(|_| self.working() < 3) else { return false };
        let Some(node) = self.best(Availability::Doubted) else { return false };
        let is_paid = std::mem::take(&mut self.prepaid) || self.purse.hedge();
        let again_from = (!is_paid).then_some(self.now + 20 * MILLISECOND);
        if let Some(pending) = &mut self.pending[slow] {
            pending.hedge_from = again_from;
        }
        self.instants.extend(again_from);
        if is_paid {
            self.ask(node);
        }
        true
    }

    fn is_hopeless(&mut self) -> bool {
        let may_still_ask = self.ask_from.is_some_and(|from| from > self.now);
        if self.working() > 0 || may_still_ask {
            return false;
        }
        let has_failed =
            self.said.iter().any(|said| matches!(said, Some(ReplyKind::Fault | ReplyKind::Behind)));
        let is_lacking = self.said.contains(&Some(ReplyKind::NotHere)) && !has_failed;
        self.finish(if is_lacking { ModelOutcome::Lacking } else { ModelOutcome::Unavailable });
        true
    }

    fn best(&self, worst: Availability) -> Option<usize> {
        let nodes = self.schedule.nodes.iter().zip(&self.is_used_up);
        let candidates: Vec<_> = nodes.map(|(node, is_used_up)| candidate(node, *is_used_up)).collect();
        pick(&candidates, quick().needs, worst, 0)
    }

    fn ask(&mut self, node: usize) {
        let ModelNode { usual, silence_max, replies, .. } = &self.schedule.nodes[node];
        let half = (self.end - self.now) / 2;
        let patience = (8 * usual).max(250 * MILLISECOND);
        let overdue_after = match self.schedule.class {
            _ if !self.schedule.may_hedge => half,
            Class::Quick => patience.min((500 * MILLISECOND).max(2 * usual)).min(half),
            _ => patience.min(half),
        };
        let looks_for_silence =
            self.schedule.may_hedge && matches!(self.schedule.class, Class::Evm | Class::Bulk);
        let silent_after =
            if looks_for_silence { (*silence_max).min(250 * MILLISECOND) } else { overdue_after };
        let (after, kind) = replies[self.attempts[node].min(1)];
        let pending = Pending {
            asked_at: self.now,
            reply: after.map(|after| (self.now + after, kind)),
            hedge_from: self.schedule.may_hedge.then_some(self.now + usual),
            overdue_if_silent_from: self.now + silent_after.min(overdue_after),
            overdue_from: self.now + overdue_after,
            is_overdue: false,
        };
        self.instants.extend([pending.overdue_if_silent_from, pending.overdue_from]);
        self.instants.extend(pending.hedge_from);
        self.instants.extend(pending.reply.map(|(at, _)| at));
        self.pending[node] = Some(pending);
        self.is_used_up[node] = true;
        self.attempts[node] += 1;
        self.trace.asked.push((self.now, node));
    }
}

fn any_reply() -> impl Strategy<Value = TimedReply> {
    let kind = prop_oneof![
        2 => Just(ReplyKind::Data),
        2 => Just(ReplyKind::Null),
        1 => Just(ReplyKind::Guess),
        1 => Just(ReplyKind::Behind),
        3 => Just(ReplyKind::Fault),
        1 => Just(ReplyKind::NotHere),
        1 => (1_u64..3).prop_map(ReplyKind::GrantsBlocks),
        1 => Just(ReplyKind::TooManyResults),
    ];
    let after = prop_oneof![
        2 => (1_u64..40).prop_map(Some),
        2 => (1_u64..3_000).prop_map(Some),
        1 => Just(None),
    ];
    (after, kind).prop_map(|(after, kind)| (after.map(|after| after * MILLISECOND), kind))
}

fn any_node() -> impl Strategy<Value = ModelNode> {
    let availability = prop_oneof![
        4 => Just(Availability::Up),
        1 => Just(Availability::Doubted),
        1 => Just(Availability::Resting),
        1 => Just(Availability::Down),
    ];
    (
        (availability, 0_u64..4, 5_u64..200, 100_u64..400),
        (any::<bool>(), any::<bool>(), prop::option::of(1_u64..2_000)),
        [any_reply(), any_reply()],
    )
        .prop_map(
            |(
                (availability, cost, usual, silence_max),
                (is_probe_due, has_fallen_silent, speaks_at),
                replies,
            )| {
                ModelNode {
                    availability,
                    cost,
                    usual: usual * MILLISECOND,
                    silence_max: silence_max * MILLISECOND,
                    is_probe_due,
                    has_fallen_silent,
                    speaks_at: speaks_at.map(|at| at * MILLISECOND),
                    replies,
                }
            },
        )
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    let nodes = prop::collection::vec(any_node(), 0..6);
    let class = prop::sample::select(Class::ALL.to_vec());
    (nodes, class, prop::bool::weighted(0.8), 1_u64..4_000, 0_u32..8, 0_u32..4).prop_map(
        |(nodes, class, may_hedge, deadline, retries, hedges)| Schedule {
            nodes,
            class,
            may_hedge,
            deadline: deadline * MILLISECOND,
            retries,
            hedges,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn every_schedule_of_replies_comes_to_what_the_naive_model_says(schedule in any_schedule()) {
        prop_assert_eq!(machine::run(&schedule), run_model(&schedule));
    }
}
