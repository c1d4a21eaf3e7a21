//! One call to several nodes at once, whose answers the caller compares.
//!
//! | event                               | effect on the node      | next                                            |
//! |-------------------------------------|-------------------------|-------------------------------------------------|
//! | an answer                           | the caller decides      | returned                                        |
//! | "not here yet"                      | good, and it is learned | the same node again, a little later             |
//! | "not here"                          | good, and it is learned | another                                         |
//! | an error of the node's own, a fault | bad                     | another; when none is left, the same once more  |
//! | nothing, for longer than is usual   | nothing yet             | another too, within the hedge budget            |
//! | nothing, for much longer            | mildly bad, at the end  | another too, within the retry budget; when none |
//! |                                     |                         | is left, [`QuorumEvent::Stalled`]               |
//!
//! No node gives two answers to one call, so that no node votes twice.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::{Pool, PoolNode};
use crate::attempt::{ErrorMeaning, NodeReply};
use crate::budget::REFUSED_PAUSE;
use crate::call::{Fault, ReplyFuture, RpcCall, RpcReply};
use crate::health::Availability;
use crate::node::{HistoryKind, Membership, MissingCapability};
use crate::pick::{Candidate, pick};
use crate::proof_failure::ProofFailure;

/// How often a node that fails is asked, because a failure may be temporary.
const ATTEMPTS_MAX: u32 = 2;

/// Pause before a node that failed is asked again.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How often nodes are checked that do not have the block yet.
const LATE_CHECKED_EVERY: Duration = Duration::from_millis(50);

/// How long a call waits for nodes that do not have the block yet. One that is a few blocks behind has caught up by then.
const LATE_TIME_MAX: Duration = Duration::from_secs(2);

/// How long a call waits for a node that seems to be down. One that is back answers sooner.
const DOWN_TIME_MAX: Duration = Duration::from_secs(1);

/// How long a call waits for any other node that says nothing to anyone: it hangs on calls, though it may answer polls. Without it
/// there may be no quorum, and the caller should learn that.
const SILENT_TIME_MAX: Duration = Duration::from_secs(2);

/// Multiple of a node's usual delay after which it is overdue.
const OVERDUE_FACTOR: u32 = 4;

/// Shortest time after which a node is overdue, however quick it usually is.
const OVERDUE_MIN: Duration = Duration::from_millis(100);

/// The reply of one node.
#[derive(Debug)]
pub struct NodeAnswer {
    pub node: usize,
    pub reply: NodeReply,
}

/// The next event of a call to several nodes.
#[derive(Debug)]
pub enum QuorumEvent {
    Answer(NodeAnswer),
    /// A node has answered, all others that were asked are overdue and silent, and no other healthy node can be asked. The call still
    /// waits for them. This event comes once.
    Stalled,
    /// No node is left that could answer in time.
    Over,
}

/// One call to several nodes.
pub struct QuorumCall<'a> {
    pool: &'a Pool,
    call: &'a RpcCall,
    begun: Instant,
    deadline: Instant,
    runners: Vec<Runner<'a>>,
    /// The progress of each node of the pool.
    progress: Vec<NodeProgress>,
    calls: u64,
    /// Whether a node has answered.
    is_answered: bool,
    has_stalled: bool,
}

struct Runner<'a> {
    node: usize,
    reply: ReplyFuture<'a>,
    asked_at: Instant,
    /// When another node may be asked too. `None` once that was done.
    slow_at: Option<Instant>,
    overdue_at: Instant,
    /// When it is given up.
    until: Instant,
    /// When it is given up if its node has said nothing to anyone meanwhile.
    until_silent: Instant,
}

