//! When it is found out what a node has of old blocks, and the lowest block whose state it has.
//!
//! The lowest state is found by binary search, because a node has the states of all blocks from some number on. Nodes that prune
//! keep a fixed number of states below their head, so their lowest state moves with the head until the next search.

use std::sync::Arc;
use std::time::Duration;

use tokio::join;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::history::{HistoryProbe, heights};
use super::questions::{BlockSelector, Questions, SentTransaction};
use super::{WatchContext, Watched};
use crate::node::HistoryReaches;
use crate::node_fault::NodeFault;

/// A node that has at most this many states prunes continuously.
const PRUNED_STATES_MAX: u64 = 1_024;
/// Pause before a second search confirms that a node lacks old states, because the first failure may be temporary.
const CONFIRMED_AFTER: Duration = Duration::from_secs(5);
/// Pause before the next search after one that failed. It doubles for a node that never says what it has of old blocks, because a
/// search may take a hundred calls.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(15);

/// How long one answer may take. Nodes that keep old data on slow disks take long, and are needed most.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// How often it is checked whether the node was lost, so that it is looked at anew.
const LOSS_CHECKED_EVERY: Duration = Duration::from_secs(1);

/// How much of what a node has of old blocks was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FoundHistory {
    Everything,
    Some,
    /// It has answered no question about that.
    Nothing,
}

#[derive(Debug)]
pub(super) struct Prober<W> {
    node: Arc<W>,
    context: Arc<WatchContext>,
    history: HistoryProbe,
}

impl<W: Watched> Prober<W> {
    pub(super) fn new(node: Arc<W>, context: Arc<WatchContext>) -> Self {
        Self { node, context, history: HistoryProbe::default() }
    }

    pub(super) async fn run(mut self) {
        let mut again_after = ASK_AGAIN_AFTER;
        loop {
            let head = self.context.view.ready().await.head().number;
            let mut history = std::mem::take(&mut self.history);
            let (found, lowest) =
                join!(self.probe_history(&mut history, head), self.confirmed_lowest_state(head));
            self.history = history;
            // It does not even have the state of the head, or it did not answer: nothing was found out.
            let Ok(Some(lowest)) = lowest else {
                self.wait_after_failure().await;
                continue;
            };
            if found == FoundHistory::Nothing {
                self.node.set_history(HistoryReaches::default(), head);
            }
            self.node.set_lowest_state(lowest);
            let is_complete = found == FoundHistory::Everything;
            let states = Some(head - lowest).filter(|&states| lowest > 0 && states <= PRUNED_STATES_MAX);
            let probe_every = self.context.settings.probe_every;
            let pause = if is_complete { probe_every } else { again_after };
            again_after = if is_complete { ASK_AGAIN_AFTER } else { (again_after * 2).min(probe_every) };
            self.wait(Instant::now() + pause, states).await;
        }
    }

    /// Finds out what the node has of old blocks, as far as it answers.
    async fn probe_history(&self, history: &mut HistoryProbe, head: u64) -> FoundHistory {
        let (reaches, is_complete) = history.run(&self.questions(), head).await;
        let found = match is_complete {
            true => FoundHistory::Everything,
            false if reaches == HistoryReaches::default() => return FoundHistory::Nothing,
            false => FoundHistory::Some,
        };
        self.node.set_history(reaches, head);
        found
    }

    /// Waits for the next search after one that failed. A node that was lost is looked at as soon as it is back.
    async fn wait_after_failure(&self) {
        let until = Instant::now() + ASK_AGAIN_AFTER;
        if !self.node.is_lost() {
            return sleep_until(until).await;
        }
        let is_back = async {
            while self.node.is_lost() {
                sleep(LOSS_CHECKED_EVERY).await;
            }
        };
        tokio::select! {
            () = sleep_until(until) => {}
            () = is_back => {}
            () = self.listen() => {}
        }
    }

