//! Several calls that the same node must answer, and when another node is asked for them too.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::time::{Instant, sleep_until};

use super::{Pool, PoolNode};
use crate::attempt::{self, ErrorMeaning};
use crate::budget::REFUSED_PAUSE;
use crate::call::{Class, RpcCall, RpcReply};

type Delivering<'a> = Pin<Box<dyn Future<Output = Option<Vec<Bytes>>> + Send + 'a>>;

/// Several calls to the same node, tried on one node after another.
pub(super) struct FetchingTogether<'a> {
    pool: &'a Pool,
    calls: &'a [RpcCall],
    deadline: Instant,
    /// Nodes that were asked and have not answered.
    runners: Vec<FetchRunner<'a>>,
    /// Nodes that may be asked, the best last.
    others: Vec<&'a Arc<PoolNode>>,
    /// Whether the next node is paid for: it is the first, or beside a slow one. After a failure, the retry budget pays for it.
    is_next_paid: bool,
    /// When the retry budget is asked again, after it has refused.
    retry_at: Option<Instant>,
}

struct FetchRunner<'a> {
    node: &'a PoolNode,
    results: Delivering<'a>,
    asked_at: Instant,
    /// When another node is asked too. `None` once that was done.
    slow_at: Option<Instant>,
    /// Whether the retry budget has paid for it.
    is_retry: bool,
}

impl<'a> FetchingTogether<'a> {
    /// `nodes` may be asked, the best one first.
    pub(super) fn new(
        pool: &'a Pool,
        nodes: Vec<&'a Arc<PoolNode>>,
        calls: &'a [RpcCall],
        deadline: Instant,
    ) -> Self {
        pool.rules.budgets.deposit();
        let mut others = nodes;
        others.reverse();
        Self { pool, calls, deadline, runners: Vec::new(), others, is_next_paid: true, retry_at: None }
    }

    /// The next node that ends, with what it delivered if it did. `None` when no node is left, or the time is up.
    pub(super) async fn next(&mut self) -> Option<(&'a PoolNode, Option<Vec<Bytes>>)> {
        loop {
            let now = Instant::now();
            if now >= self.deadline {
                return None;
            }
            if self.runners.iter().all(|runner| runner.slow_at.is_none()) && !self.start(now) {
                // Otherwise only slow nodes are left, or the budget refuses another one for now.
                if self.runners.is_empty() && self.retry_at.is_none() {
                    return None;
                }
            }
            let slow_at = self.runners.iter().filter_map(|runner| runner.slow_at).min();
            let next_at = slow_at.into_iter().chain(self.retry_at).min().filter(|_| !self.others.is_empty());
            let mut time = pin!(sleep_until(next_at.unwrap_or(self.deadline).min(self.deadline)));
            let delivered = poll_fn(|context| {
                for (position, runner) in self.runners.iter_mut().enumerate() {
                    if let Poll::Ready(results) = runner.results.as_mut().poll(context) {
                        return Poll::Ready(Some((position, results)));
                    }
                }
                time.as_mut().poll(context).map(|()| None)
            });
            match delivered.await {
                Some((position, results)) => {
                    let FetchRunner { node, is_retry, .. } = self.runners.swap_remove(position);
                    if is_retry && results.is_some() {
                        self.pool.rules.budgets.give_retry_back();
                    }
                    return Some((node, results));
                }
                None => self.allow_for_slow_runners(Instant::now()),
            }
        }
    }

    /// Asks the best node that was not asked yet. Returns `false` if there is none, or if the budget does not pay for it.
    fn start(&mut self, now: Instant) -> bool {
        self.retry_at = None;
        let Some(call) = self.calls.first().filter(|_| !self.others.is_empty()) else { return false };
        let is_retry = !std::mem::take(&mut self.is_next_paid);
        if is_retry && !self.pool.rules.budgets.withdraw_retry(now) {
            self.retry_at = Some(now + REFUSED_PAUSE);
            return false;
        }
        let Some(node) = self.others.pop() else { return false };
        let (calls, deadline) = (self.calls, self.deadline);
        self.runners.push(FetchRunner {
            node,
            results: Box::pin(ask_all(node, calls, deadline)),
            asked_at: now,
            slow_at: Some(now + node.hedge_delay(call.class)),
            is_retry,
        });
        true
    }

    /// Lets another node be asked beside one that is slow, within the budgets.
    fn allow_for_slow_runners(&mut self, now: Instant) {
        let budgets = &self.pool.rules.budgets;
        for runner in &mut self.runners {
            let Some(slow_at) = runner.slow_at.filter(|slow_at| *slow_at <= now) else { continue };
            let is_silent = runner.node.is_silent_since(runner.asked_at);
            let class = self.calls.first().map_or(Class::Quick, |call| call.class);
            let is_overdue = now >= runner.asked_at + runner.node.silence_max(class);
            let is_granted =
                budgets.withdraw_hedge(is_silent, now) || is_overdue && budgets.withdraw_replacement(now);
            runner.slow_at = (!is_granted).then_some(slow_at.max(now) + REFUSED_PAUSE);
            self.is_next_paid |= is_granted;
        }
    }
}

/// Nodes that have not answered by now took longer than the one that delivered.
impl Drop for FetchingTogether<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        let class = self.calls.first().map_or(Class::Quick, |call| call.class);
        self.runners.iter().for_each(|runner| runner.node.record_abandoned(class, runner.asked_at, now));
    }
}

/// Calls of one fetch that wait for a node at once, so that they leave room for others of the same account.
const CALLS_AT_ONCE_MAX: usize = 256;

/// The results of all calls, or `None` if one has none.
pub(super) async fn ask_all(node: &PoolNode, calls: &[RpcCall], until: Instant) -> Option<Vec<Bytes>> {
    let mut replies = Vec::with_capacity(calls.len());
    for calls in calls.chunks(CALLS_AT_ONCE_MAX) {
        replies.extend(join_all(calls.iter().map(|call| node.ask(call, until))).await);
    }
    let mut results = Vec::with_capacity(replies.len());
    for (reply, call) in replies.into_iter().zip(calls) {
        match reply {
            Ok(RpcReply::Result(result)) => results.push(result),
            Ok(RpcReply::Error(error)) => {
                match attempt::read(&error, call) {
                    ErrorMeaning::NotHere(missing) => {
                        node.capabilities().record_missing(missing, call.method, call.needs.state_block());
                    }
                    ErrorMeaning::Node(fault) => node.record_fault(fault, Instant::now()),
                    ErrorMeaning::Caller(_) | ErrorMeaning::Limit(_) | ErrorMeaning::Unclear => {}
                }
                return None;
            }
            // The node has recorded the fault.
            Err(_) => return None,
        }
    }
    Some(results)
}
