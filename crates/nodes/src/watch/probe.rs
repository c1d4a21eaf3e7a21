//! The lowest block whose state a node has.
//!
//! Found by halving: a node has the state of every block from some number on. Nodes that prune keep a fixed number
//! of states below their head, so theirs moves along with it until the next look.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::questions::Questions;
use super::{Common, Watched};
use crate::Fault;

/// A node that has at most this many states is one that prunes as it goes.
const PRUNED_STATES_MAX: u64 = 1_024;
/// How soon it is seen whether a node really lacks old states, which would cost all calls about them. It may only have been in
/// trouble for a moment.
const CONFIRMED_AFTER: Duration = Duration::from_secs(5);
/// How soon a node that did not tell is asked again.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(super) struct Prober<W> {
    node: Arc<W>,
    common: Arc<Common>,
}

impl<W: Watched> Prober<W> {
    pub(super) fn new(node: Arc<W>, common: Arc<Common>) -> Self {
        Self { node, common }
    }

    pub(super) async fn run(self) {
        loop {
            let head = self.common.view.ready().await.head().number;
            // Not even that of the head, or no answer: nothing was learned.
            let Ok(Some(lowest)) = self.confirmed_lowest_state(head).await else {
                sleep(ASK_AGAIN_AFTER).await;
                continue;
            };
            self.node.set_lowest_state(lowest);
            let states = Some(head - lowest).filter(|&states| lowest > 0 && states <= PRUNED_STATES_MAX);
            self.wait(Instant::now() + self.common.settings.probe_every, states).await;
        }
    }

    /// The lowest block with state, as two looks find it; `None` if they contradict each other.
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

    /// Until the next look; meanwhile the lowest state of a pruning node follows the head.
    async fn wait(&self, until: Instant, states: Option<u64>) {
        let mut changes = self.common.view.changes();
        while let Ok(Ok(())) = timeout_at(until, changes.changed()).await {
            let head = changes.borrow_and_update().as_ref().map(|canon| canon.head().number);
            if let (Some(states), Some(head)) = (states, head) {
                self.node.set_lowest_state(head.saturating_sub(states));
            }
        }
    }

    fn questions(&self) -> Questions<'_, W> {
        let Common { settings, headers, .. } = &*self.common;
        Questions { node: &*self.node, timeout: settings.poll_timeout, headers }
    }
}

/// The lowest block with state, `None` if not even `head` has it.
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
