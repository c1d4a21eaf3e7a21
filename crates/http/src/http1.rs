//! HTTP/1 on one connection: a request, its reply, and the next one.
//!
//! By hand over `httparse`, because a general library costs as much for each request as all that we do with it: it makes
//! tables of headers, channels for bodies and reference counts for pieces, of which a call needs none. Here a body lies
//! where it came in, and a reply goes out in one write. It also judges where requests end in one place only.

mod body; // the bytes behind a head
mod chunks; // bodies whose length is not known
mod framing; // requests without answers, for comparison with other readers
mod head; // where requests end, to the letter

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::{Buf, Bytes};
use http::StatusCode;
use http::header::{self, HeaderName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

pub use self::framing::{FramedRequest, framed_requests};

use self::body::{Body, Rest};
use self::head::Search;
use crate::connection::{Connection, RequestId};
use crate::date::with_http_date;
use crate::drain::{DrainStage, LAST_REQUEST_TIME, reached};
use crate::head::Verb;
use crate::refused::Refused;
use crate::server_state::ServerState;
use crate::service::{Lines, Service, ServiceReply};
use crate::socket::{READ_BYTES, Socket, Stream, Wait};

/// Serves a connection on which `first` came in, until it ends or has to.
pub(super) async fn serve<V: Service, S: Stream>(
    service: &Arc<V>,
    connection: &Connection,
    socket: Socket<S>,
    first: Vec<u8>,
    mut stage: watch::Receiver<DrainStage>,
) -> io::Result<()> {
    if first.is_empty() {
        return Ok(());
    }
    let mut closing = pin!(reached(&mut stage, DrainStage::Closing));
    let mut line =
        Line { service, connection, socket, inbox: first, begin: 0, outbox: Vec::new(), is_closing: false };
    while line.serve_next(closing.as_mut()).await? {}
    line.socket.shutdown().await
}

/// One connection.
struct Line<'c, V, S> {
    service: &'c Arc<V>,
    connection: &'c Connection,
    socket: Socket<S>,
    /// What came in.
    inbox: Vec<u8>,
    /// Where in the inbox that begins which was not used yet.
    begin: usize,
    /// The head of a reply, and its body if that is short.
    outbox: Vec<u8>,
    /// Whether the gateway is about to end, and no request is waited for.
    is_closing: bool,
}

/// A head that has come in whole.
struct Whole {
    /// Where it ends.
    end: usize,
    lines: usize,
}

/// Room for what came in that a connection keeps between requests.
const KEPT_BYTES: usize = 8 << 10;

/// Headers that most requests do not exceed.
const HEADERS_USUAL: usize = 24;

/// Up to here, to copy a body behind its head is cheaper than to send it as a piece of its own.
const COPIED_BYTES_MAX: usize = 4 << 10;

