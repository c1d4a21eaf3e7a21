//! One call to all nodes at once.

use std::collections::HashSet;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, timeout_at};

use super::{Pool, PoolNode};
use crate::call::{Fault, RpcCall, RpcReply};

/// How often it is checked whether a node is left that is worth waiting for. Nodes that their watchers have lost are not.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Pause before a node that returned an error is asked once more.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(200);

type NumberedReply<'a> = Pin<Box<dyn Future<Output = (usize, Result<RpcReply, Fault>)> + Send + 'a>>;

/// The replies of all nodes that were asked, as they come.
pub struct Replies<'a> {
    pool: &'a Pool,
    replies: FuturesUnordered<NumberedReply<'a>>,
    awaited: HashSet<usize>,
    deadline: Instant,
}

impl std::fmt::Debug for Replies<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Replies").field("awaited", &self.awaited).finish_non_exhaustive()
    }
}

impl Pool {
    /// Asks all nodes of this chain except some. Nodes that are down are asked too, because one may be back.
    pub fn ask_everyone<'a>(
        &'a self,
        call: &'a RpcCall,
        except: &HashSet<usize>,
        deadline: Instant,
    ) -> Replies<'a> {
        self.rules.budgets.deposit();
        let (replies, mut awaited) = (FuturesUnordered::new(), HashSet::new());
        for node in self.of_this_chain() {
            let number = self.number_of(node);
            if !except.contains(&number) {
                awaited.insert(number);
                replies.push(Box::pin(async move { (number, self.ask_twice(node, call, deadline).await) })
                    as NumberedReply<'a>);
            }
        }
        Replies { pool: self, replies, awaited, deadline }
    }

    /// Asks once more after a failure that may be temporary, so that it does not leave the decision to the other nodes. The
    /// retry budget pays for that.
    async fn ask_twice(&self, node: &PoolNode, call: &RpcCall, deadline: Instant) -> Result<RpcReply, Fault> {
        let first = node.ask(call, deadline).await;
        let may_be_temporary = matches!(
            first,
            Ok(RpcReply::Error(_))
                | Err(Fault::Status(_) | Fault::RateLimited | Fault::Garbled | Fault::Closed)
        );
        let budgets = &self.rules.budgets;
        if !may_be_temporary || !budgets.withdraw_retry(Instant::now()) {
            return first;
        }
        sleep(ASKED_AGAIN_AFTER).await;
        let second = node.ask(call, deadline).await;
        if matches!(second, Ok(RpcReply::Result(_))) {
            budgets.give_retry_back();
        }
        second
    }
}

impl Replies<'_> {
    /// The next reply, and the number of its node. `None` when no node is left that is worth waiting for.
    pub async fn next(&mut self) -> Option<(usize, Result<RpcReply, Fault>)> {
        loop {
            let until = self.deadline.min(Instant::now() + LOOK_EVERY);
            match timeout_at(until, self.replies.next()).await {
                Ok(replied) => {
                    let (node, reply) = replied?;
                    self.awaited.remove(&node);
                    return Some((node, reply));
                }
                Err(_) if until < self.deadline && self.is_some_node_present() => {}
                Err(_) => return None,
            }
        }
    }

    /// Limits the time for the remaining replies, because there is an answer already.
    pub(super) fn wait_at_most(&mut self, time: Duration) {
        self.deadline = self.deadline.min(Instant::now() + time);
    }

    fn is_some_node_present(&self) -> bool {
        let awaited = self.awaited.iter().filter_map(|&node| self.pool.nodes.get(node));
        awaited.into_iter().any(|node| !node.presence().is_lost())
    }
}
