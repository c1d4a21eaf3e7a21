//! HTTP/2, which hyper speaks.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{HeaderMap, HeaderName, HeaderValue};
use ::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

use super::connection::Connection;
use super::socket::{READ_BYTES, Socket, Wait};
use super::worker::{Error, Stream};
use crate::http::{self, Head, Verb};
use crate::request;
use crate::respond::{Lines, ReplyBody};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads as much as it takes to tell which protocol the caller speaks; nothing if the caller has left.
pub(super) async fn first_bytes<S: Stream>(socket: &mut Socket<S>) -> io::Result<Vec<u8>> {
    let mut first = Vec::with_capacity(READ_BYTES);
    let mut began = None;
    while socket.read_buf(&mut first).await? > 0 {
        if first.len() >= PREFACE.len() || !PREFACE.starts_with(&first) {
            return Ok(first);
        }
        socket.waits_for(Wait::Head(*began.get_or_insert(socket.free_since())));
    }
    Ok(first)
}

/// Whether a connection that begins with these bytes speaks HTTP/2.
pub(super) fn begins(first: &[u8]) -> bool {
    first.starts_with(PREFACE)
}

/// HTTP/2 floods are bounded by these: streams that are reset before they are accepted, and the size of windows.
const H2_PENDING_RESETS_MAX: usize = 20;
const H2_STREAM_WINDOW_BYTES: u32 = 64 << 10;
const H2_CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
const H2_PING_INTERVAL: Duration = Duration::from_secs(20);
const H2_PING_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn serve<S: Stream>(
    connection: Arc<Connection>,
    mut socket: Socket<S>,
    first: Vec<u8>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), Error> {
    socket.speak_http2(first);
    let limits = &connection.edge().limits.listen;
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.h2_streams_max)
        .max_header_list_size(limits.header_bytes_max as u32)
        .max_pending_accept_reset_streams(H2_PENDING_RESETS_MAX)
        .initial_stream_window_size(H2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(H2_CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(H2_PING_INTERVAL)
        .keep_alive_timeout(H2_PING_TIMEOUT);
    let requests = Arc::clone(&connection);
    let service = service_fn(move |request| {
        let connection = Arc::clone(&requests);
        async move { Ok::<_, Infallible>(answer(&connection, request).await) }
    });
    let mut served = pin!(builder.serve_connection(TokioIo::new(socket), service));
    tokio::select! {
        result = served.as_mut() => return Ok(result?),
        _ = stopping.wait_for(|&stop| stop) => served.as_mut().graceful_shutdown(),
    }
    Ok(served.await?)
}

async fn answer(connection: &Connection, request: Request<Incoming>) -> Response<ReplyBody> {
    let (parts, incoming) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    let head = Head { verb: (&parts.method).into(), target, headers: (&parts.headers).into() };
    let time = connection.edge().limits.listen.body_timeout;
    let reply = request::serve(connection, &head, &mut http::StreamBody { incoming, time }).await;
    let mut response = Response::new(ReplyBody::new(Default::default()));
    *response.status_mut() = reply.status();
    reply.head(response.headers_mut());
    let parts = if head.verb == Verb::Head { Default::default() } else { reply.into_parts() };
    response.map(|_| ReplyBody::new(parts))
}

impl Lines for HeaderMap {
    fn line(&mut self, name: &HeaderName, value: &str) {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.insert(name, value);
        }
    }
}
