//! The attempts of one call that are under way.

mod another; // when to start one more

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use super::{Answered, Failed, RangeLimit, Rules, Said};
use crate::call::{Ask, Call, Class, Fault, Reply};
use crate::health::Grade;
use crate::node::{Lack, Node, Standing};
use crate::pick::{Candidate, pick};

/// The most nodes of a pool that are ever asked: which were tried is one word.
pub const NODES_MAX: usize = 128;
/// How often all nodes of a pool are tried. The second time is for those that failed, which may have been a moment's trouble;
/// with a single node there is nobody else to ask.
pub(crate) const ROUNDS_MAX: u32 = 2;
/// Nodes that must find the results of a log query too many before the caller is told so.
const OPINIONS: u32 = 2;
/// A call is overdue after so many times the usual delay,
const OVERDUE_FACTOR: u32 = 8;
/// but not before this,
const OVERDUE_MIN: Duration = Duration::from_millis(250);
/// (unless it is more than a look-up and the node has said nothing to anyone for some times what is usual, and at most for this: log
/// queries apart, it may have stopped),
const SILENT_MAX: Duration = OVERDUE_MIN;
/// nor after more than this if it is a look-up, which seldom takes as long (and then twice the usual delay is granted),
const OVERDUE_MAX: Duration = Duration::from_millis(500);
/// and at the latest after this part of the time that is left, so that another node has as much.
const OVERDUE_PART: u32 = 2;

/// What happens next.
pub(super) enum Event {
    Replied(By, Result<Reply, Fault>),
    /// This runner takes longer than is usual.
    Slow(usize),
    /// This runner takes much longer.
    Overdue(usize),
    BudgetMayBeBack,
    Deadline,
}

/// Who replied.
#[derive(Clone, Copy)]
pub(super) struct By {
    position: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    First,
    /// The retry budget paid for it, or it was free.
    Retry {
        paid: bool,
    },
    Hedge,
}

type Replying<'a> = Pin<Box<dyn Future<Output = Result<Reply, Fault>> + Send + 'a>>;

/// One attempt under way.
struct Runner<'a> {
    by: By,
    reply: Replying<'a>,
    asked_at: Instant,
    slow_at: Option<Instant>,
    /// When it is looked whether the node has fallen silent, or the attempt is overdue whatever the node says to others.
    overdue_at: Option<Instant>,
    overdue_anyway_at: Instant,
}

pub(super) struct Race<'a, A> {
    nodes: &'a [Arc<Node<A>>],
    pub(super) call: &'a Call,
    pub(super) rules: &'a Rules,
    deadline: Instant,
    runners: Vec<Runner<'a>>,
    fallback: Option<Answered<A>>,
    /// What nodes grant that find the range of a log query too wide, or its results too many.
    limit: Option<Limited>,
    /// When to ask the budget again that refused an attempt which a node could take.
    budget_at: Option<Instant>,
    /// When to give up, if by then all who are left still seem to be down.
    hopeless_at: Option<Instant>,
    so_far: SoFar,
}

/// The widest range that a node has granted, and how many nodes refused for another reason than the range.
#[derive(Clone, Copy)]
struct Limited {
    position: usize,
    limit: RangeLimit,
    unspecific: u32,
}

/// What was tried, and what came of it. Nodes are bits.
#[derive(Default)]
struct SoFar {
    attempts: u32,
    rounds: u32,
    tried: u128,
    failed: u128,
    /// Those that had a null or an empty list.
    nothing: u128,
    blame: bool,
    lack: Option<Lack>,
    /// Someone had nothing where there is something.
    late: bool,
    /// The first attempt is a probe, and its hedge is paid for.
    hedge_paid: bool,
}

impl<'a, A: Ask> Race<'a, A> {
    pub(super) fn new(
        nodes: &'a [Arc<Node<A>>],
        call: &'a Call,
        rules: &'a Rules,
        deadline: Instant,
    ) -> Self {
        let (runners, so_far) = (Vec::with_capacity(1), SoFar { rounds: 1, ..SoFar::default() });
        Self {
            nodes,
            call,
            rules,
            deadline,
            runners,
            fallback: None,
            limit: None,
            budget_at: None,
            hopeless_at: None,
            so_far,
        }
    }

    /// The first attempt: the best node, whatever its health, or now and then one that wants probing.
    pub(super) fn begin(&mut self, now: Instant) {
        self.rules.budgets.deposit(now);
        let candidates = self.candidates(now);
        let Some(best) = pick(&candidates, self.call.needs, Grade::Down, self.rules.dice.roll()) else {
            return;
        };
        let first = self.due_for_probe(&candidates, candidates[best].grade, now).unwrap_or(best);
        self.start(first, Kind::First, now);
    }

