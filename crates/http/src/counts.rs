//! Counters of one worker.

use std::sync::atomic::AtomicU64;

/// Counters of requests and connections.
#[derive(Debug, Default)]
pub struct HttpCounts {
    pub requests: AtomicU64,
    pub bytes_in: AtomicU64,
    pub bytes_out: AtomicU64,
    pub connections: AtomicU64,
    /// Connections refused because `connections_max` was reached.
    pub refused: AtomicU64,
    /// Connections refused because their address has too many.
    pub address_refused: AtomicU64,
    /// Connections closed to make room for others.
    pub closed_for_others: AtomicU64,
    /// Requests without a valid key, refused because their address made too many.
    pub unauthenticated_refused: AtomicU64,
    /// Replies by the first digit of their status.
    pub statuses: [AtomicU64; 6],
}
