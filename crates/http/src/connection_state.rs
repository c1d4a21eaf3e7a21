//! State shared by the socket and the requests of one connection.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use resources::AccountId;

/// State shared by the socket and the requests of one connection. On HTTP/2, several requests use it at the same time.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    /// Time of the last received bytes, as a `MonoTime`.
    pub(crate) last_read_at: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) closes_after_reply: AtomicBool,
    /// HTTP/2: replies that are not sent completely.
    pub(crate) replies_waiting: AtomicUsize,
    /// HTTP/2: bytes of replies sent so far, without headers.
    pub(crate) reply_bytes_sent: AtomicU64,
    /// The account of the first valid key on this connection.
    pub(crate) account: OnceLock<AccountId>,
    /// Whether no request is in progress. A part of the next head may have arrived.
    pub(crate) is_idle: AtomicBool,
}

impl ConnectionState {
    /// Whether the connection has not received a request yet.
    pub(crate) fn is_new(&self) -> bool {
        self.requests.load(Relaxed) == 0
    }
}
