//! State shared by the socket and the requests of one connection.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

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
    /// Whether the connection waits for its caller. A part of the next request may have arrived.
    pub(crate) is_idle: AtomicBool,
    /// HTTP/2: requests whose body is complete, and whose reply is not sent.
    pub(crate) running: AtomicUsize,
}

impl ConnectionState {
    /// Whether the connection has not received a request yet.
    pub(crate) fn is_new(&self) -> bool {
        self.requests.load(Relaxed) == 0
    }

    /// Whether the connection may be closed to make room for another: no request is running whose body is complete. Bodies
    /// that do not end would otherwise keep out other callers at no cost.
    pub(crate) fn may_make_room(&self) -> bool {
        self.is_idle.load(Relaxed) && self.running.load(Relaxed) == 0
    }
}

/// HTTP/2: a request whose body is complete. It is counted until this value is dropped.
#[derive(Debug)]
pub(crate) struct RunningRequest(Arc<ConnectionState>);

impl RunningRequest {
    pub(crate) fn start(state: Arc<ConnectionState>) -> Self {
        state.running.fetch_add(1, Relaxed);
        state.is_idle.store(false, Relaxed);
        Self(state)
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}
