//! HTTP/2 connections.
//!
//! The `h2` crate reads and writes the frames. This module adds what it leaves open: idle timeouts, the end of a connection,
//! and a bound on the memory of callers that do not read.

mod body; // the body of a request
mod reply; // the body of a reply

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use h2::server::{self, Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};

use self::body::Http2Body;
use crate::BoxError as Error;
use crate::connection::{Connection, RequestId};
use crate::date::with_http_date;
use crate::drain::{DrainStage, next_stage};
use crate::head::{RequestHead, RequestMethod};
use crate::limits::{HEADER_BYTES_MAX, HEADERS_MAX, HttpLimits};
use crate::policy::{
    CONNECTION_WINDOW_BYTES, FLUSH_TIME, GOAWAY_TIME, PENDING_RESETS_MAX, STREAM_WINDOW_BYTES,
};
use crate::refused::Refused;
use crate::service::{HeaderWriter, Service, ServiceReply};
use crate::socket::{ByteStream, PREFACE, READ_BYTES, Socket, Wait};

/// Reads enough bytes to distinguish HTTP/1 and HTTP/2; empty if the caller has disconnected.
pub(super) async fn first_bytes<S: ByteStream>(socket: &mut Socket<S>) -> io::Result<Vec<u8>> {
    let mut first = Vec::with_capacity(READ_BYTES);
    let mut began = None;
    while socket.read_buf(&mut first).await? > 0 {
        if first.len() >= PREFACE.len() || !PREFACE.starts_with(&first) {
            return Ok(first);
        }
        socket.set_wait(Wait::Head(*began.get_or_insert(socket.last_activity())));
    }
    Ok(first)
}

/// Whether a connection that begins with these bytes is HTTP/2.
pub(super) fn is_http2(first: &[u8]) -> bool {
    first.starts_with(PREFACE)
}

/// Bytes of a reply that `h2` buffers: one piece is written while the next one is added.
const SEND_BUFFER_BYTES: usize = 2 * reply::PIECE_BYTES;

/// Serves a connection until it ends; `first` are the bytes received so far.
pub(super) async fn serve<V: Service, S: ByteStream>(
    service: &Arc<V>,
    connection: Arc<Connection>,
    mut socket: Socket<S>,
    first: Vec<u8>,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    socket.switch_to_http2(first)?;
    let limits = &connection.limits;
    let began = Instant::now();
    let first_request_deadline = connection.server.step_deadline(connection.accepted);
    let handshake = builder(limits).handshake(socket);
    let h2 = timeout_at(first_request_deadline, handshake).await??;
    let serving = Http2Connection {
        service,
        connection: &connection,
        h2,
        requests: JoinSet::new(),
        first_request_deadline,
        idle_since: began,
        replied_at: began,
        goaway_since: None,
    };
    serving.run(stage).await
}

fn builder(limits: &HttpLimits) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(limits.h2_streams_max)
        .max_header_list_size(HEADER_BYTES_MAX as u32)
        .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buffer_size(SEND_BUFFER_BYTES);
    builder
}

struct Http2Connection<'c, V, S> {
    service: &'c Arc<V>,
    connection: &'c Arc<Connection>,
    h2: server::Connection<Socket<S>, Bytes>,
    /// Requests in progress, which are cancelled when the connection ends. Each returns whether a reply was sent.
    requests: JoinSet<bool>,
    first_request_deadline: Instant,
    /// When the last request ended.
    idle_since: Instant,
    /// When the last request ended that had a reply.
    replied_at: Instant,
    goaway_since: Option<Instant>,
}

impl<V: Service, S: ByteStream> Http2Connection<'_, V, S> {
    async fn run(mut self, mut stage: watch::Receiver<DrainStage>) -> Result<(), Error> {
        let mut reached = DrainStage::Serving;
        loop {
            let idle_end = self.idle_end();
            let is_flushing = !self.is_new() && !self.is_idle() && !self.is_running();
            tokio::select! {
                biased;
                accepted = self.h2.accept() => match accepted {
                    Some(accepted) => {
                        let (request, respond) = accepted?;
                        self.begin_request(request, respond);
                        if reached >= DrainStage::Draining {
                            self.go_away();
                        }
                    }
                    None => return Ok(()),
                },
                Some(ended) = self.requests.join_next() => self.end_request(ended),
                next = next_stage(&mut stage, reached) => {
                    reached = next;
                    // A caller that has just connected may still send its first request.
                    if !self.is_new() || reached == DrainStage::Closing {
                        self.go_away();
                    }
                }
                () = sleep_until(self.replied_at + FLUSH_TIME), if is_flushing => {
                    // The body of a request may have been completed meanwhile.
                    self.connection.state.is_idle.store(!self.is_running(), Relaxed);
                }
                () = until(idle_end), if self.requests.is_empty() => {
                    if self.is_new() || self.goaway_since.is_some() {
                        return Ok(());
                    }
                    self.go_away();
                }
            }
        }
    }

    /// Until when the connection may be idle; `None` if that is beyond all time.
    fn idle_end(&self) -> Option<Instant> {
        match self.goaway_since {
            Some(_) => self.idle_since.checked_add(GOAWAY_TIME),
            None if self.is_new() => Some(self.first_request_deadline),
            None => self.idle_since.checked_add(self.connection.limits.keep_alive_timeout),
        }
    }

    /// Whether the connection may be closed to make room for another.
    fn is_idle(&self) -> bool {
        self.connection.state.may_make_room()
    }

    /// Whether a request is running whose body is complete.
    fn is_running(&self) -> bool {
        self.connection.state.running.load(Relaxed) > 0
    }

    /// Whether the connection has not received a request yet.
    fn is_new(&self) -> bool {
        self.connection.state.is_new()
    }

    fn begin_request(&mut self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        // While requests arrive one after the other, `run` does not get to those that have ended.
        while let Some(ended) = self.requests.try_join_next() {
            self.end_request(ended);
        }
        if self.goaway_since.is_some_and(|since| since.elapsed() > GOAWAY_TIME) {
            return respond.send_reset(Reason::REFUSED_STREAM);
        }
        let id = self.connection.begin_request();
        let (service, connection) = (Arc::clone(self.service), Arc::clone(self.connection));
        self.requests.spawn(exchange(service, connection, id, request, respond));
        if self.connection.is_last() {
            self.go_away();
        }
    }

    fn end_request(&mut self, ended: Result<bool, JoinError>) {
        self.idle_since = Instant::now();
        match ended {
            Ok(true) => self.replied_at = self.idle_since,
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "a request ended abnormally"),
        }
        if self.connection.is_last() {
            self.go_away();
        }
    }

    /// Sends GOAWAY, so that the caller opens a new connection.
    fn go_away(&mut self) {
        if self.goaway_since.is_none() {
            let now = Instant::now();
            (self.goaway_since, self.idle_since) = (Some(now), now);
            self.h2.graceful_shutdown();
        }
    }
}

