//! One connection, as its requests see it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::clock::Moment;
use crate::edge::Edge;
use crate::meter::Shard;

/// One connection. The request path reads and writes its state, and the socket's timeouts go by it.
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

/// What the socket and the request path tell each other. Always on one thread at a time; atomics because the compiler
/// cannot know that.
#[derive(Debug, Default)]
pub(super) struct State {
    phase: AtomicU8,
    /// When bytes last came in.
    pub(super) heard: AtomicU64,
    /// When the wait for a body began.
    pub(super) body_began: AtomicU64,
    pub(super) ambiguous: AtomicBool,
    requests: AtomicU64,
    last: AtomicBool,
}

/// What the connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// A request.
    Request = 0,
    /// The rest of a body.
    Body = 1,
    /// Us.
    Answer = 2,
}

impl State {
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Request,
            1 => Phase::Body,
            _ => Phase::Answer,
        }
    }

    fn set(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    /// Whether the connection ends although the caller may have more to send.
    pub(super) fn is_cut_short(&self) -> bool {
        self.last.load(Relaxed) || self.ambiguous.load(Relaxed)
    }

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

    pub(crate) fn is_ambiguous(&self) -> bool {
        self.state.ambiguous.load(Relaxed)
    }

    /// Whether the reply under way is to be the last one.
    pub(crate) fn is_last(&self) -> bool {
        self.state.last.load(Relaxed)
    }

    pub(crate) fn close_after_reply(&self) {
        self.state.last.store(true, Relaxed);
    }

    /// Marks the connection as busy until the guard is dropped.
    pub(crate) fn begin_request(&self) -> During<'_> {
        let before = self.state.requests.fetch_add(1, Relaxed);
        if before + 1 >= self.edge.limits.listen.requests_per_connection_max {
            self.close_after_reply();
        }
        self.state.set(Phase::Answer);
        During { state: &self.state, then: Phase::Request }
    }

    /// Puts the body's time limit in force until the guard is dropped.
    pub(crate) fn reading_body(&self) -> During<'_> {
        self.state.body_began.store(self.now().0, Relaxed);
        self.state.set(Phase::Body);
        During { state: &self.state, then: Phase::Answer }
    }
}

/// A phase that ends when this is dropped, also when the caller hangs up in the middle of it.
#[derive(Debug)]
pub(crate) struct During<'a> {
    state: &'a State,
    then: Phase,
}

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.state.set(self.then);
    }
}
