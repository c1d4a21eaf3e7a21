//! HTTP/1 connections.
//!
//! Written over `httparse`, because a general library takes as much time per request as everything else together: for tables
//! of headers, channels for bodies and reference counts, which a call does not need. Here a body stays in the input buffer,
//! and a reply is sent in one write. Only one piece of code decides where a request ends.

mod body; // the body of a request
mod chunks; // chunked bodies
mod framing; // requests without answers, for fuzzing
mod head; // strict parsing of heads

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::Buf;
use http::StatusCode;
use http::header::{self, HeaderName};
use resources::box_future;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

pub use self::framing::framed_requests;

use self::body::{BodyEnd, Http1Body};
use self::head::HeadEndSearch;
use crate::connection::{Connection, RequestId};
use crate::date::with_http_date;
use crate::drain::{DrainStage, reached};
use crate::head::RequestMethod;
use crate::limits::{HEADER_BYTES_MAX, HEADERS_MAX};
use crate::policy::LAST_REQUEST_TIME;
use crate::refused::Refused;
use crate::reply_parts::ReplyParts;
use crate::server_state::ServerState;
use crate::service::{HeaderWriter, Service, ServiceReply};
use crate::socket::{ByteStream, READ_BYTES, Socket, Wait};

/// Serves a connection until it ends; `first` are the bytes received so far.
pub(super) async fn serve<V: Service, S: ByteStream>(
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
    let mut http1 = Http1Connection {
        service,
        connection,
        socket,
        input: first,
        input_start: 0,
        output: Vec::new(),
        is_closing: false,
    };
    while http1.serve_next(closing.as_mut()).await? {}
    http1.socket.shutdown().await
}

struct Http1Connection<'c, V, S> {
    service: &'c Arc<V>,
    connection: &'c Connection,
    socket: Socket<S>,
    /// Received bytes.
    input: Vec<u8>,
    /// Start of the unused part of `input`.
    input_start: usize,
    /// The head of a reply, and its body if it is short.
    output: Vec<u8>,
    /// Whether the gateway is shutting down, and the connection waits only for a request in transit.
    is_closing: bool,
}

/// The size of a complete head.
struct HeadBounds {
    /// Offset of its end in the unused input.
    end: usize,
    lines: usize,
}

/// Capacity of the input buffer that a connection keeps between requests.
const KEPT_BYTES: usize = 8 << 10;

/// Headers that fit on the stack; few requests have more.
const STACK_HEADERS: usize = 24;

/// Shorter bodies are copied behind their head, which is cheaper than a vectored write.
const COPIED_BYTES_MAX: usize = 4 << 10;

