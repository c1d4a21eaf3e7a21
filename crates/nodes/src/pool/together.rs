//! Several calls that one node answers together, and when another node is asked for them, too.

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
use crate::call::{Call, Class, Reply};

type Delivering<'a> = Pin<Box<dyn Future<Output = Option<Vec<Bytes>>> + Send + 'a>>;

/// Several calls on their way to one node after another.
pub(super) struct FetchingTogether<'a> {
    pool: &'a Pool,
    calls: &'a [Call],
    deadline: Instant,
    /// Who is at it.
    runners: Vec<FetchRunner<'a>>,
    /// Who may be asked, the best last.
    others: Vec<&'a Arc<PoolNode>>,
}

struct FetchRunner<'a> {
    node: &'a PoolNode,
    results: Delivering<'a>,
    asked_at: Instant,
    /// When another one is asked, too; `None` once that was done.
    slow_at: Option<Instant>,
}

impl<'a> FetchingTogether<'a> {
    /// `nodes` are those that may be asked, the best one first.
    pub(super) fn new(
        pool: &'a Pool,
        nodes: Vec<&'a Arc<PoolNode>>,
        calls: &'a [Call],
        deadline: Instant,
    ) -> Self {
        pool.rules.budgets.deposit(Instant::now());
        let mut others = nodes;
        others.reverse();
        Self { pool, calls, deadline, runners: Vec::new(), others }
    }

    /// What the next node delivers, or that it delivers nothing. `None` when nobody is left, or the time is up.
    pub(super) async fn next(&mut self) -> Option<(&'a PoolNode, Option<Vec<Bytes>>)> {
        loop {
            let now = Instant::now();
            if now >= self.deadline {
                return None;
            }
            if self.runners.iter().all(|runner| runner.slow_at.is_none()) && !self.start(now) {
                // Only those are left that are slow.
                self.runners.first()?;
            }
            let slow_at = self.runners.iter().filter_map(|runner| runner.slow_at).min();
            let slow_at = slow_at.filter(|_| !self.others.is_empty());
            let mut time = pin!(sleep_until(slow_at.unwrap_or(self.deadline).min(self.deadline)));
            let delivered = poll_fn(|context| {
                for (position, runner) in self.runners.iter_mut().enumerate() {
                    if let Poll::Ready(results) = runner.results.as_mut().poll(context) {
                        return Poll::Ready(Some((position, results)));
                    }
                }
                time.as_mut().poll(context).map(|()| None)
            });
            match delivered.await {
                Some((position, results)) => return Some((self.runners.swap_remove(position).node, results)),
                None => self.allow_for_slow_runners(Instant::now()),
            }
        }
    }

    /// Asks the best node that has not been asked yet. Whether there is one.
    fn start(&mut self, now: Instant) -> bool {
        let (Some(node), Some(call)) = (self.others.pop(), self.calls.first()) else { return false };
        let (calls, deadline) = (self.calls, self.deadline);
        self.runners.push(FetchRunner {
            node,
            results: Box::pin(ask_all(node, calls, deadline)),
            asked_at: now,
            slow_at: Some(now + node.hedge_delay(call.class)),
        });
        true
    }

    /// Lets another node be asked beside one that is slow, within the budgets.
    fn allow_for_slow_runners(&mut self, now: Instant) {
        let budgets = &self.pool.rules.budgets;
        for runner in &mut self.runners {
            let Some(slow_at) = runner.slow_at.filter(|slow_at| *slow_at <= now) else { continue };
            let is_silent = runner.node.silent_since(runner.asked_at);
            let class = self.calls.first().map_or(Class::Quick, |call| call.class);
            let is_overdue = now >= runner.asked_at + runner.node.silence_max(class);
            let is_granted = budgets.may_hedge(is_silent, now) || is_overdue && budgets.may_replace(now);
            runner.slow_at = (!is_granted).then_some(slow_at.max(now) + REFUSED_PAUSE);
        }
    }
}

/// Whoever is still at it took longer than the one that delivered.
impl Drop for FetchingTogether<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        let class = self.calls.first().map_or(Class::Quick, |call| call.class);
        self.runners.iter().for_each(|runner| runner.node.given_up(class, runner.asked_at, now));
    }
}

/// The results of all calls, or `None` if one has none.
pub(super) async fn ask_all(node: &PoolNode, calls: &[Call], until: Instant) -> Option<Vec<Bytes>> {
    let replies = join_all(calls.iter().map(|call| node.ask(call, until))).await;
    let mut results = Vec::with_capacity(replies.len());
    for (reply, call) in replies.into_iter().zip(calls) {
        match reply {
            Ok(Reply::Result(result)) => results.push(result),
            Ok(Reply::Error(error)) => {
                match attempt::read(&error, call) {
                    ErrorMeaning::NotHere(lack) => node.known().learn(lack, call.method, call.needs.block),
                    ErrorMeaning::Node(fault) => node.bad(fault, Instant::now()),
                    ErrorMeaning::Caller(_) | ErrorMeaning::Limit(_) | ErrorMeaning::Unclear => {}
                }
                return None;
            }
            // The node has taken note of it.
            Err(_) => return None,
        }
    }
    Some(results)
}
