//! The known capabilities of a node. The watcher polls most of it; the rest is learned from what the node refuses.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::NodeState;
use super::history::{HistoryKind, HistoryReach, HistoryReaches, ShownHistory};
use super::refusals::{NodeRefusal, Refusals};
use crate::call::{BlockId, RpcCall};
use crate::exclusion::ExclusionReason;
use crate::view::WINDOW_BLOCKS;

/// A node may lack the state of one of its newest blocks because the block was reorganised away, or because it is late with it.
/// That says nothing about older states. Live networks have reorganised as many blocks.
const NEW_BLOCKS: u64 = 8;
/// Nodes that prune keep the states of at least so many blocks.
const STATES_KEPT: u64 = 128;

/// The method that proves state. A node may have the state of an old block and be unable to prove it, because its tries are newer.
pub(crate) const STATE_PROOF_METHOD: &str = "eth_getProof";

/// The parts that a node has said it lacks.
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

/// The capabilities of a node, and whether it may be asked at all. Each method takes the lock of the node.
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
        // Before it was excluded, it may have been another node.
        if state.membership == Membership::Excluded {
            state.forget_history();
        }
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
        self.0.lock().capabilities.set_lowest_state(block);
    }

    /// The lowest block whose state it was shown to have. `None` before that was found out.
    pub fn lowest_state(&self) -> Option<u64> {
        let state = &self.0.lock().capabilities;
        state.is_state_shown.then_some(state.lowest_state)
    }

    /// Whether it can know the state of a block: the block is new, or its prober has found out which states it has.
    pub(crate) fn can_know_state(&self, block: u64) -> bool {
        let state = &self.0.lock().capabilities;
        let is_recent = state.head_number().is_some_and(|head| block.saturating_add(STATES_KEPT) > head);
        is_recent || state.is_state_shown
    }

    /// Whether it can know what is in a block. `None` before its prober has found that out, unless the block is new. Where the
    /// prober found nothing to ask for, nothing speaks against it.
    pub(crate) fn can_know(&self, kind: HistoryKind, block: u64) -> Option<bool> {
        let state = &self.0.lock().capabilities;
        let is_recent =
            || state.head_number().is_some_and(|head| block.saturating_add(WINDOW_BLOCKS as u64) > head);
        match state.history(kind) {
            HistoryReach::Whole => Some(true),
            HistoryReach::From(lowest) => Some(lowest <= block),
            HistoryReach::Unknown => (state.history.is_some() || is_recent()).then_some(true),
        }
    }

    /// Down to which block it was shown to have this.
    pub fn history(&self, kind: HistoryKind) -> HistoryReach {
        self.0.lock().capabilities.history(kind)
    }

    /// Whether its prober has found out what it has of old blocks.
    pub(crate) fn is_history_known(&self) -> bool {
        self.0.lock().capabilities.history.is_some()
    }

    pub(crate) fn set_history(&self, reaches: HistoryReaches, head: u64) {
        self.0.lock().capabilities.history = Some(ShownHistory::new(reaches, head, Instant::now()));
    }

    /// Forgets what it was shown to have of old blocks, because another node may answer at its url now.
    pub(crate) fn forget_history(&self) {
        self.0.lock().capabilities.forget_history();
    }

    /// Records that the node did not find what is in a block.
    pub(crate) fn record_lacking_history(&self, kind: HistoryKind, block: u64) {
        if let Some(history) = &mut self.0.lock().capabilities.history {
            history.record_lacking(kind, block);
        }
    }

    /// The lowest block whose state it has, in the form in which this method needs it.
    pub(crate) fn lowest_state_for(&self, method: &str) -> u64 {
        self.0.lock().capabilities.lowest_state_for(method)
    }

    /// The widest range of blocks that it searches for logs, as far as is known.
    pub(crate) fn log_range_max(&self) -> u64 {
        self.log_blocks_max().unwrap_or(u64::MAX)
    }

    /// The most blocks that it searches for logs at once, if it has refused more.
    pub fn log_blocks_max(&self) -> Option<u64> {
        self.0.lock().capabilities.refusals.log_range_max
    }

    /// The lowest block whose state it may be able to prove, if it has refused a proof of an older one.
    pub fn lowest_proof(&self) -> Option<u64> {
        Some(self.0.lock().capabilities.refusals.lowest_proof).filter(|lowest| *lowest > 0)
    }

    /// Lowers the widest range, to one block at the least.
    pub(super) fn narrow_log_range(&self, blocks: u64) {
        self.0.lock().capabilities.refusals.add_log_range(blocks);
    }

    /// Whether it is known to lack the state that a call needs.
    pub fn lacks_state_of(&self, call: &RpcCall) -> bool {
        call.needs.state_block().is_some_and(|block| self.lowest_state_for(call.method) > block)
    }

    /// The most gas that it grants to a call, if it has refused more.
    pub fn gas_cap(&self) -> Option<u64> {
        self.0.lock().capabilities.refusals.gas_cap
    }

    /// Records that it has refused a call with so much gas, and what it grants if it has said so. Returns what is tried next.
    pub(crate) fn record_gas_refused(&self, gas: u64, most: Option<u64>) -> u64 {
        self.0.lock().capabilities.refusals.add_gas(gas, most)
    }

    /// Whether it takes the number of a block in this method, but not its hash.
    pub(crate) fn needs_number(&self, method: &str) -> bool {
        self.0.lock().capabilities.refusals.methods_by_number.contains(&method)
    }

    /// Records that it takes the number of a block in this method, but not its hash.
    pub(super) fn set_needs_number(&self, method: &'static str) {
        self.0.lock().capabilities.refusals.add_method_by_number(method);
    }

    /// The methods in which it takes the number of a block, but not its hash.
    pub fn methods_by_number(&self) -> Vec<&'static str> {
        self.0.lock().capabilities.refusals.methods_by_number.clone()
    }

    /// The methods that it has said it does not have.
    pub fn missing_methods(&self) -> Vec<&'static str> {
        self.0.lock().capabilities.refusals.missing_methods.clone()
    }

    /// The name that the node gives itself, with its version.
    pub fn client_version(&self) -> Option<Arc<str>> {
        self.0.lock().capabilities.client_version.clone()
    }

    pub(crate) fn set_client_version(&self, version: &str) {
        let state = &mut self.0.lock().capabilities;
        if state.client_version.as_deref() != Some(version) {
            state.forget_refusals();
            state.client_version = Some(version.into());
        }
    }

    pub(crate) fn lacks(&self, method: &str) -> bool {
        self.0.lock().capabilities.refusals.missing_methods.contains(&method)
    }

    /// Forgets what the node has refused, because another program may answer now.
    pub(crate) fn forget_refusals(&self) {
        self.0.lock().capabilities.forget_refusals();
    }

    /// Forgets what the node refused some minutes ago, because its settings may have changed.
    pub(crate) fn forget_old_refusals(&self, now: Instant) {
        self.0.lock().capabilities.refusals.forget_old(now);
    }

    /// Whether this refusal was not logged before, which it is from now on.
    pub(super) fn is_unlogged(&self, refusal: NodeRefusal) -> bool {
        let logged = &mut self.0.lock().capabilities.logged_refusals;
        let is_new = !logged.contains(&refusal);
        if is_new {
            logged.push(refusal);
        }
        is_new
    }

    /// Learns from the refusal of a call that needed the state of `block`. Returns what was refused, if that says something of the
    /// node.
    pub(crate) fn record_missing(
        &self,
        missing: MissingCapability,
        method: &'static str,
        block: Option<u64>,
    ) -> Option<NodeRefusal> {
        self.0.lock().capabilities.record_missing(missing, method, block)
    }
}

