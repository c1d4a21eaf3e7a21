//! Exchanges over HTTP/1.1: a request is sent in one write, and its reply is read.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http1_framing::{BodyFraming, ChunkDecoder, ChunkStep, LineLimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::call::Fault;

use super::buffer::{Buffer, FIRST_BYTES};
use super::dial::NodeStream;
use super::gzip;
use super::head::ReplyHead;
use super::http_reply::NodeHttpReply;
use super::limits::EndpointLimits;
use super::receive::ReceiveContext;
use super::stats::ConnectionGuard;

/// Bytes that are reserved before each read. Most replies fit into one.
const READ_BYTES: usize = 8 << 10;

/// Bodies up to this size are read into the buffer of the connection. A larger one gets a buffer of its own.
const SMALL_BODY_BYTES: usize = 16 << 10;

/// The most provisional replies (1xx) before the final one. None is requested.
const PROVISIONAL_MAX: usize = 4;

/// The most bytes of a chunk's size and extensions, or of all trailers, which are a few checksums at most.
const CHUNK_LINE_BYTES_MAX: usize = 4 << 10;

/// How an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeError {
    /// A connection that was used before ended without a byte of the reply: mostly because the node closed it while it was
    /// idle. All calls are reads, so sending the request again on a new connection is safe.
    Stale,
    Fault(Fault),
}

impl From<Fault> for ExchangeError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A connection that speaks HTTP/1.1.
pub(super) struct Http1 {
    stream: Box<dyn NodeStream>,
    inbox: BytesMut,
    /// Whether a reply was received on it before.
    used: bool,
    alive: bool,
    _open: ConnectionGuard,
}

impl Http1 {
    pub(super) fn new(stream: Box<dyn NodeStream>, open: ConnectionGuard) -> Self {
        Self { stream, inbox: BytesMut::new(), used: false, alive: true, _open: open }
    }

    /// Whether another request may be sent on it.
    pub(super) fn is_alive(&self) -> bool {
        self.alive
    }

    /// Sends a request and reads its reply. If the future is dropped before its end, the connection is not alive any more.
    pub(super) async fn exchange(
        &mut self,
        request: &[u8],
        context: &ReceiveContext<'_>,
    ) -> Result<NodeHttpReply, ExchangeError> {
        self.alive = false;
        if self.write(request).await.is_err() {
            return Err(self.closed_error());
        }
        let head = timeout(context.limits.first_byte_timeout, self.head(context.limits)).await;
        let head = head.map_err(|_| Fault::Timeout)??;
        self.used = true;
        let body = self.body(head.body, context).await?;
        // Bytes after the reply belong to no request.
        self.alive = head.keep_alive && self.inbox.is_empty();
        let body = if head.gzip { gzip::inflate(body, context).await? } else { body };
        Ok(NodeHttpReply { status: head.status, body })
    }

    /// Waits until the node closes the connection, or ends it by sending something without a request.
    pub(super) async fn closed(&mut self) {
        let mut unasked = [0];
        let _ = self.stream.read(&mut unasked).await;
        self.alive = false;
    }

    async fn write(&mut self, request: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(request).await?;
        // TLS may hold back the last bytes.
        self.stream.flush().await
    }

    fn closed_error(&self) -> ExchangeError {
        if self.used { ExchangeError::Stale } else { ExchangeError::Fault(Fault::Closed) }
    }

    async fn head(&mut self, limits: &EndpointLimits) -> Result<ReplyHead, ExchangeError> {
        let mut provisional = 0;
        loop {
            match ReplyHead::parse(&self.inbox)? {
                Some(head) if !(100..200).contains(&head.status) => {
                    let _head = self.inbox.split_to(head.bytes);
                    return Ok(head);
                }
                Some(head) if head.status != 101 && provisional < PROVISIONAL_MAX => {
                    provisional += 1;
                    let _provisional = self.inbox.split_to(head.bytes);
                }
                Some(_) => return Err(Fault::Garbled.into()),
                None if self.inbox.len() > limits.head_bytes_max => return Err(Fault::TooLarge.into()),
                None => self.more_of_head().await?,
            }
        }
    }

    async fn more_of_head(&mut self) -> Result<(), ExchangeError> {
        match self.read().await {
            Ok(count) if count > 0 => Ok(()),
            _ if self.inbox.is_empty() => Err(self.closed_error()),
            _ => Err(Fault::Closed.into()),
        }
    }

