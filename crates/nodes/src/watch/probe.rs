//! The lowest block whose state a node has.
//!
//! It is found by binary search, because a node has the states of all blocks from some number on. Nodes that prune keep a fixed number
//! of states below their head, so their lowest state moves with the head until the next search.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::questions::Questions;
use super::{WatchContext, Watched};
use crate::call::Fault;

/// A node that has at most this many states prunes continuously.
const PRUNED_STATES_MAX: u64 = 1_024;
/// Pause before a second search confirms that a node lacks old states, because the first failure may be temporary.
const CONFIRMED_AFTER: Duration = Duration::from_secs(5);
/// Pause before the next search after one that failed.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(super) struct Prober<W> {
    node: Arc<W>,
    context: Arc<WatchContext>,
}

impl<W: Watched> Prober<W> {
    pub(super) fn new(node: Arc<W>, context: Arc<WatchContext>) -> Self {
        Self { node, context }
    }

    pub(super) async fn run(self) {
        loop {
            let head = self.context.view.ready().await.head().number;
            // It does not even have the state of the head, or it did not answer: nothing was found out.
            let Ok(Some(lowest)) = self.confirmed_lowest_state(head).await else {
                sleep(ASK_AGAIN_AFTER).await;
                continue;
            };
            self.node.set_lowest_state(lowest);
            let states = Some(head - lowest).filter(|&states| lowest > 0 && states <= PRUNED_STATES_MAX);
            self.wait(Instant::now() + self.context.settings.probe_every, states).await;
        }
    }

    /// The lowest block with state, by two searches. `None` if they contradict each other.
    async fn confirmed_lowest_state(&self, head: u64) -> Result<Option<u64>, Fault> {
        let questions = self.questions();
        let first = lowest_state(&questions, head).await?;
        if first == Some(0) {
            return Ok(first);
        }
        sleep(CONFIRMED_AFTER).await;
        let second = lowest_state(&questions, head).await?;
        // A node that prunes may have dropped some states in between.
        Ok(second.filter(|second| first.is_some_and(|first| first <= *second)))
    }

    /// Waits for the next search. Meanwhile the lowest state of a pruning node follows the head.
    async fn wait(&self, until: Instant, states: Option<u64>) {
        let mut changes = self.context.view.changes();
        while let Ok(Ok(())) = timeout_at(until, changes.changed()).await {
            let head = changes.borrow_and_update().as_ref().map(|canonical| canonical.head().number);
            if let (Some(states), Some(head)) = (states, head) {
                self.node.set_lowest_state(head.saturating_sub(states));
            }
        }
    }

    fn questions(&self) -> Questions<'_, W> {
        let WatchContext { settings, headers, .. } = &*self.context;
        Questions { node: &*self.node, timeout: settings.poll_timeout, headers }
    }
}

/// The lowest block with state. `None` if not even `head` has it.
async fn lowest_state<W: Watched>(questions: &Questions<'_, W>, head: u64) -> Result<Option<u64>, Fault> {
    if questions.has_state(0).await? {
        return Ok(Some(0));
    }
    if !questions.has_state(head).await? {
        return Ok(None);
    }
    let (mut without, mut with) = (0, head);
    while with - without > 1 {
        let middle = without + (with - without) / 2;
        if questions.has_state(middle).await? { with = middle } else { without = middle }
    }
    Ok(Some(with))
}