    /// Asks a node that its watcher has lost whether it is there, and waits for slow answers. That it has replied is recorded with
    /// each reply.
    async fn listen(&self) {
        loop {
            let _unknown_until_it_replies = self.questions().chain_id().await;
            sleep(LOSS_CHECKED_EVERY).await;
        }
    }

    /// The lowest block with state, by two searches. `None` if they contradict each other.
    async fn confirmed_lowest_state(&self, head: u64) -> Result<Option<u64>, NodeFault> {
        let questions = self.questions();
        let lowest_sent = lowest_sent(&questions, head).await?;
        let first = lowest_state(&questions, lowest_sent.as_ref(), head).await?;
        if first == Some(0) {
            return Ok(first);
        }
        sleep(CONFIRMED_AFTER).await;
        let second = lowest_state(&questions, lowest_sent.as_ref(), head).await?;
        // A node that prunes may have dropped some states in between.
        Ok(second.filter(|second| first.is_some_and(|first| first <= *second)))
    }

    /// Waits for the next search, or until the node was lost. Meanwhile the lowest state of a pruning node follows the head.
    async fn wait(&self, until: Instant, states: Option<u64>) {
        let mut changes = self.context.view.changes();
        while Instant::now() < until && self.node.is_history_known() {
            let check_at = until.min(Instant::now() + LOSS_CHECKED_EVERY);
            match timeout_at(check_at, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_closed)) => return,
                Err(_elapsed) => continue,
            }
            let head = changes.borrow_and_update().as_ref().map(|canonical| canonical.head().number);
            if let (Some(states), Some(head)) = (states, head) {
                self.node.set_lowest_state(head.saturating_sub(states));
            }
        }
    }

    fn questions(&self) -> Questions<'_, W> {
        let headers = &self.context.headers;
        Questions { node: &*self.node, timeout: ANSWER_TIME_MAX, headers, shows_presence: false }
    }
}

/// The lowest block with state, by one search. `None` if not even `head` has it.
pub(super) async fn find_lowest_state<W: Watched>(
    questions: &Questions<'_, W>,
    head: u64,
) -> Result<Option<u64>, NodeFault> {
    let lowest_sent = lowest_sent(questions, head).await?;
    lowest_state(questions, lowest_sent.as_ref(), head).await
}

/// The lowest transaction that shows whether a node has the state of its block and of those above, as far as is looked.
async fn lowest_sent<W: Watched>(
    questions: &Questions<'_, W>,
    head: u64,
) -> Result<Option<(u64, SentTransaction)>, NodeFault> {
    for number in heights(head) {
        if let Some(sent) = questions.last_transaction(number).await? {
            return Ok(Some((number, sent)));
        }
    }
    Ok(None)
}

/// The lowest block with state. `None` if not even `head` has it. Nodes may return zero for states that they have dropped, which
/// shows only at accounts that are known to be there. Blocks may be empty, so it is the same account in all of them.
async fn lowest_state<W: Watched>(
    questions: &Questions<'_, W>,
    lowest_sent: Option<&(u64, SentTransaction)>,
    head: u64,
) -> Result<Option<u64>, NodeFault> {
    let sent = lowest_sent.map(|(_, sent)| sent);
    let mut without = 0;
    if let Some((number, _)) = lowest_sent
        && !questions.has_state(*number, sent).await?
    {
        without = *number;
    } else if let Some((number, _)) = lowest_sent.filter(|(number, _)| *number > 1)
        && questions.block_if_known(BlockSelector::Number(1)).await?.is_none()
    {
        // Nothing can be shown of the states of blocks that it has dropped.
        return Ok(Some(*number));
    } else if questions.has_state(0, None).await? {
        return Ok(Some(0));
    }
    if !questions.has_state(head, sent).await? {
        return Ok(None);
    }
    let mut with = head;
    while with - without > 1 {
        let middle = without + (with - without) / 2;
        let sent = lowest_sent.filter(|(number, _)| *number <= middle).map(|(_, sent)| sent);
        if questions.has_state(middle, sent).await? { with = middle } else { without = middle }
    }
    Ok(Some(with))
}
