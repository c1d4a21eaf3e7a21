//! Exchanges over HTTP/2. One connection of hyper's carries all requests of a queue.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::timeout;

use crate::call::Fault;

use super::dial::NodeStream;
use super::gzip;
use super::http_reply::NodeHttpReply;
use super::http1::ExchangeError;
use super::limits::EndpointLimits;
use super::receive::ReceiveContext;
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
        Ok(Self { sender, used: false })
    }

    pub(super) fn is_alive(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Another share of the connection.
    pub(super) fn share(&self) -> Self {
        Self { sender: self.sender.clone(), used: true }
    }

    pub(super) async fn exchange(
        &mut self,
        body: &[u8],
        target: &Http2Target,
        context: &ReceiveContext<'_>,
    ) -> Result<NodeHttpReply, ExchangeError> {
        let request = target.request(body).ok_or(Fault::Closed)?;
        let heard = async {
            self.sender.ready().await?;
            self.sender.send_request(request).await
        };
        let response = match timeout(context.limits.first_byte_timeout, heard).await {
            Err(_) => return Err(Fault::Timeout.into()),
            // An error of this request alone says nothing about the connection, and the node may have begun to work on it.
            Ok(Err(error)) if self.used && (self.sender.is_closed() || error.is_canceled()) => {
                return Err(ExchangeError::Stale);
            }
            Ok(Err(_)) => return Err(Fault::Closed.into()),
            Ok(Ok(response)) => response,
        };
        self.used = true;
        let status = response.status().as_u16();
        let gzip = is_gzip(response.headers())?;
        let body = collect(response.into_body(), context).await?;
        let body = if gzip { gzip::inflate(body, context).await? } else { body };
        Ok(NodeHttpReply { status, body })
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
    let mut whole = context.buffer(announced).await?;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Fault::Closed)?.into_data() else { continue };
        if data.len() > context.limits.reply_bytes_max.saturating_sub(whole.bytes().len()) {
            return Err(Fault::TooLarge);
        }
        whole.reserve(data.len(), context.until).await?;
        whole.bytes().extend_from_slice(&data);
    }
    Ok(whole.freeze())
}