impl Runner<'_> {
    /// Time that a reply may take until it is overdue.
    fn overdue_after(&self) -> Duration {
        self.overdue_at.saturating_duration_since(self.asked_at)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeProgress {
    NotAsked,
    UnderWay {
        attempts: u32,
        /// Whether the retry budget has paid for this attempt.
        is_paid_retry: bool,
    },
    /// It may be asked again.
    Again {
        at: Instant,
        attempts: u32,
        /// Whether it has failed. Then the retry budget pays for asking it again.
        failed: bool,
    },
    /// It has answered, or will not.
    Over,
}

impl Pool {
    /// How many of the configured nodes must agree.
    pub fn quorum(&self) -> usize {
        self.view.quorum()
    }

    /// Begins a call that several nodes answer. No node is asked before [`QuorumCall::next`].
    pub fn ask_several<'a>(&'a self, call: &'a RpcCall, deadline: Instant) -> QuorumCall<'a> {
        let begun = Instant::now();
        self.rules.budgets.deposit();
        let progress = vec![NodeProgress::NotAsked; self.nodes.len()];
        QuorumCall {
            pool: self,
            call,
            begun,
            deadline,
            runners: Vec::new(),
            progress,
            calls: 0,
            is_answered: false,
            has_stalled: false,
        }
    }

    /// Blames a node that a quorum of the configured nodes has contradicted.
    pub fn blame_contradicted(&self, node: usize, call: &RpcCall) {
        let Some(node) = self.nodes.get(node) else { return };
        node.record_wrong_answer(call, "a quorum of the nodes, or a proof, says otherwise");
    }
}

impl QuorumCall<'_> {
    /// Waits for the next event, while this many more answers are wanted. It is cancel safe.
    pub async fn next(&mut self, wanted: usize) -> QuorumEvent {
        loop {
            let now = Instant::now();
            self.give_up_late_runners(now);
            self.start_runners(wanted, now);
            if self.begins_to_stall(now) {
                return QuorumEvent::Stalled;
            }
            let Some(wake_at) = self.wake_at(wanted, now) else { return QuorumEvent::Over };
            match self.reply_before(wake_at).await {
                Some((node, reply)) => {
                    if let Some(reply) = self.settle(node, reply) {
                        self.is_answered = true;
                        return QuorumEvent::Answer(NodeAnswer { node, reply });
                    }
                }
                None if Instant::now() >= self.deadline => return QuorumEvent::Over,
                None => self.allow_for_slow_runners(Instant::now()),
            }
        }
    }

    /// Whether the call stalls now, and did not before.
    fn begins_to_stall(&mut self, now: Instant) -> bool {
        if !self.is_answered || self.has_stalled || self.runners.is_empty() {
            return false;
        }
        let is_overdue = |runner: &Runner<'_>| {
            now >= runner.overdue_at
                && self.pool.nodes[runner.node].is_silent_since(now - runner.overdue_after())
        };
        self.has_stalled =
            self.runners.iter().all(is_overdue) && self.choose(Availability::Up, now).is_none();
        self.has_stalled
    }

    /// Records that the answer of a node could be used.
    pub fn record_accepted(&self, node: usize) {
        self.pool.nodes[node].record_success(Instant::now());
    }

    /// Records that the answer of a node cannot be one to this call.
    pub fn record_refused(&self, node: usize, reason: ProofFailure) {
        self.pool.nodes[node].record_wrong_answer(self.call, reason.to_string());
    }

    /// Records that a node lacks something that exists. It is asked again a little later.
    pub fn record_late(&mut self, node: usize) {
        self.pool.nodes[node].record_success(Instant::now());
        self.pool.view.request_polls();
        self.ask_again(node, 1, false, LATE_CHECKED_EVERY);
    }

    /// How often nodes were asked.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Asks nodes until as many as are wanted are under way, not counting slow ones.
    fn start_runners(&mut self, wanted: usize, now: Instant) {
        while self.runners.iter().filter(|runner| runner.slow_at.is_some()).count() < wanted {
            let Some(node) = self.choose(Availability::Down, now) else { return };
            let (attempts, is_paid_retry) = match self.progress[node] {
                NodeProgress::Again { attempts, failed, .. } => {
                    if failed && !self.pool.rules.budgets.withdraw_retry(now) {
                        self.ask_again(node, attempts, true, REFUSED_PAUSE);
                        return;
                    }
                    (attempts + u32::from(failed), failed)
                }
                _ => (1, false),
            };
            self.progress[node] = NodeProgress::UnderWay { attempts, is_paid_retry };
            self.start(node, attempts, now);
        }
    }

    fn start(&mut self, number: usize, attempts: u32, now: Instant) {
        let (pool, call, deadline) = (self.pool, self.call, self.deadline);
        let node: &PoolNode = &pool.nodes[number];
        self.calls += 1;
        if attempts > 1 {
            node.counts().retries.fetch_add(1, Relaxed);
        } else if self.runners.iter().any(|runner| runner.slow_at.is_none()) {
            node.counts().hedges.fetch_add(1, Relaxed);
        }
        let seems_down = node.availability(now) == Availability::Down
            || !node.answers_watcher()
            || node.has_fallen_silent();
        let delay = node.begin_attempt(call.class, now).hedge_delay;
        let until = if seems_down { deadline.min(now + delay.max(DOWN_TIME_MAX)) } else { deadline };
        let overdue_after =
            if seems_down { Duration::ZERO } else { (delay * OVERDUE_FACTOR).max(OVERDUE_MIN) };
        self.runners.push(Runner {
            node: number,
            reply: Box::pin(node.ask(call, deadline)),
            asked_at: now,
            slow_at: Some(now + delay),
            overdue_at: now + overdue_after,
            until,
            until_silent: now + (delay * OVERDUE_FACTOR).max(SILENT_TIME_MAX),
        });
    }

    /// The node that is asked next, if there is one of this availability or a better one.
    fn choose(&self, worst: Availability, now: Instant) -> Option<usize> {
        let candidate = |(number, node): (usize, &Arc<PoolNode>)| {
            let candidate = node.candidate(self.call, now);
            let may_be_asked = match self.progress[number] {
                NodeProgress::NotAsked => true,
                NodeProgress::Again { at, failed: false, .. } => at <= now && self.is_early(now),
                NodeProgress::Again { at, attempts, failed: true } => {
                    at <= now && attempts < ATTEMPTS_MAX && candidate.availability != Availability::Down
                }
                NodeProgress::UnderWay { .. } | NodeProgress::Over => false,
            };
            let can_know = self.can_know(node);
            Candidate { excluded: candidate.excluded || !may_be_asked || !can_know, ..candidate }
        };
        let candidates: Vec<_> = self.pool.nodes.iter().enumerate().map(candidate).collect();
        pick(&candidates, self.call.needs, worst, self.pool.rules.rng.next_u64())
    }

    /// When something must be done if no node replies before. `None` if no node is asked and none can be.
    fn wake_at(&self, wanted: usize, now: Instant) -> Option<Instant> {
        let of_runners = self.runners.iter().map(|runner| {
            // A node may fall silent after that time, so it is checked again.
            let given_up_at = runner.until_silent.max(now + LATE_CHECKED_EVERY);
            // One that is overdue may have replied to another call since, so it is checked again.
            let overdue_at = runner.overdue_at.max(now + LATE_CHECKED_EVERY);
            let overdue_at = Some(overdue_at).filter(|_| self.is_answered && !self.has_stalled);
            let slow_at = runner.slow_at.unwrap_or(runner.until);
            slow_at.min(overdue_at.unwrap_or(runner.until)).min(given_up_at).min(runner.until)
        });
        let prompt = self.runners.iter().filter(|runner| runner.slow_at.is_some()).count();
        let of_others = (prompt < wanted).then(|| self.next_asked_at(now)).flatten();
        of_runners.chain(of_others).min().map(|at| at.min(self.deadline))
    }

    /// Whether the call still waits for nodes that do not have the block yet.
    fn is_early(&self, now: Instant) -> bool {
        now < self.begun + LATE_TIME_MAX
    }

    /// When a node can be asked that cannot be asked now.
    fn next_asked_at(&self, now: Instant) -> Option<Instant> {
        let is_early = self.is_early(now);
        let at = |(number, node): (usize, &Arc<PoolNode>)| match self.progress[number] {
            NodeProgress::Again { at, attempts, failed: true } if at > now => {
                (attempts < ATTEMPTS_MAX && node.availability(now) != Availability::Down).then_some(at)
            }
            NodeProgress::Again { at, failed: false, .. } if at > now => is_early.then_some(at),
            // It would have been asked now if it could answer.
            NodeProgress::Again { .. } | NodeProgress::NotAsked => {
                let may_know_soon = is_early && self.is_behind(node) || self.may_be_shown(node);
                may_know_soon.then_some(now + LATE_CHECKED_EVERY)
            }
            NodeProgress::UnderWay { .. } | NodeProgress::Over => None,
        };
        self.pool.nodes.iter().enumerate().filter_map(at).min()
    }

    /// Whether a node is known to have the state or the logs that the call needs, or to lack them. One that has dropped what is old
    /// may return zero for it, or no logs.
    fn can_know(&self, node: &PoolNode) -> bool {
        let (needs, capabilities) = (self.call.needs, node.capabilities());
        let is_found_out = |from| capabilities.can_know(HistoryKind::Logs, from).is_some();
        needs.state_block().is_none_or(|block| capabilities.can_know_state(block))
            && needs.logs_from().is_none_or(is_found_out)
    }

    /// Whether a node may be asked once its prober has found out what it has of old blocks.
    fn may_be_shown(&self, node: &PoolNode) -> bool {
        !self.can_know(node) && node.answers_watcher() && self.is_member_with_method(node)
    }

    /// Whether a node could answer if it had the block.
    fn is_behind(&self, node: &PoolNode) -> bool {
        let head = node.capabilities().head_number();
        self.call.needs.block.is_some_and(|block| head < Some(block)) && self.is_member_with_method(node)
    }

    fn is_member_with_method(&self, node: &PoolNode) -> bool {
        let capabilities = node.capabilities();
        capabilities.membership() == Membership::Member && !capabilities.lacks(self.call.method)
    }

    async fn reply_before(&mut self, wake_at: Instant) -> Option<(usize, Result<RpcReply, Fault>)> {
        let mut time = pin!(sleep_until(wake_at));
        let (position, reply) = poll_fn(|context| {
            for (position, runner) in self.runners.iter_mut().enumerate() {
                if let Poll::Ready(reply) = runner.reply.as_mut().poll(context) {
                    return Poll::Ready(Some((position, reply)));
                }
            }
            time.as_mut().poll(context).map(|()| None)
        })
        .await?;
        Some((self.runners.swap_remove(position).node, reply))
    }

    /// Lets another node be asked beside one that is slow, within the budgets.
    fn allow_for_slow_runners(&mut self, now: Instant) {
        let budgets = &self.pool.rules.budgets;
        for runner in &mut self.runners {
            let Some(slow_at) = runner.slow_at.filter(|slow_at| *slow_at <= now) else { continue };
            let node = &self.pool.nodes[runner.node];
            let is_granted = budgets.withdraw_hedge(node.is_silent_since(runner.asked_at), now)
                || now >= runner.overdue_at && budgets.withdraw_replacement(now);
            if is_granted {
                runner.slow_at = None;
            } else {
                runner.slow_at = Some(slow_at.max(now) + REFUSED_PAUSE);
            }
        }
    }

    /// Gives up nodes that seem to be down or have fallen silent.
    fn give_up_late_runners(&mut self, now: Instant) {
        let pool = self.pool;
        let (class, progress) = (self.call.class, &mut self.progress);
        self.runners.retain(|runner| {
            let silent_time = runner.until_silent.saturating_duration_since(runner.asked_at);
            let is_silent = || pool.nodes[runner.node].is_silent_since(now - silent_time);
            let is_given_up = now >= runner.until || now >= runner.until_silent && is_silent();
            if is_given_up {
                pool.nodes[runner.node].record_abandoned(class, runner.asked_at, now);
                progress[runner.node] = NodeProgress::Over;
            }
            !is_given_up
        });
    }

    /// Records what a reply says about its node, and returns the answer if it is one.
    fn settle(&mut self, number: usize, reply: Result<RpcReply, Fault>) -> Option<NodeReply> {
        let pool = self.pool;
        let node = &pool.nodes[number];
        let (attempts, is_paid_retry) = match self.progress[number] {
            NodeProgress::UnderWay { attempts, is_paid_retry } => (attempts, is_paid_retry),
            _ => (1, false),
        };
        self.progress[number] = NodeProgress::Over;
        let reply = reply.map(|reply| match reply {
            RpcReply::Result(result) => Ok(result),
            RpcReply::Error(error) => Err((pool.rules.read)(&error, self.call)),
        });
        // Only a fault of the node uses up a retry: one account would use up the budget of all with calls that every node
        // refuses, or with more calls than it may send.
        let is_fault_of_node = match &reply {
            Ok(Err(meaning)) => matches!(meaning, ErrorMeaning::Node(_)),
            Ok(Ok(_)) => false,
            Err(fault) => !fault.is_our_shortage(),
        };
        if is_paid_retry && !is_fault_of_node {
            pool.rules.budgets.give_retry_back();
        }
        match reply {
            Ok(Ok(result)) => return Some(NodeReply::Result(result)),
            Ok(Err(meaning)) => match meaning {
                ErrorMeaning::Caller(error) => return Some(NodeReply::Error(error)),
                ErrorMeaning::Limit(limit) => return Some(NodeReply::Limit(limit)),
                ErrorMeaning::NotHere(missing) => {
                    node.record_success(Instant::now());
                    node.capabilities().record_missing(
                        missing,
                        self.call.method,
                        self.call.needs.state_block(),
                    );
                    if missing == MissingCapability::Block {
                        pool.view.request_polls();
                        self.ask_again(number, attempts, false, LATE_CHECKED_EVERY);
                    }
                }
                ErrorMeaning::Node(fault) => {
                    node.record_fault(fault, Instant::now());
                    self.ask_again(number, attempts, true, ASKED_AGAIN_AFTER);
                }
                ErrorMeaning::Unclear => self.ask_again(number, attempts, true, ASKED_AGAIN_AFTER),
            },
            // The node has recorded the fault.
            Err(_) => self.ask_again(number, attempts, true, ASKED_AGAIN_AFTER),
        }
        None
    }

    fn ask_again(&mut self, node: usize, attempts: u32, failed: bool, after: Duration) {
        self.progress[node] = NodeProgress::Again { at: Instant::now() + after, attempts, failed };
    }
}

/// Nodes that have not answered by now took longer than those whose answers were enough.
impl Drop for QuorumCall<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        for runner in &self.runners {
            self.pool.nodes[runner.node].record_abandoned(self.call.class, runner.asked_at, now);
        }
    }
}

impl std::fmt::Debug for QuorumCall<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuorumCall").field("method", &self.call.method).finish_non_exhaustive()
    }
}
