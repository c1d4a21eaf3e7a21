//! One connection, as its requests see it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::clock::Moment;
use crate::edge::Edge;
use crate::meter::Shard;

/// One connection, shared by those who read from it and those who answer.
#[derive(Debug)]
pub(crate) struct Connection {
    edge: Arc<Edge>,
    worker: usize,
    number: u64,
    state: Arc<State>,
}

/// What the log calls a request: the number of its connection and its number on it. On HTTP/2, where requests overlap,
/// the second number is that of the newest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestId {
    connection: u64,
    request: u64,
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.connection, self.request)
    }
}

/// What the socket and the requests of a connection tell each other. On HTTP/2, requests overlap.
#[derive(Debug, Default)]
pub(super) struct State {
    /// When bytes last came in.
    pub(super) heard: AtomicU64,
    requests: AtomicU64,
    last: AtomicBool,
}

impl State {
    pub(super) fn is_new(&self) -> bool {
        self.requests.load(Relaxed) == 0
    }
}

impl Connection {
    pub(super) fn new(edge: Arc<Edge>, worker: usize) -> Self {
        let number = edge.connections.seen.fetch_add(1, Relaxed);
        Self { edge, worker, number, state: Arc::default() }
    }

    /// The request under way, for the log.
    pub(crate) fn request_id(&self) -> RequestId {
        RequestId { connection: self.number, request: self.state.requests.load(Relaxed) }
    }

    pub(super) fn state(&self) -> &Arc<State> {
        &self.state
    }

    pub(crate) fn edge(&self) -> &Edge {
        &self.edge
    }

    pub(crate) fn shard(&self) -> &Shard {
        &self.edge.shards[self.worker]
    }

    /// When the request under way came in, without reading the clock again.
    pub(crate) fn now(&self) -> Moment {
        Moment(self.state.heard.load(Relaxed))
    }

    /// Whether the reply under way is to be the last one.
    pub(crate) fn is_last(&self) -> bool {
        self.state.last.load(Relaxed)
    }

    /// Whether the gateway is about to end.
    pub(super) fn is_draining(&self) -> bool {
        self.edge.connections.draining.load(Relaxed)
    }

    /// Counts one more request; at the end of its share, the connection ends.
    pub(crate) fn begin_request(&self) {
        let before = self.state.requests.fetch_add(1, Relaxed);
        if before + 1 >= self.edge.limits.listen.requests_per_connection_max {
            self.state.last.store(true, Relaxed);
        }
    }
}
