//! The canonical chain as the nodes agree on it.
//!
//! Nodes report their heads together with the blocks below them. A block becomes the head when a quorum of the nodes has it, as
//! its own head or below it. How many nodes that takes does not depend on how many are up. The head only leaves its branch for
//! another one that a quorum has. Readers get a [`CanonicalChain`], whose head and window never
//! change.

mod block; // a block as a node has reported it
mod branch; // a head with its ancestors, as a watcher reports it
mod canonical_chain; // the chain at one moment
mod deep_blocks; // canonical blocks below the window
mod marks; // safe and finalized
mod state; // the reports of all nodes, and the decision
mod tree; // blocks linked by their parents
mod votes; // which node has which head

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

pub use block::{BlockLists, SeenBlock};
pub(crate) use branch::{BranchLink, HeadBranch};
pub use canonical_chain::{CanonicalChain, WINDOW_BLOCKS};
use state::ViewState;

use crate::trust::TrustEpoch;
use crate::{BlockId, NodeId};

/// A head that has not changed for less than this time is never stale, however short the block time.
const STALE_AFTER_MIN: Duration = Duration::from_secs(30);
/// The head is stale when it has not changed for this many block times.
const STALE_AFTER_BLOCKS: u32 = 10;
/// A node that answers with an older block may be another one behind the same URL, or one that is late: the next block tells.
const ROLLBACK_AFTER_MIN: Duration = Duration::from_secs(1);
/// Block times after which nodes are believed to have gone back.
const ROLLBACK_AFTER_BLOCKS: u32 = 2;

/// How the view decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct ViewSettings {
    /// Nodes that must agree on what nothing proves. The default is a majority of all nodes, whether they are up or not.
    pub quorum: Option<usize>,
    /// A block that the chain must have. A chain with another block of this number is refused, however many nodes have it.
    pub checkpoint: Option<BlockId>,
    /// How long the head may stay unchanged; zero for ever. The default is ten block times, and at least 30 s, and for ever if the
    /// nodes mine when they are told to.
    pub stale_after: Option<Duration>,
    /// How long the heads of a quorum must be blocks below ours until we go back, too. The default is two block times, and at
    /// least 1 s.
    pub rollback_after: Option<Duration>,
}

/// The view. It is cheap to read, and `watch` feeds it.
#[derive(Debug)]
pub struct NodesView {
    settings: ViewSettings,
    chain: ArcSwapOption<CanonicalChain>,
    changes: watch::Sender<Option<Arc<CanonicalChain>>>,
    state: Mutex<ViewState>,
    /// The number of the last request to poll all nodes at once.
    poll_requests: watch::Sender<u64>,
    /// Changes with each poll.
    polls: watch::Sender<u64>,
    trust: TrustEpoch,
}

impl NodesView {
    pub fn new(settings: ViewSettings) -> Arc<Self> {
        let trust = TrustEpoch::default();
        let state = Mutex::new(ViewState::new(settings.quorum, settings.checkpoint, trust.clone()));
        let chain = ArcSwapOption::empty();
        let changes = watch::Sender::new(None);
        let (poll_requests, polls) = (watch::Sender::new(0), watch::Sender::new(0));
        Arc::new(Self { settings, chain, changes, state, poll_requests, polls, trust })
    }

    /// The present chain. `None` before the first head.
    pub fn canonical_chain(&self) -> Option<Arc<CanonicalChain>> {
        self.chain.load_full()
    }

    /// The present chain, without counting a reference. It must not be held across an await.
    pub fn peek(&self) -> Guard<Option<Arc<CanonicalChain>>> {
        self.chain.load()
    }

    pub fn head(&self) -> Option<BlockId> {
        self.peek().as_ref().map(|chain| chain.head())
    }

    /// The chain that the nodes have agreed on.
    pub(crate) fn chain_id(&self) -> Option<u64> {
        self.state.lock().chain_id
    }

    /// A reorganisation raises it, and a mark that moves back.
    pub(crate) fn trust_epoch(&self) -> &TrustEpoch {
        &self.trust
    }

    /// How many nodes must agree.
    pub fn quorum(&self) -> usize {
        self.state.lock().quorum()
    }

    /// Notifies of each change of head, safe or finalized. A slow receiver sees only the newest chain.
    pub fn changes(&self) -> watch::Receiver<Option<Arc<CanonicalChain>>> {
        self.changes.subscribe()
    }

