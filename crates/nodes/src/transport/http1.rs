//! Exchanges over HTTP/1.1: a request is sent in one write, and its reply is read.

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::call::Fault;

use super::dial::NodeStream;
use super::gzip;
use super::head::{BodyLength, ReplyHead};
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

/// How an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeError {
    /// The node had closed the idle connection before the request reached it. Sending it again on a new connection is safe.
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

    async fn body(&mut self, body_length: BodyLength, context: &ReceiveContext<'_>) -> Result<Bytes, Fault> {
        match body_length {
            BodyLength::Known(length) if length > context.limits.reply_bytes_max => Err(Fault::TooLarge),
            BodyLength::Known(length) if length <= SMALL_BODY_BYTES => self.small(length).await,
            BodyLength::Known(length) => self.large(length, context).await,
            BodyLength::Chunked => self.chunked(context).await,
            BodyLength::UntilClose => self.until_close(context).await,
        }
    }

    async fn small(&mut self, length: usize) -> Result<Bytes, Fault> {
        while self.inbox.len() < length {
            self.more().await?;
        }
        Ok(self.inbox.split_to(length).freeze())
    }

    async fn large(&mut self, length: usize, context: &ReceiveContext<'_>) -> Result<Bytes, Fault> {
        let mut buffer = context.buffer(length).await?;
        self.pour(buffer.bytes(), length).await?;
        Ok(buffer.freeze())
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
        let mut body = context.buffer(0).await?;
        loop {
            let size = self.chunk_size().await?;
            if size > context.limits.reply_bytes_max.saturating_sub(body.bytes().len()) {
                return Err(Fault::TooLarge);
            }
            if size == 0 {
                self.trailers().await?;
                return Ok(body.freeze());
            }
            body.reserve(size, context.until).await?;
            self.pour(body.bytes(), size).await?;
            while self.inbox.len() < 2 {
                self.more().await?;
            }
            if *self.inbox.split_to(2) != *b"\r\n" {
                return Err(Fault::Garbled);
            }
        }
    }

    async fn chunk_size(&mut self) -> Result<usize, Fault> {
        loop {
            match httparse::parse_chunk_size(&self.inbox).map_err(|_| Fault::Garbled)? {
                httparse::Status::Complete((bytes, size)) => {
                    let _line = self.inbox.split_to(bytes);
                    return usize::try_from(size).map_err(|_| Fault::TooLarge);
                }
                httparse::Status::Partial if self.inbox.len() > CHUNK_LINE_BYTES_MAX => {
                    return Err(Fault::Garbled);
                }
                httparse::Status::Partial => self.more().await?,
            }
        }
    }

    /// Skips the trailers after the last chunk.
    async fn trailers(&mut self) -> Result<(), Fault> {
        let mut seen = 0;
        loop {
            while let Some(end) = memchr::memchr(b'\n', &self.inbox) {
                let line = self.inbox.split_to(end + 1);
                if line.trim_ascii().is_empty() {
                    return Ok(());
                }
                seen += line.len();
            }
            if seen + self.inbox.len() > TRAILER_BYTES_MAX {
                return Err(Fault::Garbled);
            }
            self.more().await?;
        }
    }

    async fn until_close(&mut self, context: &ReceiveContext<'_>) -> Result<Bytes, Fault> {
        let mut body = context.buffer(self.inbox.len()).await?;
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

/// The longest line with the size of a chunk and its extensions.
const CHUNK_LINE_BYTES_MAX: usize = 256;

/// The most bytes of trailers, which are a few checksums at most.
const TRAILER_BYTES_MAX: usize = 4 << 10;
