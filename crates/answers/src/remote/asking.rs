//! What every question to nodes or partners has in common.

use nodes::{Canon, Supplier};
use resources::AccountId;
use tokio::time::Instant;

/// Who asks, in which view, until when, and who is asked.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) account: AccountId,
    pub(super) canon: &'a Canon,
    pub(super) deadline: Instant,
    pub(super) supplier: Supplier,
}

impl Asking<'_> {
    /// Whether the time is up.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }
}