    /// Returns zero at the end of the connection.
    async fn read(&mut self) -> std::io::Result<usize> {
        self.inbox.reserve(READ_BYTES);
        self.stream.read_buf(&mut self.inbox).await
    }

    async fn more(&mut self) -> Result<(), Fault> {
        match self.read().await {
            Ok(count) if count > 0 => Ok(()),
            _ => Err(Fault::Closed),
        }
    }

    /// Reads a body. Without a framing, it ends with the connection.
    async fn body(
        &mut self,
        framing: Option<BodyFraming>,
        context: &ReceiveContext<'_>,
    ) -> Result<Bytes, Fault> {
        match framing {
            Some(BodyFraming::Bytes(length)) => match within(length, context.limits.reply_bytes_max)? {
                length if length <= SMALL_BODY_BYTES => self.small(length).await,
                length => self.large(length, context).await,
            },
            Some(BodyFraming::Chunks) => self.chunked(context).await,
            None => self.until_close(context).await,
        }
    }

    async fn small(&mut self, length: usize) -> Result<Bytes, Fault> {
        while self.inbox.len() < length {
            self.more().await?;
        }
        Ok(self.inbox.split_to(length).freeze())
    }

    async fn large(&mut self, length: usize, context: &ReceiveContext<'_>) -> Result<Bytes, Fault> {
        let mut buffer = context.buffer(length)?;
        self.fill(&mut buffer, length, context).await?;
        Ok(buffer.freeze())
    }

    /// Moves `count` bytes into `buffer`, in pieces as large as what has arrived, because a node may announce what it never
    /// sends.
    async fn fill(
        &mut self,
        buffer: &mut Buffer,
        count: usize,
        context: &ReceiveContext<'_>,
    ) -> Result<(), Fault> {
        let mut left = count;
        while left > 0 {
            let piece = left.min(FIRST_BYTES.max(buffer.bytes().len()));
            buffer.reserve(piece, context.until).await?;
            self.pour(buffer.bytes(), piece).await?;
            left -= piece;
        }
        Ok(())
    }

    /// Moves `count` bytes into `body`: first those that were read already, then directly from the connection.
    async fn pour(&mut self, body: &mut Vec<u8>, count: usize) -> Result<(), Fault> {
        let whole = body.len() + count;
        let come = count.min(self.inbox.len());
        body.extend_from_slice(&self.inbox.split_to(come));
        body.reserve(whole - body.len());
        while body.len() < whole {
            let room = whole - body.len();
            let read = self.stream.read_buf(&mut (&mut *body).limit(room)).await;
            if !matches!(read, Ok(1..)) {
                return Err(Fault::Closed);
            }
        }
        Ok(())
    }

    async fn chunked(&mut self, context: &ReceiveContext<'_>) -> Result<Bytes, Fault> {
        let mut body = context.buffer(0)?;
        let mut decoder = ChunkDecoder::new(LineLimit::PerChunk(CHUNK_LINE_BYTES_MAX));
        loop {
            let (used, next) = decoder.read_lines(&self.inbox)?;
            self.inbox.advance(used);
            match next {
                ChunkStep::Line => self.more().await?,
                ChunkStep::Data(size) => {
                    let free = context.limits.reply_bytes_max.saturating_sub(body.bytes().len());
                    let length = within(size, free)?;
                    self.fill(&mut body, length, context).await?;
                    decoder.take_data(size);
                }
                ChunkStep::End => return Ok(body.freeze()),
            }
        }
    }

    async fn until_close(&mut self, context: &ReceiveContext<'_>) -> Result<Bytes, Fault> {
        let mut body = context.buffer(0)?;
        loop {
            let come = self.inbox.split();
            if body.bytes().len() + come.len() > context.limits.reply_bytes_max {
                return Err(Fault::TooLarge);
            }
            body.reserve(come.len(), context.until).await?;
            body.bytes().extend_from_slice(&come);
            match self.read().await {
                Ok(0) => return Ok(body.freeze()),
                Ok(_) => {}
                Err(_) => return Err(Fault::Closed),
            }
        }
    }
}

/// A length that the node states, if it is allowed.
fn within(length: u64, bytes_max: usize) -> Result<usize, Fault> {
    usize::try_from(length).ok().filter(|&length| length <= bytes_max).ok_or(Fault::TooLarge)
}
