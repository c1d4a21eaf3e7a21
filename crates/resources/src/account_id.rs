//! Ids of accounts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Identifies an account where accounts share threads or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(u64);

impl AccountId {
    /// All callers without an account.
    pub const NONE: Self = Self(0);

    /// The gateway itself: what it asks for no caller.
    pub const GATEWAY: Self = Self(u64::MAX);

    /// A new id.
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Relaxed))
    }
}