impl<V: Service, S: Stream> Line<'_, V, S> {
    /// One request and its reply. `false`: nothing may follow.
    async fn serve_next(&mut self, closing: Pin<&mut impl Future<Output = ()>>) -> io::Result<bool> {
        let head = self.head(closing).await?;
        self.connection.state().is_idle.store(false, Relaxed);
        match head {
            Ok(Some(head)) => self.exchange(head).await,
            Ok(None) => Ok(false),
            Err(refused) => self.refuse(refused).await,
        }
    }

    /// Waits until a whole head is there. `None`: the caller is done, or we are.
    async fn head(
        &mut self,
        mut closing: Pin<&mut impl Future<Output = ()>>,
    ) -> io::Result<Result<Option<Whole>, Refused>> {
        let limits = &self.connection.server().limits;
        let (mut search, mut began) = (Search::default(), None);
        self.skip_blank_line();
        loop {
            let inbox = &self.inbox[self.begin..];
            let end = match search.end(inbox) {
                Ok(end) => end,
                Err(refused) => return Ok(Err(refused)),
            };
            let lines = search.lines();
            if end.unwrap_or(inbox.len()) > limits.header_bytes_max || lines > limits.headers_max + 1 {
                return Ok(Err(Refused::HeadTooLarge));
            }
            if let Some(end) = end {
                return Ok(Ok(Some(Whole { end, lines })));
            }
            let idle = inbox.is_empty();
            self.socket.waits_for(if idle {
                Wait::Request
            } else {
                Wait::Head(*began.get_or_insert(self.socket.free_since()))
            });
            self.make_room();
            self.connection.state().is_idle.store(true, Relaxed);
            let read = if idle && self.is_closing {
                self.read_last().await?
            } else {
                tokio::select! {
                    biased;
                    read = self.socket.read_buf(&mut self.inbox) => read?,
                    () = closing.as_mut(), if idle => {
                        self.is_closing = true;
                        continue;
                    }
                }
            };
            if read == 0 {
                return Ok(Ok(None));
            }
        }
    }

    /// Waits for a request that may be on its way while the gateway is about to end.
    async fn read_last(&mut self) -> io::Result<usize> {
        let quiet = self.connection.server().clock.now().since(self.socket.free_since());
        let read = self.socket.read_buf(&mut self.inbox);
        match timeout(LAST_REQUEST_TIME.saturating_sub(quiet), read).await {
            Ok(read) => read,
            Err(_) => {
                self.socket.cut_short();
                Ok(0)
            }
        }
    }

    /// Some callers end a body with a line of its own. It is no beginning of a request.
    fn skip_blank_line(&mut self) {
        if self.inbox[self.begin..] == *b"\r\n" {
            self.begin = self.inbox.len();
        }
    }

    /// Makes room for what comes in next, behind what is not used yet: less than one request.
    fn make_room(&mut self) {
        self.inbox.drain(..self.begin);
        self.begin = 0;
        self.inbox.shrink_to(KEPT_BYTES);
        self.inbox.reserve(READ_BYTES);
    }

    /// Keeps what came in early. Whoever never pauses must not make the inbox grow for ever by what was used of it.
    fn put_behind(&mut self, ahead: &[u8]) {
        if self.begin >= KEPT_BYTES {
            self.inbox.drain(..self.begin);
            self.begin = 0;
        }
        self.inbox.extend_from_slice(ahead);
    }

    /// Answers the request whose head comes first in the inbox.
    async fn exchange(&mut self, Whole { end, lines }: Whole) -> io::Result<bool> {
        let (mut few, mut many) = ([httparse::EMPTY_HEADER; HEADERS_USUAL], Vec::new());
        let room = if lines <= HEADERS_USUAL {
            &mut few[..]
        } else {
            many.resize(lines, httparse::EMPTY_HEADER);
            &mut many[..]
        };
        let (text, here) = self.inbox[self.begin..].split_at(end);
        let parsed = match head::parse(text, room) {
            Ok(parsed) => parsed,
            Err(refused) => return self.refuse(refused).await,
        };
        let mut body = Body::new(&mut self.socket, here, &parsed);
        let id = self.connection.begin_request();
        let reply = self.service.answer(self.connection, id, &parsed.head, &mut body).await;
        let Rest { used, ahead, at_next, gone } = body.into_rest();
        if gone {
            return Ok(false);
        }
        let (may_stay, old) = (parsed.keep_alive && at_next && !self.connection.is_last(), parsed.is_old);
        let head_only = parsed.head.verb == Verb::Head;
        self.begin += end + used;
        self.put_behind(&ahead);
        // Requests that have arrived already are answered before the caller is told to go elsewhere.
        let has_next = self.begin < self.inbox.len();
        let keep = may_stay && (has_next || !self.connection.is_draining());
        write_head(&mut self.outbox, &reply, Connected { keep, old }, self.connection.server());
        if head_only {
            self.send(Default::default()).await?;
        } else {
            self.send(reply.into_parts()).await?;
        }
        let is_done = at_next && self.begin == self.inbox.len();
        if !keep && !is_done {
            self.socket.cut_short();
        }
        Ok(keep)
    }

    /// Tells the caller that what came in is no request that could be answered. Nothing behind it can be trusted.
    async fn refuse(&mut self, refused: Refused) -> io::Result<bool> {
        let id = self.connection.begin_request();
        let reply = self.service.refuse_request(self.connection, id, refused).await;
        write_head(&mut self.outbox, &reply, Connected::LAST, self.connection.server());
        self.send(reply.into_parts()).await?;
        self.socket.cut_short();
        Ok(false)
    }

    /// Sends the head in the outbox and the body.
    async fn send(&mut self, parts: [Bytes; 3]) -> io::Result<()> {
        let out = &mut self.outbox;
        if parts.iter().map(Bytes::len).sum::<usize>() <= COPIED_BYTES_MAX {
            parts.iter().for_each(|part| out.extend_from_slice(part));
            self.socket.write_all(out).await?;
        } else {
            let [first, second, third] = parts;
            let mut whole = Buf::chain(out.as_slice(), first).chain(second).chain(third);
            self.socket.write_all_buf(&mut whole).await?;
        }
        self.socket.flush().await
    }
}

/// What becomes of the connection.
#[derive(Clone, Copy)]
struct Connected {
    keep: bool,
    /// HTTP/1.0, where to stay is said and to leave is not.
    old: bool,
}

impl Connected {
    const LAST: Self = Self { keep: false, old: false };
}

/// A whole reply for a connection that there is no place for, before it has said anything.
pub(super) fn over_capacity<V: Service>(server: &ServerState, service: &V) -> Vec<u8> {
    let id = RequestId::of_refused_connection(server);
    let reply = service.refuse_connection(id);
    tracing::debug!(request = %id, status = reply.status().as_u16(), "a connection was refused");
    let mut out = Vec::new();
    write_head(&mut out, &reply, Connected::LAST, server);
    reply.into_parts().iter().for_each(|part| out.extend_from_slice(part));
    out
}

fn write_head(out: &mut Vec<u8>, reply: &impl ServiceReply, connected: Connected, server: &ServerState) {
    out.clear();
    write_status(out, reply.status());
    reply.head(out);
    match connected {
        Connected { keep: false, .. } => out.extend_from_slice(b"connection: close\r\n"),
        Connected { keep: true, old: true } => out.extend_from_slice(b"connection: keep-alive\r\n"),
        Connected { keep: true, old: false } => {}
    }
    if reply.status() != StatusCode::NO_CONTENT {
        out.extend_from_slice(b"content-length: ");
        out.extend_from_slice(itoa::Buffer::new().format(reply.body_len()).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    with_http_date(server.clock.unix_seconds(), |date| out.line(&header::DATE, date));
    out.extend_from_slice(b"\r\n");
}

impl Lines for Vec<u8> {
    fn line(&mut self, name: &HeaderName, value: &str) {
        self.extend_from_slice(name.as_str().as_bytes());
        self.extend_from_slice(b": ");
        self.extend_from_slice(value.as_bytes());
        self.extend_from_slice(b"\r\n");
    }
}

fn write_status(out: &mut Vec<u8>, status: StatusCode) {
    if status == StatusCode::OK {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
}
