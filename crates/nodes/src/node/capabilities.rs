//! What a node is known to have. The watcher polls most of it; the rest is learned from what the node refuses.

use std::sync::Arc;

use parking_lot::Mutex;

use super::NodeState;
use crate::call::BlockId;
use crate::exclusion::ExclusionReason;

/// A node may lack the state of one of its newest blocks because the block was reorganised away, or because it is late with it.
/// That says nothing about older states. Live networks have reorganised as many blocks.
const NEW_BLOCKS: u64 = 8;
/// The most methods that are remembered as missing. There are not many more in the method table.
const MISSING_METHODS_MAX: usize = 64;

/// The method that proves state. A node may have the state of an old block and be unable to prove it, because its tries are newer.
pub(crate) const STATE_PROOF_METHOD: &str = "eth_getProof";

/// What a node has said that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MissingCapability {
    Block,
    State,
    Method,
}

/// Whether a node belongs to this pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Membership {
    /// Its chain is not known yet.
    #[default]
    Unchecked,
    Member,
    /// It must not be asked, for example because it is of another chain.
    Excluded,
}

/// What a node has, and whether it may be asked at all. Each method takes the lock of the node.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities<'a>(pub(super) &'a Mutex<NodeState>);

impl Capabilities<'_> {
    pub(crate) fn membership(&self) -> Membership {
        self.0.lock().capabilities.membership
    }

    #[cfg(test)]
    pub(crate) fn set_membership(&self, membership: Membership) {
        self.0.lock().capabilities.membership = membership;
    }

    /// Lets the node be asked, because it is of this chain.
    pub(crate) fn admit(&self) {
        let state = &mut self.0.lock().capabilities;
        (state.membership, state.exclusion) = (Membership::Member, None);
    }

    /// Lets nothing be asked of the node.
    pub(crate) fn exclude(&self, reason: ExclusionReason) {
        let state = &mut self.0.lock().capabilities;
        (state.membership, state.exclusion) = (Membership::Excluded, Some(Arc::new(reason)));
    }

    /// Why the node is excluded.
    pub fn exclusion(&self) -> Option<Arc<ExclusionReason>> {
        self.0.lock().capabilities.exclusion.clone()
    }

    /// The newest block that the node is known to have.
    pub fn head(&self) -> Option<BlockId> {
        self.0.lock().capabilities.head
    }

    pub fn head_number(&self) -> Option<u64> {
        self.head().map(|head| head.number)
    }

    pub(crate) fn set_head(&self, head: BlockId) {
        self.0.lock().capabilities.head = Some(head);
    }

    pub(crate) fn set_lowest_state(&self, block: u64) {
        self.0.lock().capabilities.lowest_state = block;
    }

    /// The lowest block whose state it has, in the form in which this method needs it.
    pub(crate) fn lowest_state_for(&self, method: &str) -> u64 {
        self.0.lock().capabilities.lowest_state_for(method)
    }

    /// The widest range of blocks that it searches for logs, as far as is known.
    pub(crate) fn log_range_max(&self) -> u64 {
        self.0.lock().capabilities.log_range_max.unwrap_or(u64::MAX)
    }

    /// Lowers the widest range, to one block at the least, until the node is asked for its identity again.
    pub(crate) fn narrow_log_range(&self, blocks: u64) {
        self.0.lock().capabilities.narrow_log_range(blocks);
    }

    pub(crate) fn lacks(&self, method: &str) -> bool {
        self.0.lock().capabilities.missing_methods.contains(&method)
    }

    /// Forgets what the node has refused, because its program may have been exchanged for another version.
    pub(crate) fn forget_refusals(&self) {
        self.0.lock().capabilities.forget_refusals();
    }

    /// Learns from the refusal of a call that needed `block`.
    pub(crate) fn record_missing(
        &self,
        missing: MissingCapability,
        method: &'static str,
        block: Option<u64>,
    ) {
        self.0.lock().capabilities.record_missing(missing, method, block);
    }
}

/// What a node has for calls of one method.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallCapabilities {
    pub(super) is_member: bool,
    pub(super) has_method: bool,
    pub(super) head_number: Option<u64>,
    pub(super) lowest_state: u64,
    pub(super) log_range_max: u64,
}

#[derive(Debug, Default)]
pub(super) struct CapabilityState {
    membership: Membership,
    exclusion: Option<Arc<ExclusionReason>>,
    head: Option<BlockId>,
    lowest_state: u64,
    /// The lowest block whose state it may be able to prove.
    lowest_proof: u64,
    /// The widest range of blocks that it searches for logs; `None` if it has refused none.
    log_range_max: Option<u64>,
    missing_methods: Vec<&'static str>,
}

impl CapabilityState {
    /// All that decides whether a call of this method can be sent to the node.
    pub(super) fn for_call(&self, method: &str) -> CallCapabilities {
        CallCapabilities {
            is_member: self.membership == Membership::Member,
            has_method: !self.missing_methods.contains(&method),
            head_number: self.head_number(),
            lowest_state: self.lowest_state_for(method),
            log_range_max: self.log_range_max.unwrap_or(u64::MAX),
        }
    }

    fn head_number(&self) -> Option<u64> {
        self.head.map(|head| head.number)
    }

    fn lowest_state_for(&self, method: &str) -> u64 {
        match method {
            STATE_PROOF_METHOD => self.lowest_state.max(self.lowest_proof),
            _ => self.lowest_state,
        }
    }

    fn narrow_log_range(&mut self, blocks: u64) {
        let narrowest = self.log_range_max.map_or(blocks, |known| known.min(blocks));
        self.log_range_max = Some(narrowest.max(1));
    }

    fn forget_refusals(&mut self) {
        self.missing_methods.clear();
        self.lowest_proof = 0;
        self.log_range_max = None;
    }

    fn record_missing(&mut self, missing: MissingCapability, method: &'static str, block: Option<u64>) {
        match (missing, block) {
            (MissingCapability::Method, _) => self.add_missing_method(method),
            // It can prove the state of its newest block, or of none.
            (MissingCapability::State, Some(block)) if method == STATE_PROOF_METHOD => {
                let lowest = block.saturating_add(1).min(self.head_number().unwrap_or(u64::MAX));
                self.lowest_proof = self.lowest_proof.max(lowest);
            }
            (MissingCapability::State, Some(block)) if self.is_new(block) => {}
            (MissingCapability::State, Some(block)) => {
                self.lowest_state = self.lowest_state.max(block.saturating_add(1));
            }
            // Its watcher knows which blocks it has: this one may be of a branch that the node has left.
            (MissingCapability::Block, _) | (MissingCapability::State, None) => {}
        }
    }

    fn add_missing_method(&mut self, method: &'static str) {
        if !self.missing_methods.contains(&method) && self.missing_methods.len() < MISSING_METHODS_MAX {
            self.missing_methods.push(method);
        }
    }

    fn is_new(&self, block: u64) -> bool {
        self.head_number().is_some_and(|head| block.saturating_add(NEW_BLOCKS) > head)
    }
}
