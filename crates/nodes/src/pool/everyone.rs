//! One question to all nodes at once, and how long it waits for those that have not answered.

use std::collections::HashSet;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, timeout_at};

use super::{Pool, PoolNode};
use crate::call::{Call, Fault, Reply};

/// How often it is looked whether anybody is left whom it is worth waiting for: nodes that their watchers have lost are not.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A node that could not say is asked once more, after this.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(200);

type NumberedReply<'a> = Pin<Box<dyn Future<Output = (usize, Result<Reply, Fault>)> + Send + 'a>>;

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
    /// Asks all nodes of this chain but for some. Those that are down are asked, too: one may be back.
    pub fn ask_everyone<'a>(
        &'a self,
        call: &'a Call,
        but_for: &HashSet<usize>,
        deadline: Instant,
    ) -> Replies<'a> {
        let (replies, mut awaited) = (FuturesUnordered::new(), HashSet::new());
        for node in self.of_this_chain() {
            let number = self.number_of(node);
            if !but_for.contains(&number) {
                awaited.insert(number);
                replies.push(Box::pin(async move { (number, ask_twice(node, call, deadline).await) })
                    as NumberedReply<'a>);
            }
        }
        Replies { pool: self, replies, awaited, deadline }
    }
}

impl Replies<'_> {
    /// The next reply, and the number of its node. `None` when nobody is left who is waited for.
    pub async fn next(&mut self) -> Option<(usize, Result<Reply, Fault>)> {
        loop {
            let until = self.deadline.min(Instant::now() + LOOK_EVERY);
            match timeout_at(until, self.replies.next()).await {
                Ok(replied) => {
                    let (node, reply) = replied?;
                    self.awaited.remove(&node);
                    return Some((node, reply));
                }
                Err(_) if until < self.deadline && self.somebody_is_there() => {}
                Err(_) => return None,
            }
        }
    }

    /// Waits no longer than this for the rest: there is an answer already, and a better one may come.
    pub(super) fn wait_at_most(&mut self, time: Duration) {
        self.deadline = self.deadline.min(Instant::now() + time);
    }

    fn somebody_is_there(&self) -> bool {
        let awaited = self.awaited.iter().filter_map(|&node| self.pool.nodes.get(node));
        awaited.into_iter().any(|node| !node.presence().is_lost())
    }
}

/// A moment's trouble must not leave the word to others.
async fn ask_twice(node: &PoolNode, call: &Call, deadline: Instant) -> Result<Reply, Fault> {
    match node.ask(call, deadline).await {
        Ok(Reply::Error(_)) | Err(Fault::Status(_) | Fault::RateLimited | Fault::Garbled | Fault::Closed) => {
            sleep(ASKED_AGAIN_AFTER).await;
            node.ask(call, deadline).await
        }
        reply => reply,
    }
}
