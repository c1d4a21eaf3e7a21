//! The canonical chain as the nodes agree on it.
//!
//! Nodes show their heads together with the blocks below them. A block becomes the head when a quorum of the nodes has
//! it, as its own head or below it; how many that takes does not depend on how many are up. The head goes forward; it leaves its branch only for another one that a quorum
//! has. What is served is an immutable picture of one moment, read without a lock and swapped as a whole.

mod block; // a block as it is kept
mod branch; // a head with its ancestors, as a watcher brings it
mod canon; // one moment of the chain
mod learned; // deep blocks
mod marks; // safe and finalized
mod state; // what is known, and what follows from it
mod tree; // blocks linked by their parents
mod votes; // who has which head

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use alloy_primitives::B256;
use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

pub use block::{BlockLists, SeenBlock};
pub(crate) use branch::{Branch, Link};
pub use canon::{Canon, WINDOW_BLOCKS};
pub use learned::LEARNED_BLOCKS_MAX;
use state::State;

use crate::BlockId;

/// A head that stands still for less than this is never called stale, however quick the chain is otherwise.
const STALE_AFTER_MIN: Duration = Duration::from_secs(30);
/// Blocks that must have been missed before the head is called stale.
const STALE_AFTER_BLOCKS: u32 = 10;

/// How the view decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Nodes that must agree before anything is served that nothing proves; a majority of all nodes, whether they are up or
    /// not, unless said otherwise.
    pub quorum: Option<usize>,
    /// A block that the chain must have: a chain with another one in its place is refused, however many nodes have it.
    pub checkpoint: Option<BlockId>,
    /// How long the head may stand still; ten blocks, and at least half a minute, unless said otherwise.
    pub stale_after: Option<Duration>,
}

/// The view. Cheap to read from everywhere; fed by `watch`.
#[derive(Debug)]
pub struct View {
    settings: Settings,
    canon: ArcSwapOption<Canon>,
    changes: watch::Sender<Option<Arc<Canon>>>,
    state: Mutex<State>,
    chain_id: AtomicU64,
    /// How often the watchers were told to look at their nodes before the next poll is due.
    looks: watch::Sender<u64>,
    /// Changes with each poll.
    polls: watch::Sender<u64>,
}

impl View {
    pub fn new(settings: Settings) -> Arc<Self> {
        let state = Mutex::new(State::new(settings.quorum, settings.checkpoint));
        let canon = ArcSwapOption::empty();
        let (changes, chain_id) = (watch::Sender::new(None), AtomicU64::new(0));
        let (looks, polls) = (watch::Sender::new(0), watch::Sender::new(0));
        Arc::new(Self { settings, canon, changes, state, chain_id, looks, polls })
    }

    /// The chain of this moment, to be held as long as needed. `None` before the first head.
    pub fn canon(&self) -> Option<Arc<Canon>> {
        self.canon.load_full()
    }

    /// The same for a quick look, without counting a reference. Not to be held across an await.
    pub fn peek(&self) -> Guard<Option<Arc<Canon>>> {
        self.canon.load()
    }

    pub fn head(&self) -> Option<BlockId> {
        self.peek().as_ref().map(|canon| canon.head())
    }

    /// The chain that this is; zero before the nodes have agreed on one.
    pub fn chain_id(&self) -> u64 {
        self.chain_id.load(Relaxed)
    }

    /// How many nodes must agree.
    pub fn quorum(&self) -> usize {
        self.state.lock().quorum()
    }

    /// Tells each change of head, safe or finalized. A slow receiver sees the newest and misses those between.
    pub fn changes(&self) -> watch::Receiver<Option<Arc<Canon>>> {
        self.changes.subscribe()
    }

    /// Waits for the first head.
    pub async fn ready(&self) -> Arc<Canon> {
        let mut changes = self.changes.subscribe();
        loop {
            if let Some(canon) = self.canon() {
                return canon;
            }
            // It cannot be closed: the sender is ours.
            let _open = changes.changed().await;
        }
    }

    /// Waits until the chain does not have this block any more.
    pub async fn left(&self, block: BlockId) {
        let mut changes = self.changes.subscribe();
        let has_left = |canon: &Canon| canon.contradicts(&[block]) || canon.head().number < block.number;
        loop {
            if changes.borrow_and_update().as_ref().is_some_and(|canon| has_left(canon)) {
                return;
            }
            // It cannot be closed: the sender is ours.
            let _open = changes.changed().await;
        }
    }

    /// Lets the watchers look at their nodes now, because nodes do not seem to have a block of this chain any more. Gives the
    /// number of this look.
    pub(crate) fn look(&self) -> u64 {
        let mut number = 0;
        self.looks.send_modify(|looks| {
            *looks += 1;
            number = *looks;
        });
        number
    }