    /// Waits for the first head.
    pub async fn ready(&self) -> Arc<CanonicalChain> {
        let mut changes = self.changes.subscribe();
        loop {
            if let Some(chain) = self.canonical_chain() {
                return chain;
            }
            // It cannot be closed: the sender is ours.
            let _open = changes.changed().await;
        }
    }

    /// Waits until this block is not canonical any more.
    pub async fn wait_until_removed(&self, block: BlockId) {
        let mut changes = self.changes.subscribe();
        let is_removed =
            |chain: &CanonicalChain| chain.contradicts(&[block]) || chain.head().number < block.number;
        loop {
            if changes.borrow_and_update().as_ref().is_some_and(|chain| is_removed(chain)) {
                return;
            }
            // It cannot be closed: the sender is ours.
            let _open = changes.changed().await;
        }
    }

    /// Lets all nodes be polled now, because nodes seem to lack a block of this chain. Returns the number of this request.
    pub(crate) fn request_polls(&self) -> u64 {
        let mut number = 0;
        self.poll_requests.send_modify(|requests| {
            *requests += 1;
            number = *requests;
        });
        number
    }

    /// Waits until all nodes were polled and none of them has left the branch of this block. While one has, the others may be about
    /// to, so they are polled again.
    pub async fn wait_until_settled(&self, block: BlockId) {
        let mut polls = self.polls.subscribe();
        loop {
            let request = self.request_polls();
            while !self.state.lock().has_polled_all(request) {
                // It cannot be closed: the sender is ours.
                let _open = polls.changed().await;
            }
            if !self.state.lock().is_contested(block) {
                return;
            }
        }
    }

    /// Serves blocks that were known before a restart until nodes report theirs: a head, and its ancestors downwards. Does nothing if
    /// nodes have reported theirs.
    pub fn restore(&self, head: SeenBlock, downwards: Vec<SeenBlock>) {
        let mut state = self.state.lock();
        if let Some(chain) = state.restore(head, downwards) {
            self.publish(Some(chain));
        }
    }

    /// Whether the chain is the one from before a restart, because no quorum has reported its own yet.
    fn is_restored(&self) -> bool {
        self.state.lock().is_restored
    }

    /// Time since the head changed last. `None` before the first head.
    pub fn head_age(&self) -> Option<Duration> {
        self.head()?;
        Some(self.state.lock().head_changed_at.elapsed())
    }

    /// How often the chain was reorganised since the start, and how long ago it was last.
    pub fn reorganisations(&self) -> (u64, Option<Duration>) {
        let (count, last) = self.state.lock().reorganisations;
        (count, last.map(|last| last.elapsed()))
    }

    /// Whether the head has not changed for too long, or there is none yet.
    pub fn is_stale(&self) -> bool {
        let is_too_old = |age| self.stale_after().is_some_and(|stale_after| age > stale_after);
        self.is_restored() || self.head_age().is_none_or(is_too_old)
    }

    /// How long the head may stay unchanged. `None` if it may for ever.
    pub fn stale_after(&self) -> Option<Duration> {
        if let Some(stale_after) = self.settings.stale_after {
            return Some(stale_after).filter(|stale_after| !stale_after.is_zero());
        }
        if self.mines_on_demand() {
            return None;
        }
        let block_time = self.block_time().unwrap_or_default();
        Some(STALE_AFTER_MIN.max(block_time.saturating_mul(STALE_AFTER_BLOCKS)))
    }

    /// Whether nodes with the head `to` have removed the blocks up to `from`, above it. Other nodes than development nodes that are
    /// further behind have lost their data and catch up.
    pub fn has_gone_back(&self, from: u64, to: u64) -> bool {
        let removed = from.saturating_sub(to);
        removed > 0 && (removed < WINDOW_BLOCKS as u64 || self.mines_on_demand())
    }

    /// Whether all nodes are development nodes, which do what they are told.
    pub fn mines_on_demand(&self) -> bool {
        self.state.lock().mines_on_demand()
    }

    /// How long the heads of a quorum must be below ours until we go back, too.
    fn rollback_after(&self) -> Duration {
        let adaptive = || {
            let block_time = self.block_time().unwrap_or_default();
            ROLLBACK_AFTER_MIN.max(block_time.saturating_mul(ROLLBACK_AFTER_BLOCKS))
        };
        self.settings.rollback_after.unwrap_or_else(adaptive)
    }

    pub(crate) fn block_time(&self) -> Option<Duration> {
        self.peek().as_ref().and_then(|chain| chain.block_time())
    }
}

