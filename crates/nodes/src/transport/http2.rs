//! Exchanges over HTTP/2. One connection of hyper's carries all requests of a queue.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::{Instant, timeout};

use crate::call::Fault;

use super::buffer::GROWTH_TIMEOUT;
use super::dial::NodeStream;
use super::gzip;
use super::http_reply::NodeHttpReply;
use super::http1::ExchangeError;
use super::limits::EndpointLimits;
use super::receive::ReceiveContext;
use super::request::RequestBuffer;
use super::stats::ConnectionGuard;
use super::target::Http2Target;

/// Bytes that a node may send ahead on one stream: a large reply needs no second round trip.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// Bytes that a node may send ahead on the connection, over all streams.
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;

/// How often a node is pinged while replies are awaited. One that has vanished would otherwise hold up all calls on the connection.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// How long a node may take to answer a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// A share of a connection that speaks HTTP/2.
#[derive(Clone)]
pub(super) struct Http2 {
    sender: SendRequest<Full<Bytes>>,
    used: bool,
    /// The same for all shares of one connection.
    identity: Arc<()>,
}

impl Http2 {
    /// Starts HTTP/2 on a connection. It runs until it ends or nobody holds a share of it.
    pub(super) async fn begin(
        stream: Box<dyn NodeStream>,
        limits: &EndpointLimits,
        open: ConnectionGuard,
    ) -> Result<Self, Fault> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX));
        let handshake = timeout(limits.connect_timeout, builder.handshake(TokioIo::new(stream))).await;
        let (sender, connection) = handshake.map_err(|_| Fault::Connect)?.map_err(|_| Fault::Connect)?;
        tokio::spawn(async move {
            let _open = open;
            // Those who wait for replies on it learn how it ended.
            let _ = connection.await;
        });
        Ok(Self { sender, used: false, identity: Arc::default() })
    }

    pub(super) fn is_alive(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Another share of the connection.
    pub(super) fn share(&self) -> Self {
        Self { used: true, ..self.clone() }
    }

    pub(super) fn is_same_connection(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.identity, &other.identity)
    }

    pub(super) async fn exchange(
        &mut self,
        request: &RequestBuffer,
        target: &Http2Target,
        context: &ReceiveContext<'_>,
    ) -> Result<NodeHttpReply, ExchangeError> {
        let response = timeout(context.limits.first_byte_timeout, self.send(request, target)).await;
        let response = response.map_err(|_| Fault::Timeout)??;
        self.used = true;
        let status = response.status().as_u16();
        let gzip = is_gzip(response.headers())?;
        let body = collect(response.into_body(), context).await?;
        let body = if gzip { gzip::inflate(body, context).await? } else { body };
        Ok(NodeHttpReply { status, body })
    }

    /// Sends a request, and once more if the node refuses to begin with it. Returns the head of the reply.
    async fn send(
        &mut self,
        request: &RequestBuffer,
        target: &Http2Target,
    ) -> Result<http::Response<Incoming>, ExchangeError> {
        let mut was_repeated = false;
        loop {
            let sent = target.request(request.body(), request.trace()).ok_or(Fault::Closed)?;
            let replied = async {
                self.sender.ready().await?;
                self.sender.send_request(sent).await
            };
            let error = match replied.await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<h2::Error>());
            let is_refused = cause.and_then(h2::Error::reason) == Some(h2::Reason::REFUSED_STREAM);
            if is_refused && !was_repeated && self.is_alive() {
                was_repeated = true;
                continue;
            }
            let is_ended =
                !self.is_alive() || error.is_canceled() || cause.is_some_and(h2::Error::is_go_away);
            // Other errors and a second refusal say nothing about the connection. After an error, the node may have begun to work
            // on the request.
            return Err(if self.used && is_ended { ExchangeError::Stale } else { Fault::Closed.into() });
        }
    }
}

fn is_gzip(headers: &http::HeaderMap) -> Result<bool, Fault> {
    match headers.get("content-encoding").map(|value| value.as_bytes()) {
        None | Some(b"" | b"identity") => Ok(false),
        Some(b"gzip") => Ok(true),
        Some(_) => Err(Fault::Garbled),
    }
}

async fn collect(mut body: Incoming, context: &ReceiveContext<'_>) -> Result<Bytes, Fault> {
    let announced = body.size_hint().exact().map_or(Some(0), |length| usize::try_from(length).ok());
    let announced =
        announced.filter(|length| *length <= context.limits.reply_bytes_max).ok_or(Fault::TooLarge)?;
    let mut whole = context.buffer(announced)?;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Fault::Closed)?.into_data() else { continue };
        if data.len() > context.limits.reply_bytes_max.saturating_sub(whole.bytes().len()) {
            return Err(Fault::TooLarge);
        }
        // A reply that is not read uses up the window of the connection, which others on it need.
        whole.reserve(data.len(), context.until.min(Instant::now() + GROWTH_TIMEOUT)).await?;
        whole.bytes().extend_from_slice(&data);
    }
    Ok(whole.freeze())
}