    /// Waits until all nodes were looked at and none of them has left the branch of this block: then it is there to stay. As long
    /// as one has, the others may be about to, and they are looked at again.
    pub async fn stays(&self, block: BlockId) {
        let mut polls = self.polls.subscribe();
        loop {
            let look = self.look();
            while !self.state.lock().has_looked_at_all(look) {
                // It cannot be closed: the sender is ours.
                let _open = polls.changed().await;
            }
            if !self.state.lock().is_contested(block) {
                return;
            }
        }
    }

    /// Takes blocks that were known before a restart for the chain until nodes show theirs: a head, and its ancestors
    /// downwards. Does nothing if nodes have shown theirs.
    pub fn restore(&self, head: SeenBlock, downwards: Vec<SeenBlock>) {
        let mut state = self.state.lock();
        if let Some(canon) = state.restore(head, downwards) {
            self.canon.store(Some(Arc::clone(&canon)));
            self.changes.send_replace(Some(canon));
        }
    }

    /// Whether the chain is what was known before a restart, because no node has shown its own yet.
    pub fn is_restored(&self) -> bool {
        self.state.lock().is_restored
    }

    /// How long the head has been standing still; `None` before the first.
    pub fn head_age(&self) -> Option<Duration> {
        self.head()?;
        Some(self.state.lock().moved.elapsed())
    }

    /// Whether the head has been standing still for too long, or there is none yet.
    pub fn is_stale(&self) -> bool {
        self.is_restored() || self.head_age().is_none_or(|age| age > self.stale_after())
    }

    /// How long the head may stand still.
    pub fn stale_after(&self) -> Duration {
        let adaptive = || {
            let block_time = self.block_time().unwrap_or_default();
            STALE_AFTER_MIN.max(block_time.saturating_mul(STALE_AFTER_BLOCKS))
        };
        self.settings.stale_after.unwrap_or_else(adaptive)
    }

    pub fn block_time(&self) -> Option<Duration> {
        self.peek().as_ref().and_then(|canon| canon.block_time())
    }
}

/// What watchers say.
impl View {
    /// There are this many nodes, known by their place from now on.
    pub(crate) fn enrol(&self, nodes: usize) {
        self.state.lock().enrol(nodes);
    }

    /// The chain that the nodes agree on, and its block 0 if they do on that. If it was another chain until now, nothing is left
    /// of that.
    pub(crate) fn set_identity(&self, chain_id: u64, genesis: Option<B256>) {
        let mut state = self.state.lock();
        let before = self.chain_id.swap(chain_id, Relaxed);
        let known = state.genesis.map(|genesis| genesis.hash);
        let is_other_genesis = matches!((known, genesis), (Some(known), Some(genesis)) if known != genesis);
        if before != 0 && before != chain_id || is_other_genesis {
            tracing::error!(before, chain_id, ?genesis, "a majority of the nodes is of another chain now");
            state.start_over();
            self.canon.store(None);
            self.changes.send_replace(None);
        }
        if let Some(hash) = genesis {
            state.genesis = Some(BlockId { number: 0, hash });
        }
        drop(state);
        self.decide();
    }

    /// The block of a chain that was refused because it does not have the checkpoint.
    pub fn refused(&self) -> Option<BlockId> {
        self.state.lock().refused
    }

    pub fn checkpoint(&self) -> Option<BlockId> {
        self.settings.checkpoint
    }

    /// How far a node has the canonical chain: up to its own head, unless it left that chain further down.
    pub(crate) fn reach(&self, node: usize) -> Option<BlockId> {
        self.state.lock().reach(node)
    }

    /// Whether a node's word counts.
    pub(crate) fn count(&self, node: usize, counted: bool) {
        let changed = self.state.lock().count(node, counted);
        if changed {
            self.decide();
            self.polls.send_modify(|polls| *polls += 1);
        }
    }

    /// Tells of each look.
    pub(crate) fn looks(&self) -> watch::Receiver<u64> {
        self.looks.subscribe()
    }

    /// A node was polled after this look was asked for.
    pub(crate) fn looked_at(&self, node: usize, look: u64) {
        self.state.lock().looked_at(node, look);
        self.polls.send_modify(|polls| *polls += 1);
    }

    /// Whether a branch hangs together with what is known, or what is missing.
    pub(crate) fn link(&self, branch: &Branch) -> Link {
        self.state.lock().link(branch)
    }

    /// A node has this head. It counts only if it is linked.
    pub(crate) fn report(&self, node: usize, branch: Branch) -> Link {
        let link = self.state.lock().report(node, branch);
        if link == Link::Linked {
            self.decide();
        }
        link
    }

    /// What a node calls safe and finalized.
    pub(crate) fn mark(&self, node: usize, safe: Option<BlockId>, finalized: Option<BlockId>) {
        self.state.lock().mark(node, safe, finalized);
        self.decide();
    }

    /// Draws the conclusions from all that was said.
    fn decide(&self) {
        let mut state = self.state.lock();
        if let Some(canon) = state.decide(Instant::now()) {
            // Swapped under the lock, so that an older picture cannot overtake a newer one.
            self.canon.store(Some(Arc::clone(&canon)));
            self.changes.send_replace(Some(canon));
        }
    }
}