/// For watchers.
impl NodesView {
    /// Sets which nodes there are. Those that stay keep their votes, and the votes of those that are gone do not count any more.
    pub(crate) fn set_nodes(&self, nodes: &[NodeId]) {
        let is_changed = self.state.lock().set_nodes(nodes);
        if is_changed {
            self.decide();
            self.polls.send_modify(|polls| *polls += 1);
        }
    }

    /// Sets the chain that the nodes agree on, and its block 0 if they agree on that. If it was another chain until now, everything
    /// known of that is dropped.
    pub(crate) fn set_identity(&self, chain_id: u64, genesis: Option<B256>) {
        let mut state = self.state.lock();
        let before = state.chain_id;
        let known = state.genesis.map(|genesis| genesis.hash);
        let is_other_genesis = matches!((known, genesis), (Some(known), Some(genesis)) if known != genesis);
        if before.is_some_and(|before| before != chain_id) || is_other_genesis {
            tracing::error!(
                before = before.unwrap_or_default(),
                chain_id,
                ?genesis,
                "most nodes are of another chain now; starting over with that chain"
            );
            state.start_over();
            self.publish(None);
        }
        state.chain_id = Some(chain_id);
        if let Some(hash) = genesis {
            state.genesis = Some(BlockId { number: 0, hash });
        }
        drop(state);
        self.decide();
    }

    /// The head of a chain that was refused because it does not have the checkpoint.
    pub fn refused_head(&self) -> Option<BlockId> {
        self.state.lock().refused_head
    }

    pub fn checkpoint(&self) -> Option<BlockId> {
        self.settings.checkpoint
    }

    /// The highest canonical block that a node has, or its own head if that is above the canonical one.
    pub(crate) fn reach(&self, node: NodeId) -> Option<BlockId> {
        self.state.lock().reach(node)
    }

    /// Sets whether the reports of a node count.
    pub(crate) fn set_counted(&self, node: NodeId, is_counted: bool) {
        let changed = self.state.lock().set_counted(node, is_counted);
        if changed {
            self.decide();
            self.polls.send_modify(|polls| *polls += 1);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_counted(&self, node: NodeId) -> bool {
        self.state.lock().is_counted(node)
    }

    /// Notifies of each request to poll all nodes.
    pub(crate) fn poll_requests(&self) -> watch::Receiver<u64> {
        self.poll_requests.subscribe()
    }

    /// Records that a node was polled after this request.
    pub(crate) fn record_poll(&self, node: NodeId, request: u64) {
        let has_gone_back = {
            let mut state = self.state.lock();
            state.record_poll(node, request);
            state.has_gone_back()
        };
        // A quorum that stays where it went back to reports nothing new.
        if has_gone_back {
            self.decide();
        }
        self.polls.send_modify(|polls| *polls += 1);
    }

    /// Records whether the program of a node mines when it is told to.
    pub(crate) fn set_mines_on_demand(&self, node: NodeId, mines_on_demand: bool) {
        self.state.lock().set_mines_on_demand(node, mines_on_demand);
    }

    /// Whether a branch is linked to known blocks, or which block is missing.
    pub(crate) fn link(&self, branch: &HeadBranch) -> BranchLink {
        self.state.lock().link(branch)
    }

    /// Reports the head of a node. It counts only if its branch is linked.
    pub(crate) fn report(&self, node: NodeId, branch: HeadBranch) -> BranchLink {
        let link = self.state.lock().report(node, branch);
        if link == BranchLink::Linked {
            self.decide();
        }
        link
    }

    /// Records which blocks a node calls safe and finalized.
    pub(crate) fn record_marks(&self, node: NodeId, safe: Option<BlockId>, finalized: Option<BlockId>) {
        self.state.lock().record_marks(node, safe, finalized);
        self.decide();
    }

    /// Updates the chain after a report.
    fn decide(&self) {
        let rollback_after = self.rollback_after();
        let mut state = self.state.lock();
        if let Some(chain) = state.decide(Instant::now(), rollback_after) {
            self.publish(Some(chain));
        }
    }

    /// Publishes a chain. The caller holds the lock of the state, so that an older chain cannot replace a newer one.
    fn publish(&self, chain: Option<Arc<CanonicalChain>>) {
        let agreement = |chain: &Arc<CanonicalChain>| (chain.epoch(), chain.revisions());
        let before = self.chain.swap(chain.clone());
        if before.as_ref().map(agreement) != chain.as_ref().map(agreement) {
            self.trust.raise();
        }
        self.changes.send_replace(chain);
    }
}