impl<V: Service, S: ByteStream> Http1Connection<'_, V, S> {
    /// Serves one request. `false`: the connection ends.
    async fn serve_next(&mut self, closing: Pin<&mut impl Future<Output = ()>>) -> io::Result<bool> {
        match self.head(closing).await? {
            // Boxed because an idle connection would hold the memory of a whole request otherwise.
            Ok(Some(head)) => box_future(|| self.answer(head)).await,
            Ok(None) => Ok(false),
            Err(refused) => self.refuse(refused).await,
        }
    }

    /// Waits for a complete head. `None`: the connection ends.
    async fn head(
        &mut self,
        mut closing: Pin<&mut impl Future<Output = ()>>,
    ) -> io::Result<Result<Option<HeadBounds>, Refused>> {
        let (mut search, mut began, mut has_skipped) = (HeadEndSearch::default(), None, false);
        loop {
            if !has_skipped && self.skip_blank_line() {
                (search, began, has_skipped) = (HeadEndSearch::default(), None, true);
            }
            let input = &self.input[self.input_start..];
            let end = match search.end(input) {
                Ok(end) => end,
                Err(refused) => return Ok(Err(refused)),
            };
            let lines = search.lines();
            if end.unwrap_or(input.len()) > HEADER_BYTES_MAX || lines > HEADERS_MAX + 1 {
                return Ok(Err(Refused::HeadTooLarge));
            }
            if let Some(end) = end {
                return Ok(Ok(Some(HeadBounds { end, lines })));
            }
            let idle = input.is_empty();
            self.socket.set_wait(if idle {
                Wait::Request
            } else {
                Wait::Head(*began.get_or_insert(self.socket.last_activity()))
            });
            self.make_room();
            let read = if idle && self.is_closing {
                self.read_last_request().await?
            } else {
                tokio::select! {
                    biased;
                    read = self.socket.read_buf(&mut self.input) => read?,
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

    /// Waits for a request in transit while the gateway is shutting down.
    async fn read_last_request(&mut self) -> io::Result<usize> {
        let quiet = self.connection.server.clock.now().since(self.socket.last_activity());
        let read = self.socket.read_buf(&mut self.input);
        match timeout(LAST_REQUEST_TIME.saturating_sub(quiet), read).await {
            Ok(read) => read,
            Err(_) => {
                self.socket.linger_on_close();
                Ok(0)
            }
        }
    }

    /// Skips a blank line, which some callers send after a body. `false`: there is none. Only one is skipped per request,
    /// because the connection is idle behind it, and could be kept so with a line now and then.
    fn skip_blank_line(&mut self) -> bool {
        let is_blank = self.input[self.input_start..].starts_with(b"\r\n");
        self.input_start += if is_blank { 2 } else { 0 };
        is_blank
    }

    /// Drops the used part of the input and reserves room for the next read.
    fn make_room(&mut self) {
        self.input.drain(..self.input_start);
        self.input_start = 0;
        self.input.shrink_to(KEPT_BYTES);
        self.input.reserve(READ_BYTES);
    }

    /// Appends bytes that were read ahead. The used part is dropped first, so that the buffer of a caller that never pauses
    /// does not grow forever.
    fn append_input(&mut self, read_ahead: &[u8]) {
        if self.input_start >= KEPT_BYTES {
            self.input.drain(..self.input_start);
            self.input_start = 0;
        }
        self.input.extend_from_slice(read_ahead);
    }

    /// Answers the request whose head is at the start of the unused input.
    async fn answer(&mut self, HeadBounds { end, lines }: HeadBounds) -> io::Result<bool> {
        let (mut few, mut many) = ([httparse::EMPTY_HEADER; STACK_HEADERS], Vec::new());
        let room = if lines <= STACK_HEADERS {
            &mut few[..]
        } else {
            many.resize(lines, httparse::EMPTY_HEADER);
            &mut many[..]
        };
        let (text, here) = self.input[self.input_start..].split_at(end);
        let parsed = match head::parse(text, room) {
            Ok(parsed) => parsed,
            Err(refused) => return self.refuse(refused).await,
        };
        let mut body = Http1Body::new(&mut self.socket, here, &parsed);
        let id = self.connection.begin_request();
        let reply = self.service.answer(self.connection, id, &parsed.head, &mut body).await;
        let BodyEnd { used, read_ahead, at_next_request, caller_gone } = body.into_end();
        if caller_gone {
            return Ok(false);
        }
        let (may_stay, is_http10) =
            (parsed.keep_alive && at_next_request && !self.connection.is_last(), parsed.is_http10);
        let head_only = parsed.head.method == RequestMethod::Head;
        self.input_start += end + used;
        self.append_input(&read_ahead);
        // During a shutdown, requests that have already arrived are answered before the connection is closed.
        let has_next = self.input_start < self.input.len();
        let keep = may_stay && (has_next || !self.connection.is_draining());
        write_head(&mut self.output, &reply, KeepAlive { keep, is_http10 }, &self.connection.server);
        if head_only {
            self.send(ReplyParts::default()).await?;
        } else {
            self.send(reply.into_parts()).await?;
        }
        let is_done = at_next_request && self.input_start == self.input.len();
        if !keep && !is_done {
            self.socket.linger_on_close();
        }
        Ok(keep)
    }

    /// Refuses a request that cannot be parsed, and ends the connection, because the start of the next request is unknown.
    async fn refuse(&mut self, refused: Refused) -> io::Result<bool> {
        let id = self.connection.begin_request();
        let reply = self.service.refuse_request(self.connection, id, refused).await;
        write_head(&mut self.output, &reply, KeepAlive::LAST, &self.connection.server);
        self.send(reply.into_parts()).await?;
        self.socket.linger_on_close();
        Ok(false)
    }

    /// Sends the head in `output`, and the body.
    async fn send(&mut self, parts: ReplyParts) -> io::Result<()> {
        self.socket.set_wait(Wait::Answer);
        let out = &mut self.output;
        if parts.total_len() <= COPIED_BYTES_MAX {
            parts.iter().for_each(|part| out.extend_from_slice(part));
            self.socket.write_all(out).await?;
        } else {
            let [first, second, third] = parts.into_array();
            let mut whole = Buf::chain(out.as_slice(), first).chain(second).chain(third);
            self.socket.write_all_buf(&mut whole).await?;
        }
        self.socket.flush().await
    }
}

/// Whether the connection stays open after a reply.
#[derive(Clone, Copy)]
struct KeepAlive {
    keep: bool,
    /// HTTP/1.0 needs `Connection: keep-alive` to stay open.
    is_http10: bool,
}

impl KeepAlive {
    const LAST: Self = Self { keep: false, is_http10: false };
}

/// The complete reply to a connection that is refused because there are too many.
pub(super) fn over_capacity<V: Service>(server: &ServerState, service: &V) -> Vec<u8> {
    let id = RequestId::of_refused_connection(server);
    let reply = service.refuse_connection(id);
    tracing::debug!(request = %id, status = reply.status().as_u16(), "connection refused");
    let mut out = Vec::new();
    write_head(&mut out, &reply, KeepAlive::LAST, server);
    reply.into_parts().iter().for_each(|part| out.extend_from_slice(part));
    out
}

fn write_head(out: &mut Vec<u8>, reply: &impl ServiceReply, keep_alive: KeepAlive, server: &ServerState) {
    out.clear();
    write_status(out, reply.status());
    reply.write_headers(out);
    match keep_alive {
        KeepAlive { keep: false, .. } => out.extend_from_slice(b"connection: close\r\n"),
        KeepAlive { keep: true, is_http10: true } => out.extend_from_slice(b"connection: keep-alive\r\n"),
        KeepAlive { keep: true, is_http10: false } => {}
    }
    if reply.status() != StatusCode::NO_CONTENT {
        out.extend_from_slice(b"content-length: ");
        out.extend_from_slice(itoa::Buffer::new().format(reply.body_len()).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    with_http_date(server.clock.unix_seconds(), |date| out.header(&header::DATE, date));
    out.extend_from_slice(b"\r\n");
}

impl HeaderWriter for Vec<u8> {
    fn header(&mut self, name: &HeaderName, value: &str) {
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
