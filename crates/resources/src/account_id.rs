//! The name of an account wherever accounts share something.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Identifies an account wherever accounts share threads or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(u64);

impl AccountId {
    /// Stands for all callers without an account.
    pub const NONE: Self = Self(0);

    /// An identifier that no other account of this process has.
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Relaxed))
    }
}