/// The capabilities of a node for calls of one method.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallCapabilities {
    pub(super) is_member: bool,
    pub(super) has_method: bool,
    pub(super) head_number: Option<u64>,
    pub(super) lowest_state: u64,
    pub(super) log_range_max: u64,
    pub(super) gas_max: u64,
}

#[derive(Debug, Default)]
pub(super) struct CapabilityState {
    membership: Membership,
    exclusion: Option<Arc<ExclusionReason>>,
    head: Option<BlockId>,
    lowest_state: u64,
    /// Whether that was found out by its prober. Until then it may be 0 although the node has dropped old states.
    is_state_shown: bool,
    history: Option<ShownHistory>,
    refusals: Refusals,
    /// There are as many as methods and kinds.
    logged_refusals: Vec<NodeRefusal>,
    client_version: Option<Arc<str>>,
}

impl CapabilityState {
    /// All that decides whether a call of this method can be sent to the node.
    pub(super) fn for_call(&self, method: &str) -> CallCapabilities {
        CallCapabilities {
            is_member: self.membership == Membership::Member,
            has_method: !self.refusals.missing_methods.contains(&method),
            head_number: self.head_number(),
            lowest_state: self.lowest_state_for(method),
            log_range_max: self.refusals.log_range_max.unwrap_or(u64::MAX),
            gas_max: self.refusals.gas_cap.unwrap_or(u64::MAX),
        }
    }

    fn head_number(&self) -> Option<u64> {
        self.head.map(|head| head.number)
    }

    fn lowest_state_for(&self, method: &str) -> u64 {
        match method {
            STATE_PROOF_METHOD => self.lowest_state.max(self.refusals.lowest_proof),
            _ => self.lowest_state,
        }
    }

    fn set_lowest_state(&mut self, block: u64) {
        (self.lowest_state, self.is_state_shown) = (block, true);
    }

    fn forget_history(&mut self) {
        (self.history, self.is_state_shown) = (None, false);
    }

    fn history(&self, kind: HistoryKind) -> HistoryReach {
        let head = self.head_number().unwrap_or(0);
        self.history.map_or(HistoryReach::Unknown, |history| history.reach(kind, head, Instant::now()))
    }

    /// Whether it is known to lack logs of a block.
    pub(super) fn lacks_logs(&self, block: u64) -> bool {
        matches!(self.history(HistoryKind::Logs), HistoryReach::From(lowest) if lowest > block)
    }

    fn forget_refusals(&mut self) {
        self.refusals = Refusals::default();
        self.logged_refusals.clear();
    }

    fn record_missing(
        &mut self,
        missing: MissingCapability,
        method: &'static str,
        block: Option<u64>,
    ) -> Option<NodeRefusal> {
        match (missing, block) {
            (MissingCapability::Method, _) => {
                self.refusals.add_missing_method(method);
                Some(NodeRefusal::Method(method))
            }
            // It can prove the state of its newest block, or of none.
            (MissingCapability::State, Some(block)) if method == STATE_PROOF_METHOD => {
                let lowest = block.saturating_add(1).min(self.head_number().unwrap_or(u64::MAX));
                self.refusals.add_proof_below(lowest);
                Some(NodeRefusal::Proof)
            }
            (MissingCapability::State, Some(block)) if self.is_new(block) => None,
            (MissingCapability::State, Some(block)) => {
                self.lowest_state = self.lowest_state.max(block.saturating_add(1));
                Some(NodeRefusal::State)
            }
            // Its watcher knows which blocks it has: this one may be of a branch that the node has left.
            (MissingCapability::Block, _) | (MissingCapability::State, None) => None,
        }
    }

    fn is_new(&self, block: u64) -> bool {
        self.head_number().is_some_and(|head| block.saturating_add(NEW_BLOCKS) > head)
    }
}
