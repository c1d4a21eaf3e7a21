//! HTTP/1.1 on one connection: a request goes out in one write, and its reply comes back.

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::call::Fault;

use super::dial::Stream;
use super::gzip;
use super::head::{Extent, Head};
use super::limits::Limits;
use super::outcome::Answer;
use super::receive::Terms;
use super::stats::Open;

/// Room made before each read: most replies come in one.
const READ_BYTES: usize = 8 << 10;

/// Bodies up to this size are read into the line's own buffer; a larger one gets a buffer of its size.
const SMALL_BODY_BYTES: usize = 16 << 10;

/// Provisional replies (1xx) before the real one. None is asked for.
const PROVISIONAL_MAX: usize = 4;

/// How an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The node had hung up before the request reached it, as it may do with a connection that rested. Nothing
    /// was heard, and asking once more on a new connection is safe.
    Stale,
    Fault(Fault),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A connection that speaks HTTP/1.1.
pub(super) struct Http1 {
    stream: Box<dyn Stream>,
    inbox: BytesMut,
    /// Whether a reply has come on it before.
    used: bool,
    alive: bool,
    _open: Open,
}

impl Http1 {
    pub(super) fn new(stream: Box<dyn Stream>, open: Open) -> Self {
        Self { stream, inbox: BytesMut::new(), used: false, alive: true, _open: open }
    }

    /// Whether another request may go out on it.
    pub(super) fn is_alive(&self) -> bool {
        self.alive
    }

    /// Sends a request and reads its reply. Dropped before its end, it leaves a connection that is not alive.
    pub(super) async fn exchange(&mut self, request: &[u8], terms: &Terms<'_>) -> Result<Answer, Trouble> {
        self.alive = false;
        if self.write(request).await.is_err() {
            return Err(self.unheard());
        }
        let head = timeout(terms.limits.first_byte_timeout, self.head(terms.limits)).await;
        let head = head.map_err(|_| Fault::Timeout)??;
        self.used = true;
        let body = self.body(head.body, terms).await?;
        // Bytes after the reply belong to nothing that was asked.
        self.alive = head.keep_alive && self.inbox.is_empty();
        let body = if head.gzip { gzip::inflate(body, terms).await? } else { body };
        Ok(Answer { status: head.status, body })
    }

    /// Waits until the node hangs up or says something that it was not asked; either is the end of the connection.
    pub(super) async fn hang_up(&mut self) {
        let mut unasked = [0];
        let _ = self.stream.read(&mut unasked).await;
        self.alive = false;
    }

    async fn write(&mut self, request: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(request).await?;
        // TLS may hold the last of it back.
        self.stream.flush().await
    }

    fn unheard(&self) -> Trouble {
        if self.used { Trouble::Stale } else { Trouble::Fault(Fault::Closed) }
    }

    async fn head(&mut self, limits: &Limits) -> Result<Head, Trouble> {
        let mut provisional = 0;
        loop {
            match Head::parse(&self.inbox)? {
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

    async fn more_of_head(&mut self) -> Result<(), Trouble> {
        match self.read().await {
            Ok(count) if count > 0 => Ok(()),
            _ if self.inbox.is_empty() => Err(self.unheard()),
            _ => Err(Fault::Closed.into()),
        }
    }

    /// Zero at the end of the connection.
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

    async fn body(&mut self, extent: Extent, terms: &Terms<'_>) -> Result<Bytes, Fault> {
        match extent {
            Extent::Length(length) if length > terms.limits.reply_bytes_max => Err(Fault::TooLarge),
            Extent::Length(length) if length <= SMALL_BODY_BYTES => self.small(length).await,
            Extent::Length(length) => self.large(length, terms).await,
            Extent::Chunked => self.chunked(terms).await,
            Extent::Close => self.until_close(terms).await,
        }
    }

    async fn small(&mut self, length: usize) -> Result<Bytes, Fault> {
        while self.inbox.len() < length {
            self.more().await?;
        }
        Ok(self.inbox.split_to(length).freeze())
    }

    async fn large(&mut self, length: usize, terms: &Terms<'_>) -> Result<Bytes, Fault> {
        let mut buffer = terms.buffer(length).await?;
        self.pour(buffer.bytes(), length).await?;
        Ok(buffer.freeze())
    }

    /// Moves `count` bytes into `body`: what has come already, and then straight from the connection.
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

    async fn chunked(&mut self, terms: &Terms<'_>) -> Result<Bytes, Fault> {
        let mut body = terms.buffer(0).await?;
        loop {
            let size = self.chunk_size().await?;
            if size > terms.limits.reply_bytes_max.saturating_sub(body.bytes().len()) {
                return Err(Fault::TooLarge);
            }
            if size == 0 {
                self.trailers().await?;
                return Ok(body.freeze());
            }
            body.reserve(size, terms.until).await?;
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

    /// Lines after the last chunk, up to an empty one. Nobody needs them.
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

    async fn until_close(&mut self, terms: &Terms<'_>) -> Result<Bytes, Fault> {
        let mut body = terms.buffer(self.inbox.len()).await?;
        loop {
            let come = self.inbox.split();
            if body.bytes().len() + come.len() > terms.limits.reply_bytes_max {
                return Err(Fault::TooLarge);
            }
            body.reserve(come.len(), terms.until).await?;
            body.bytes().extend_from_slice(&come);
            match self.read().await {
                Ok(0) => return Ok(body.freeze()),
                Ok(_) => {}
                Err(_) => return Err(Fault::Closed),
            }
        }
    }
}

/// The size of a chunk in digits, and extensions that nobody uses.
const CHUNK_LINE_BYTES_MAX: usize = 256;

/// Trailers are a few checksums at most.
const TRAILER_BYTES_MAX: usize = 4 << 10;
