//! The terms of every fetch from nodes or partners.

use nodes::{CanonicalChain, Supplier};
use resources::AccountId;
use tokio::time::Instant;

/// For which account, in which view, until when, and of whom something is fetched.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) account: AccountId,
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