    /// A node that is due for a probe, if there is a better one that can step in. A probe gambles with the caller's
    /// time, so the hedge that saves it is paid for beforehand.
    fn due_for_probe(&mut self, candidates: &[Candidate], best: Grade, now: Instant) -> Option<usize> {
        if best != Grade::Up || !self.call.may_hedge || self.call.class != Class::Quick {
            return None;
        }
        let position = candidates.iter().zip(self.nodes).position(|(candidate, node)| {
            candidate.grade > best && candidate.can_answer(self.call.needs) && node.health().probe_due(now)
        })?;
        self.so_far.hedge_paid = self.rules.budgets.may_hedge(false, now);
        self.so_far.hedge_paid.then_some(position)
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether anything can still come of it.
    pub(super) fn is_on(&self) -> bool {
        !self.runners.is_empty() || self.budget_at.is_some()
    }

    /// Waits for the first reply, or for the time to do something about there being none.
    pub(super) async fn next(&mut self) -> Event {
        let mut time = pin!(sleep_until(self.wake_at()));
        let replied = poll_fn(|context| {
            for position in 0..self.runners.len() {
                if let Poll::Ready(reply) = self.runners[position].reply.as_mut().poll(context) {
                    return Poll::Ready(Some((position, reply)));
                }
            }
            time.as_mut().poll(context).map(|()| None)
        });
        match replied.await {
            Some((position, reply)) => Event::Replied(self.runners.swap_remove(position).by, reply),
            None => self.due(Instant::now()),
        }
    }

    fn wake_at(&self) -> Instant {
        let runners = self.runners.iter().flat_map(|runner| [runner.slow_at, runner.overdue_at]);
        runners.flatten().chain(self.budget_at).fold(self.deadline, Instant::min)
    }

    fn due(&mut self, now: Instant) -> Event {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if now >= self.deadline {
            Event::Deadline
        } else if let Some(runner) = self.runners.iter().position(|runner| is_due(runner.overdue_at)) {
            Event::Overdue(runner)
        } else if let Some(runner) = self.runners.iter().position(|runner| is_due(runner.slow_at)) {
            Event::Slow(runner)
        } else {
            self.budget_at = None;
            Event::BudgetMayBeBack
        }
    }

    fn start(&mut self, position: usize, kind: Kind, now: Instant) {
        let node: &'a Node<A> = &self.nodes[position];
        self.so_far.attempts += 1;
        self.so_far.tried |= 1 << position;
        match kind {
            Kind::First => {}
            Kind::Retry { .. } => _ = node.counts().retries.fetch_add(1, Relaxed),
            Kind::Hedge => _ = node.counts().hedges.fetch_add(1, Relaxed),
        }
        // Whatever a node that is not well says now is as good as a probe.
        node.health().begin_probe(now);
        let delay = node.hedge_delay(self.call.class);
        let patience = self.overdue_after(delay, now);
        let first_look = match self.call.class {
            Class::Evm | Class::Bulk if self.call.may_hedge => {
                patience.min(node.silence_max(self.call.class).min(SILENT_MAX))
            }
            _ => patience,
        };
        self.runners.push(Runner {
            by: By { position, kind },
            reply: Box::pin(node.ask(self.call, self.deadline)),
            asked_at: now,
            slow_at: self.call.may_hedge.then(|| now + delay),
            overdue_at: Some(now + first_look),
            overdue_anyway_at: now + patience,
        });
    }

    /// After which time an attempt is overdue on a node that is usually back after `delay`.
    fn overdue_after(&self, delay: Duration, now: Instant) -> Duration {
        let left = self.deadline.saturating_duration_since(now) / OVERDUE_PART;
        let patience = (delay * OVERDUE_FACTOR).max(OVERDUE_MIN);
        match self.call.class {
            _ if !self.call.may_hedge => left,
            Class::Quick => patience.min(OVERDUE_MAX.max(2 * delay)).min(left),
            _ => patience.min(left),
        }
    }

    fn choose(&self, worst: Grade, now: Instant) -> Option<usize> {
        pick(&self.candidates(now), self.call.needs, worst, self.rules.dice.roll())
    }

    fn candidates(&self, now: Instant) -> Vec<Candidate> {
        let candidate = |(position, node): (usize, &Arc<Node<A>>)| {
            let candidate = node.candidate(self.call, now);
            let tried = self.so_far.tried & 1 << position != 0;
            Candidate { excluded: candidate.excluded || tried, ..candidate }
        };
        self.nodes.iter().take(NODES_MAX).enumerate().map(candidate).collect()
    }

    pub(super) fn node(&self, by: By) -> &'a Arc<Node<A>> {
        &self.nodes[by.position]
    }

    pub(super) fn failed(&mut self, by: By) {
        self.so_far.failed |= 1 << by.position;
        self.so_far.blame = true;
    }

    /// This one has nothing yet, and may have it when it is asked again.
    pub(super) fn late(&mut self, by: By) {
        self.so_far.failed |= 1 << by.position;
        self.so_far.blame = true;
        self.so_far.late = true;
    }

    pub(super) fn lacks(&mut self, lack: Lack) {
        self.so_far.lack = Some(lack);
    }

