//! What the socket and the requests of one connection tell each other.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use resources::AccountId;

/// What the socket and the requests of a connection tell each other. On HTTP/2, requests overlap.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// When bytes last came in.
    pub(crate) heard: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) last: AtomicBool,
    /// HTTP/2: replies of which some bytes are still to be sent.
    pub(crate) replies_waiting: AtomicUsize,
    /// HTTP/2: bytes of replies that were sent, without headers.
    pub(crate) reply_bytes_sent: AtomicU64,
    /// The account of the first valid key on this connection.
    pub(crate) account: OnceLock<AccountId>,
    /// Whether no request is under way: the connection waits for the head of one, of which a part may have come.
    pub(crate) is_idle: AtomicBool,
}

impl State {
    pub(crate) fn is_new(&self) -> bool {
        self.requests.load(Relaxed) == 0
    }
}
