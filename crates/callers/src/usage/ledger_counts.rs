//! Counters of the ledger, for metrics.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Counters and gauges of the ledger, for the metrics.
#[derive(Debug, Default)]
pub struct LedgerCounts {
    /// Calls that are in no spool and no store, and never will be.
    pub lost_calls: AtomicU64,
    /// Credits of those calls.
    pub lost_credits: AtomicU64,
    /// Calls whose usage was written to the spool.
    pub spooled_calls: AtomicU64,
    /// Times that an entry could not be written to the spool.
    pub spool_failures: AtomicU64,
    /// Bytes that wait in memory, because the spool takes nothing.
    pub memory_bytes: AtomicU64,
    /// Bytes that wait for the store in the spool of this process.
    pub waiting_bytes: AtomicU64,
    /// Bytes that wait for the store in spools of processes that have ended.
    pub left_over_bytes: AtomicU64,
    /// Transactions with which usage was moved to the store.
    pub flushes: AtomicU64,
    /// Times that the store did not take usage.
    pub flush_failures: AtomicU64,
    /// Whether the last attempt to move usage to the store has failed.
    pub is_store_failing: AtomicBool,
}

impl LedgerCounts {
    pub(super) fn lose(&self, calls: u64, credits: u64) {
        self.lost_calls.fetch_add(calls, Relaxed);
        self.lost_credits.fetch_add(credits, Relaxed);
    }
}