    /// Keeps a doubtful result: the first of them, or the first that says something. It is not kept back for longer
    /// than half of the time that is left.
    pub(super) fn keep(&mut self, by: By, result: Bytes) {
        if is_nothing(&result) {
            self.so_far.nothing |= 1 << by.position;
        }
        if self.fallback.is_none() {
            let now = Instant::now();
            self.deadline = now + self.deadline.saturating_duration_since(now) / 2;
        }
        let says_nothing =
            |kept: &Answered<A>| matches!(&kept.said, Said::Result(result) if is_nothing(result));
        if self.fallback.is_none() || !is_nothing(&result) && self.fallback.as_ref().is_some_and(says_nothing)
        {
            self.fallback = Some(self.answered(by, Said::Result(result), false));
        }
    }

    /// A node grants less than was asked for. That is one opinion: another node may grant more, and the caller is told only
    /// when nobody else is left, or a second node refuses for another reason than the range.
    pub(super) fn limited(&mut self, by: By, limit: RangeLimit) -> Option<RangeLimit> {
        let before = self.limit;
        let unspecific = before.map_or(0, |before| before.unspecific) + u32::from(limit.blocks.is_none());
        let widest = before.filter(|before| before.limit.blocks > limit.blocks);
        let (position, limit) = widest.map_or((by.position, limit), |before| (before.position, before.limit));
        self.limit = Some(Limited { position, limit, unspecific });
        (unspecific >= OPINIONS).then_some(limit)
    }

    /// When no node could answer, grants what the nodes grant that were not asked because they search fewer blocks at once.
    pub(super) fn grant_narrower_range(&mut self) {
        let narrower = self.nodes.iter().enumerate().filter(|(_, node)| {
            let known = node.known();
            known.standing() == Standing::Member && known.log_range() < self.call.needs.log_blocks
        });
        let widest = narrower.max_by_key(|(_, node)| node.known().log_range());
        if let (None, Some((position, node))) = (self.limit, widest) {
            let limit = RangeLimit { blocks: Some(node.known().log_range()) };
            self.limit = Some(Limited { position, limit, unspecific: 0 });
        }
    }

    /// What no node has, if that is why there is no answer.
    pub(super) fn lack(&self) -> Option<Lack> {
        if self.so_far.blame { None } else { self.so_far.lack.or_else(|| self.lack_of_all()) }
    }

    fn lack_of_all(&self) -> Option<Lack> {
        let members =
            || self.nodes.iter().map(|node| node.known()).filter(|k| k.standing() == Standing::Member);
        let block = self.call.needs.block.unwrap_or(0);
        members().next()?;
        if members().all(|known| known.lacks(self.call.method)) {
            Some(Lack::Method)
        } else if self.call.needs.state
            && members().all(|known| known.lowest_state_for(self.call.method) > block)
        {
            Some(Lack::State)
        } else {
            None
        }
    }

    pub(super) fn won(mut self, by: By, said: Said) -> Answered<A> {
        match by.kind {
            Kind::Hedge => _ = self.node(by).counts().hedges_won.fetch_add(1, Relaxed),
            // What was not in vain has stormed nobody, and another call may need it.
            Kind::Retry { paid: true } => self.rules.budgets.give_retry_back(),
            Kind::Retry { paid: false } | Kind::First => {}
        }
        self.drop_runners();
        self.answered(by, said, true)
    }

    /// No answer is believed: the fallback, or the reason why there is none.
    pub(super) fn end(mut self, failed: impl FnOnce(u32) -> Failed) -> Result<Answered<A>, Failed> {
        self.drop_runners();
        let (tried, nowhere) = (self.so_far.attempts, self.nobody_has_anything());
        if let (None, Some(Limited { position, limit, .. })) = (&self.fallback, self.limit) {
            let (said, node) = (Said::Limit(limit), Arc::clone(&self.nodes[position]));
            return Ok(Answered { said, node, tried, sure: true, nowhere });
        }
        self.fallback.map(|answered| Answered { tried, nowhere, ..answered }).ok_or_else(|| failed(tried))
    }

    fn nobody_has_anything(&self) -> bool {
        let has_nothing = |position: usize| position < NODES_MAX && self.so_far.nothing & 1 << position != 0;
        let is_member = |node: &Node<A>| node.known().standing() == Standing::Member;
        self.nodes.iter().enumerate().all(|(position, node)| has_nothing(position) || !is_member(node))
    }

    fn drop_runners(&mut self) {
        if !self.runners.is_empty() {
            let now = Instant::now();
            for runner in std::mem::take(&mut self.runners) {
                self.give_up(&runner, now);
            }
        }
        if self.so_far.hedge_paid {
            self.rules.budgets.give_hedge_back();
        }
    }

    /// One that was overdue has been blamed for it already.
    fn give_up(&self, runner: &Runner<'_>, now: Instant) {
        if runner.overdue_at.is_some() {
            self.node(runner.by).given_up(self.call.class, runner.asked_at, now);
        }
    }

    fn answered(&self, by: By, said: Said, sure: bool) -> Answered<A> {
        let (node, tried) = (Arc::clone(self.node(by)), self.so_far.attempts);
        Answered { said, node, tried, sure, nowhere: false }
    }
}

/// Whether a result is a null or an empty list.
fn is_nothing(result: &[u8]) -> bool {
    matches!(result.trim_ascii(), b"null" | b"[]")
}
