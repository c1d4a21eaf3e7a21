//! What to pay in the next block, which is remembered for each head.

/// What to pay in the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SuggestedFees {
    /// `None` if the chain has a rule of its own.
    pub(super) next_base_fee: Option<u64>,
    pub(super) priority_fee: u128,
}
