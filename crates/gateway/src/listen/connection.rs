//! One connection, as its requests see it.

use std::fmt;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use crate::callers::AccountId;
use crate::clock::Moment;
use crate::edge::Edge;
use crate::http::Headers;
use crate::listen::TooManyUnauthenticated;
use crate::memory::{AccountMemory, UnchargedBytes};
use crate::meter::Shard;

/// One connection, shared by those who read from it and those who answer.
#[derive(Debug)]
pub(crate) struct Connection {
    edge: Arc<Edge>,
    worker: usize,
    peer: Peer,
    /// HTTP/2: small bodies and replies of all requests, which are counted together.
    uncharged: Option<Arc<UnchargedBytes>>,
}

/// The other end of a connection.
#[derive(Debug)]
pub(super) struct Peer {
    /// The number of the connection.
    pub(super) number: u64,
    pub(super) address: IpAddr,
    pub(super) state: Arc<State>,
}

impl Peer {
    /// The peer of a stream that is not a socket, as in tests and fuzzing.
    pub(super) fn unknown(edge: &Edge) -> Self {
        let number = edge.connections.seen.fetch_add(1, Relaxed);
        Self { number, address: Ipv4Addr::LOCALHOST.into(), state: Arc::default() }
    }
}

/// The id of one request, the same in its reply's `Chaingate-Request-Id` and in the log.
///
/// The random number of the process keeps the ids of several gateways, and of restarts, apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId {
    process: u32,
    connection: u64,
    request: u64,
}

impl RequestId {
    /// Length of the longest id: 8, 16 and 16 hexadecimal digits and two dashes.
    const BYTES_MAX: usize = 42;

    /// The id of a connection that is refused before it has sent a request.
    pub(super) fn of_refused_connection(edge: &Edge) -> Self {
        let connection = edge.connections.seen.fetch_add(1, Relaxed);
        Self { process: edge.connections.process, connection, request: 0 }
    }

    /// Calls `use_text` with the id as text, which is written on the stack because every reply needs it.
    pub(crate) fn with_text(self, use_text: impl FnOnce(&str)) {
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

/// What the socket and the requests of a connection tell each other. On HTTP/2, requests overlap.
#[derive(Debug, Default)]
pub(super) struct State {
    /// When bytes last came in.
    pub(super) heard: AtomicU64,
    requests: AtomicU64,
    last: AtomicBool,
    /// HTTP/2: replies of which some bytes are still to be sent.
    pub(super) replies_waiting: AtomicUsize,
    /// HTTP/2: bytes of replies that were sent, without headers.
    pub(super) reply_bytes_sent: AtomicU64,
    /// The account of the first valid key on this connection.
    pub(super) account: OnceLock<AccountId>,
    /// Whether no request is under way: the connection waits for the head of one, of which a part may have come.
    pub(super) is_idle: AtomicBool,
}

impl State {
    pub(super) fn is_new(&self) -> bool {
        self.requests.load(Relaxed) == 0
    }
}

impl Connection {
    pub(super) fn new(edge: Arc<Edge>, worker: usize, peer: Peer) -> Self {
        Self { edge, worker, peer, uncharged: None }
    }

    /// From here on requests share the connection, and with it what may be held without a charge.
    pub(super) fn speak_http2(&mut self) {
        self.uncharged = Some(Arc::default());
    }

    /// What bodies and replies of an account may take on this connection.
    pub(crate) fn memory(&self, account: AccountId) -> AccountMemory<'_> {
        self.edge.memory.of(account).counting_small(self.uncharged.as_ref())
    }

    /// A key was recognised: from now on the connection is closed to make room for others only while it is idle.
    pub(crate) fn recognize(&self, account: AccountId) {
        let state = &self.peer.state;
        if state.account.get().is_none() && state.account.set(account).is_ok() {
            self.edge.connections.closable.recognize(self.peer.number, account, state);
        }
    }

    /// Counts a request without a valid key. If its address has made too many, the connection ends with the reply, unless a
    /// proxy uses it for others, too.
    pub(crate) fn count_unauthenticated(&self, headers: Headers<'_>) -> Result<(), TooManyUnauthenticated> {
        let (peers, peer) = (&self.edge.peers, self.peer.address);
        let caller = peers.caller_of_request(peer, headers);
        peers.count_unauthenticated(caller, self.now()).inspect_err(|_| {
            self.shard().http.unauthenticated_refused.fetch_add(1, Relaxed);
            if caller == peer {
                self.peer.state.last.store(true, Relaxed);
            }
        })
    }

    pub(super) fn state(&self) -> &Arc<State> {
        &self.peer.state
    }

    pub(crate) fn edge(&self) -> &Edge {
        &self.edge
    }

    /// The state that all connections share, for work that may outlive the borrow of this connection.
    pub(crate) fn edge_arc(&self) -> &Arc<Edge> {
        &self.edge
    }

    pub(crate) fn shard(&self) -> &Shard {
        &self.edge.shards[self.worker]
    }

    /// When the request under way came in, without reading the clock again.
    pub(crate) fn now(&self) -> Moment {
        Moment(self.peer.state.heard.load(Relaxed))
    }

    /// Whether the reply under way is to be the last one.
    pub(crate) fn is_last(&self) -> bool {
        self.peer.state.last.load(Relaxed)
    }

    /// Whether the gateway is about to end.
    pub(super) fn is_draining(&self) -> bool {
        self.edge.connections.draining.load(Relaxed)
    }

    /// Counts one more request and gives it its id; at the end of its share, the connection ends.
    pub(super) fn begin_request(&self) -> RequestId {
        let state = &self.peer.state;
        let request = state.requests.fetch_add(1, Relaxed) + 1;
        if request >= self.edge.limits.listen.requests_per_connection_max {
            state.last.store(true, Relaxed);
        }
        RequestId { process: self.edge.connections.process, connection: self.peer.number, request }
    }
}
