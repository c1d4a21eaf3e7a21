//! One connection, as its requests see it.

use std::fmt;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use resources::{AccountId, AccountMemory, MonoTime, UnchargedBytes};

use crate::connection_state::ConnectionState;
use crate::counts::HttpCounts;
use crate::head::Headers;
use crate::peers::TooManyUnauthenticated;
use crate::server_state::ServerState;

/// One connection, shared by its reader and its requests.
#[derive(Debug)]
pub struct Connection {
    pub(super) server: Arc<ServerState>,
    /// The index of the worker that serves it.
    pub(super) worker: usize,
    pub(super) number: u64,
    /// The address of the other end.
    pub(super) address: IpAddr,
    pub(super) accepted: MonoTime,
    pub(super) state: Arc<ConnectionState>,
    /// HTTP/2: counts the small bodies and replies of all requests together.
    pub(super) uncharged: Option<Arc<UnchargedBytes>>,
}

/// The id of one request, in the header `Chaingate-Request-Id` of the reply and in the log.
///
/// It begins with a random number of the process, so ids of several gateways and of restarts differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    process: u32,
    connection: u64,
    request: u64,
}

impl RequestId {
    /// The length of the longest id: 8, 16 and 16 hexadecimal digits and two dashes.
    const BYTES_MAX: usize = 42;

    /// The id of a connection that is refused before it has sent a request.
    pub(super) fn of_refused_connection(server: &ServerState) -> Self {
        let connection = server.connections.seen.fetch_add(1, Relaxed);
        Self { process: server.connections.process, connection, request: 0 }
    }

    /// Calls `use_text` with the id as text. The text is on the stack, because every reply needs it.
    pub fn with_text(self, use_text: impl FnOnce(&str)) {
        let mut bytes = [0; Self::BYTES_MAX];
        let mut rest = &mut bytes[..];
        let written = write!(rest, "{self}");
        debug_assert!(written.is_ok(), "the buffer holds the longest id");
        let length = Self::BYTES_MAX - rest.len();
        use_text(std::str::from_utf8(&bytes[..length]).unwrap_or_default());
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{:x}-{:x}", self.process, self.connection, self.request)
    }
}

impl Connection {
    /// A stream that is not a socket, as in tests and fuzzing.
    pub(super) fn of_stream(server: Arc<ServerState>) -> Self {
        let number = server.connections.seen.fetch_add(1, Relaxed);
        let (accepted, address) = (server.clock.now(), Ipv4Addr::LOCALHOST.into());
        Self { server, worker: 0, number, address, accepted, state: Arc::default(), uncharged: None }
    }

    /// Makes all requests of the connection share one amount of uncharged memory.
    pub(super) fn switch_to_http2(&mut self) {
        self.uncharged = Some(Arc::default());
    }

    /// The memory for bodies and replies of an account on this connection.
    pub fn memory(&self, account: AccountId) -> AccountMemory<'_> {
        self.server.memory.of(account).counting_small(self.uncharged.as_ref())
    }

    /// Records that a key was recognised. From now on the connection is closed for lack of room only while it is idle, or if its
    /// account has more than half of all connections.
    pub fn recognize(&self, account: AccountId) {
        let state = &self.state;
        if state.account.get().is_none() && state.account.set(account).is_ok() {
            self.server.connections.closable.recognize(self.number, account, state);
        }
    }

    /// Counts a request without a valid key. If its address has made too many, the connection is closed after the reply,
    /// unless it belongs to a proxy, which uses it for other callers, too.
    pub fn count_unauthenticated(&self, headers: Headers<'_>) -> Result<(), TooManyUnauthenticated> {
        let (peers, peer) = (&self.server.peers, self.address);
        let caller = peers.caller_of_request(peer, headers);
        peers.count_unauthenticated(caller, self.now()).inspect_err(|_| {
            self.counts().unauthenticated_refused.fetch_add(1, Relaxed);
            if caller == peer {
                self.state.closes_after_reply.store(true, Relaxed);
            }
        })
    }

    pub fn server(&self) -> &ServerState {
        &self.server
    }

    /// The index of the worker that serves the connection.
    pub fn worker(&self) -> usize {
        self.worker
    }

    pub fn counts(&self) -> &HttpCounts {
        &self.server.counts[self.worker]
    }

    /// The time at which the current request arrived, without reading the clock again.
    pub fn now(&self) -> MonoTime {
        MonoTime(self.state.last_read_at.load(Relaxed))
    }

    /// Whether the connection is closed after the current reply.
    pub(crate) fn is_last(&self) -> bool {
        self.state.closes_after_reply.load(Relaxed)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.server.connections.draining.load(Relaxed)
    }

    /// Counts one more request and returns its id. The last request that the connection may serve closes it.
    pub(super) fn begin_request(&self) -> RequestId {
        let state = &self.state;
        let request = state.requests.fetch_add(1, Relaxed) + 1;
        if request >= self.server.limits.requests_per_connection_max {
            state.closes_after_reply.store(true, Relaxed);
        }
        RequestId { process: self.server.connections.process, connection: self.number, request }
    }
}
