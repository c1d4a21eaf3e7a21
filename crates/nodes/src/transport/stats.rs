//! Counters of calls, connections and bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The counters of one queue. Each queue has its own, so that threads do not contend for a cache line.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connections_open: AtomicUsize,
    pub(super) connections_made: AtomicU64,
    pub(super) calls: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) batched_calls: AtomicU64,
    pub(super) bytes_out: AtomicU64,
    pub(super) bytes_in: AtomicU64,
}

/// Counts a connection for as long as it is held.
#[derive(Debug)]
pub(super) struct ConnectionGuard(Arc<Counters>);

impl ConnectionGuard {
    pub(super) fn new(counters: &Arc<Counters>) -> Self {
        counters.connections_made.fetch_add(1, Relaxed);
        counters.connections_open.fetch_add(1, Relaxed);
        Self(Arc::clone(counters))
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.connections_open.fetch_sub(1, Relaxed);
    }
}

/// The sums of the counters of all queues of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub(crate) connections_open: usize,
    pub(crate) connections_made: u64,
    /// Calls sent, alone or in batches; one that is sent again counts again.
    pub(crate) calls: u64,
    pub batches: u64,
    pub(crate) batched_calls: u64,
    pub(crate) bytes_out: u64,
    /// Bodies of replies, inflated.
    pub bytes_in: u64,
}

impl Stats {
    pub(super) fn add(&mut self, counters: &Counters) {
        self.connections_open += counters.connections_open.load(Relaxed);
        self.connections_made += counters.connections_made.load(Relaxed);
        self.calls += counters.calls.load(Relaxed);
        self.batches += counters.batches.load(Relaxed);
        self.batched_calls += counters.batched_calls.load(Relaxed);
        self.bytes_out += counters.bytes_out.load(Relaxed);
        self.bytes_in += counters.bytes_in.load(Relaxed);
    }
}
