//! What one worker counts.

use std::sync::atomic::AtomicU64;

/// What was counted for requests and connections.
#[derive(Debug, Default)]
pub struct HttpCounts {
    pub requests: AtomicU64,
    pub bytes_in: AtomicU64,
    pub bytes_out: AtomicU64,
    pub connections: AtomicU64,
    /// Connections for which there was no place.
    pub turned_away: AtomicU64,
    /// Connections that were refused because their address has too many.
    pub address_refused: AtomicU64,
    /// Connections without a recognised key that were closed to make room.
    pub closed_for_others: AtomicU64,
    /// Requests without a valid key from addresses that made too many.
    pub unauthenticated_refused: AtomicU64,
    /// By hundreds of the status.
    pub statuses: [AtomicU64; 6],
}
