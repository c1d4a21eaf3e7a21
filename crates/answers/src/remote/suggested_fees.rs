//! Suggested fees of the next block.

/// Suggested fees of the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SuggestedFees {
    /// `None` if the chain has a rule of its own.
    pub(super) next_base_fee: Option<u64>,
    pub(super) priority_fee: u128,
}
