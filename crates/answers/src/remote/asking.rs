//! The terms of every fetch from nodes or partners.

use nodes::{CanonicalChain, Supplier};
use resources::AccountId;
use tokio::time::Instant;

/// For which accounts, in which view, until when, and of whom something is fetched.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    /// In whose share of the threads large answers are read and proven. If accounts share the answer, it is none of them.
    pub(super) account: AccountId,
    /// In whose share of the connections nodes are asked.
    pub(super) caller: AccountId,
    pub(super) chain: &'a CanonicalChain,
    pub(super) deadline: Instant,
    pub(super) supplier: Supplier,
}

impl Asking<'_> {
    /// Whether the time is up.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }
}
