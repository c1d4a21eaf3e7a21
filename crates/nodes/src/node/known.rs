//! What a node is known to have. The watcher polls most of it; the rest is learned from what the node refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::RwLock;

use crate::call::BlockId;
use crate::left_out::LeftOut;

/// A node that lacks the state of one of its newest blocks has not lost history: the block was reorganised away, or it is late with
/// it. Live networks have reorganised as many.
const NEW_BLOCKS: u64 = 8;
/// The most methods that are remembered as missing. There are not many more in the method table.
const LACKING_MAX: usize = 64;

/// The method that proves state. Nodes that have the state of old blocks may be unable to prove it: their tries are newer.
pub(crate) const STATE_PROOF_METHOD: &str = "eth_getProof";

/// What a node said that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lack {
    Block,
    State,
    Method,
}

/// Whether a node belongs to this pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody has asked for its chain id yet.
    Unchecked,
    Member,
    /// It is of another chain, and left out.
    Stranger,
}

#[derive(Debug)]
pub struct Known {
    standing: AtomicU8,
    left_out: ArcSwapOption<LeftOut>,
    blocks: RwLock<Blocks>,
    /// Number of the head, plus one; zero if there is none. Apart from the others because every call reads it.
    head_above: AtomicU64,
    lowest_state: AtomicU64,
    /// The lowest block whose state it may be able to prove.
    lowest_proof: AtomicU64,
    /// The widest range of blocks that it searches for logs.
    log_range: AtomicU64,
    lacking: ArcSwap<Vec<&'static str>>,
    client_version: ArcSwapOption<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Blocks {
    head: Option<BlockId>,
    safe: Option<BlockId>,
    finalized: Option<BlockId>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            standing: AtomicU8::new(0),
            left_out: ArcSwapOption::empty(),
            blocks: RwLock::default(),
            head_above: AtomicU64::new(0),
            lowest_state: AtomicU64::new(0),
            lowest_proof: AtomicU64::new(0),
            log_range: AtomicU64::new(u64::MAX),
            lacking: ArcSwap::default(),
            client_version: ArcSwapOption::empty(),
        }
    }
}

impl Known {
    pub fn standing(&self) -> Standing {
        match self.standing.load(Relaxed) {
            0 => Standing::Unchecked,
            1 => Standing::Member,
            _ => Standing::Stranger,
        }
    }

    #[cfg(test)]
    pub(crate) fn set_standing(&self, standing: Standing) {
        self.standing.store(standing as u8, Relaxed);
    }

    /// It is of this chain, and may be asked.
    pub fn welcome(&self) {
        self.standing.store(Standing::Member as u8, Relaxed);
        self.left_out.store(None);
    }

    /// It is not to be asked anything.
    pub fn leave_out(&self, reason: LeftOut) {
        self.standing.store(Standing::Stranger as u8, Relaxed);
        self.left_out.store(Some(Arc::new(reason)));
    }

    /// Why it is left out.
    pub fn left_out(&self) -> Option<Arc<LeftOut>> {
        self.left_out.load_full()
    }

    pub fn head(&self) -> Option<BlockId> {
        self.blocks.read().head
    }

    /// Number of the newest block that it is known to have.
    pub fn head_number(&self) -> Option<u64> {
        self.head_above.load(Relaxed).checked_sub(1)
    }

    pub fn set_head(&self, head: BlockId) {
        let mut blocks = self.blocks.write();
        blocks.head = Some(head);
        self.head_above.store(head.number.saturating_add(1), Relaxed);
    }

    pub fn safe(&self) -> Option<BlockId> {
        self.blocks.read().safe
    }

    pub fn set_safe(&self, safe: BlockId) {
        self.blocks.write().safe = Some(safe);
    }

    pub fn finalized(&self) -> Option<BlockId> {
        self.blocks.read().finalized
    }

    pub fn set_finalized(&self, finalized: BlockId) {
        self.blocks.write().finalized = Some(finalized);
    }

    pub fn lowest_state(&self) -> u64 {
        self.lowest_state.load(Relaxed)
    }

    pub fn set_lowest_state(&self, block: u64) {
        self.lowest_state.store(block, Relaxed);
    }

    /// The lowest block whose state it has, in the form in which this method needs it.
    pub fn lowest_state_for(&self, method: &str) -> u64 {
        match method {
            STATE_PROOF_METHOD => self.lowest_state().max(self.lowest_proof.load(Relaxed)),
            _ => self.lowest_state(),
        }
    }

    pub fn log_range(&self) -> u64 {
        self.log_range.load(Relaxed)
    }

    /// Narrower until the node is greeted again; never below one block.
    pub fn narrow_log_range(&self, blocks: u64) {
        self.log_range.fetch_min(blocks.max(1), Relaxed);
    }

    pub fn client_version(&self) -> Option<Arc<String>> {
        self.client_version.load_full()
    }

    pub fn set_client_version(&self, version: String) {
        self.client_version.store(Some(Arc::new(version)));
    }

    pub fn lacks(&self, method: &str) -> bool {
        self.lacking.load().contains(&method)
    }

    /// A node that was exchanged for another version may know its methods again, and search wider ranges.
    pub fn forget_lacks(&self) {
        self.lacking.store(Arc::default());
        self.lowest_proof.store(0, Relaxed);
        self.log_range.store(u64::MAX, Relaxed);
    }

    /// Learns from a refusal of a call that needed `block`.
    pub fn learn(&self, lack: Lack, method: &'static str, block: Option<u64>) {
        match (lack, block) {
            (Lack::Method, _) => self.add_lacking(method),
            // It can prove the state of its newest block, or of none.
            (Lack::State, Some(block)) if method == STATE_PROOF_METHOD => {
                let lowest = block.saturating_add(1).min(self.head_number().unwrap_or(u64::MAX));
                self.lowest_proof.fetch_max(lowest, Relaxed);
            }
            (Lack::State, Some(block)) if self.is_new(block) => {}
            (Lack::State, Some(block)) => _ = self.lowest_state.fetch_max(block.saturating_add(1), Relaxed),
            // Which blocks it has is for its watcher to say: this one may be of a branch that it has left.
            (Lack::Block, _) | (Lack::State, None) => {}
        }
    }

    fn add_lacking(&self, method: &'static str) {
        self.lacking.rcu(|lacking| {
            let mut longer = Vec::clone(lacking);
            if !longer.contains(&method) && longer.len() < LACKING_MAX {
                longer.push(method);
            }
            longer
        });
    }

    fn is_new(&self, block: u64) -> bool {
        self.head_number().is_some_and(|head| block.saturating_add(NEW_BLOCKS) > head)
    }
}
