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
use crate::limits::HttpLimits;
use crate::peers::TooManyUnauthenticated;
use crate::policy::REQUEST_ID_BYTES_MAX;
use crate::server_state::ServerState;

/// One connection, shared by its reader and its requests.
#[derive(Debug)]
pub struct Connection {
    pub(super) server: Arc<ServerState>,
    /// As they were when it began.
    pub(super) limits: Arc<HttpLimits>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(IdSource);

/// Who has chosen the id of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdSource {
    /// It begins with a random number of the process, so ids of several gateways and of restarts differ.
    Server { process: u32, connection: u64, request: u64 },
    /// The text of the caller, and its length.
    Caller { text: [u8; REQUEST_ID_BYTES_MAX], length: usize },
}

impl RequestId {
    /// The id of a connection that is refused before it has sent a request.
    pub(super) fn of_refused_connection(server: &ServerState) -> Self {
        let connection = server.connections.seen.fetch_add(1, Relaxed);
        Self(IdSource::Server { process: server.connections.process, connection, request: 0 })
    }

    /// The id that a caller has chosen, if it is visible ASCII without spaces and short enough. It becomes part of the log, where
    /// other characters could look like another line.
    pub fn of_caller(chosen: &str) -> Option<Self> {
        let is_visible = chosen.bytes().all(|byte| byte.is_ascii_graphic());
        if chosen.is_empty() || chosen.len() > REQUEST_ID_BYTES_MAX || !is_visible {
            return None;
        }
        let mut text = [0; REQUEST_ID_BYTES_MAX];
        text[..chosen.len()].copy_from_slice(chosen.as_bytes());
        Some(Self(IdSource::Caller { text, length: chosen.len() }))
    }

    /// Calls `use_text` with the id as text. The text is on the stack, because every reply needs it.
    pub fn with_text(&self, use_text: impl FnOnce(&str)) {
        let mut bytes = [0; REQUEST_ID_BYTES_MAX];
        let mut rest = &mut bytes[..];
        let written = write!(rest, "{self}");
        debug_assert!(written.is_ok(), "the buffer holds the longest id");
        let length = REQUEST_ID_BYTES_MAX - rest.len();
        use_text(std::str::from_utf8(&bytes[..length]).unwrap_or_default());
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            IdSource::Server { process, connection, request } => {
                write!(f, "{process:08x}-{connection:x}-{request:x}")
            }
            IdSource::Caller { text, length } => {
                f.write_str(std::str::from_utf8(&text[..*length]).unwrap_or_default())
            }
        }
    }
}

impl Connection {
    /// A stream that is not a socket, as in tests and fuzzing.
    pub(super) fn of_stream(server: Arc<ServerState>) -> Self {
        let number = server.connections.seen.fetch_add(1, Relaxed);
        let (accepted, address) = (server.clock.now(), Ipv4Addr::LOCALHOST.into());
        let limits = Arc::clone(&server.limits());
        Self { server, limits, worker: 0, number, address, accepted, state: Arc::default(), uncharged: None }
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
        let caller = self.caller_address(headers);
        peers.count_unauthenticated(caller, self.now()).inspect_err(|_| {
            self.counts().unauthenticated_refused.fetch_add(1, Relaxed);
            if caller == peer {
                self.state.closes_after_reply.store(true, Relaxed);
            }
        })
    }

    /// The address of the caller of a request: the one that a trusted proxy names, or else that of the other end.
    pub fn caller_address(&self, headers: Headers<'_>) -> IpAddr {
        self.server.peers.caller_of_request(self.address, headers)
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
        if request >= self.limits.requests_per_connection_max {
            state.closes_after_reply.store(true, Relaxed);
        }
        let process = self.server.connections.process;
        RequestId(IdSource::Server { process, connection: self.number, request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_visible_ids_of_callers_are_used() {
        let longest = "x".repeat(REQUEST_ID_BYTES_MAX);
        for good in ["a", "7f3a-91c2", "Root=1-67891233-abcdef012345678912345678", "\"~!", &longest] {
            let id = RequestId::of_caller(good).unwrap();
            assert_eq!(id.to_string(), good);
            id.with_text(|text| assert_eq!(text, good));
        }
        for bad in ["", "a b", "a\tb", "a\nb", "é", "\u{7f}", &format!("{longest}x")] {
            assert_eq!(RequestId::of_caller(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_longest_id_of_the_server_fits() {
        let id = IdSource::Server { process: u32::MAX, connection: u64::MAX, request: u64::MAX };
        RequestId(id).with_text(|text| assert_eq!(text, "ffffffff-ffffffffffffffff-ffffffffffffffff"));
    }
}