/// Waits until `end`, or forever without one.
async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// Answers one request. `false`: it was cancelled before its reply.
async fn exchange<V: Service>(
    service: Arc<V>,
    connection: Arc<Connection>,
    id: RequestId,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) -> bool {
    let (parts, incoming) = request.into_parts();
    let limits = &connection.limits;
    let is_head = RequestMethod::from(&parts.method) == RequestMethod::Head;
    let state = Arc::clone(&connection.state);
    let mut body = Http2Body::new(incoming, limits.body_timeout, request_bytes(&parts), state);
    let reply = {
        let mut answered = pin!(answer(&service, &connection, id, parts, &mut body));
        tokio::select! {
            biased;
            reply = answered.as_mut() => reply,
            // The caller has reset the stream, or the connection has ended.
            _ = poll_fn(|cx| respond.poll_reset(cx)) => return false,
        }
    };
    let response = response(&connection, &reply);
    let has_body = reply.body_len() > 0 && !is_head;
    let sent = match respond.send_response(response, !has_body) {
        Ok(stream) if has_body => reply::send(&connection.state, limits, stream, reply.into_parts()).await,
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "a reply was not sent completely");
    }
    true
}

/// Measured memory of a request without its head, body and reply: its task, and its stream in `h2`.
const REQUEST_STATE_BYTES: usize = 10 << 10;

/// Memory of a header without its name and value.
const HEADER_STATE_BYTES: usize = 64;

/// Memory of a request until its reply is sent, without its body.
fn request_bytes(parts: &Parts) -> usize {
    let target = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
    let headers = parts.headers.iter();
    let headers = headers.map(|(name, value)| HEADER_STATE_BYTES + name.as_str().len() + value.len());
    REQUEST_STATE_BYTES + target + headers.sum::<usize>()
}

async fn answer<V: Service>(
    service: &Arc<V>,
    connection: &Connection,
    id: RequestId,
    parts: Parts,
    body: &mut Http2Body,
) -> V::Reply {
    if parts.headers.len() > HEADERS_MAX {
        // No key is looked for in such a head. The connection goes on, so without a limit this could be repeated for ever.
        let _refused_anyway = connection.count_unauthenticated((&parts.headers).into());
        return service.refuse_request(connection, id, Refused::HeadTooLarge).await;
    }
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    let head = RequestHead { method: (&parts.method).into(), target, headers: (&parts.headers).into() };
    let reply = service.answer(connection, id, &head, body).await;
    // The head may be larger than the reply, and is not needed any more.
    drop(parts);
    // Waiting for the rest of the body holds the state of the request, so it must be bounded by a charge or a rate limit.
    let may_wait = match reply.status() {
        StatusCode::SERVICE_UNAVAILABLE => body.is_charged(),
        // A preflight, or a request beyond the rate of requests without a valid key.
        StatusCode::NO_CONTENT | StatusCode::TOO_MANY_REQUESTS => false,
        _ => true,
    };
    if may_wait {
        body.discard().await;
    }
    reply
}

fn response(connection: &Connection, reply: &impl ServiceReply) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = reply.status();
    let headers = response.headers_mut();
    reply.write_headers(headers);
    if reply.status() != StatusCode::NO_CONTENT {
        headers.insert(header::CONTENT_LENGTH, reply.body_len().into());
    }
    let clock = &connection.server.clock;
    with_http_date(clock.unix_seconds(), |date| headers.header(&header::DATE, date));
    response
}

impl HeaderWriter for HeaderMap {
    fn header(&mut self, name: &HeaderName, value: &str) {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.insert(name, value);
        }
    }
}
