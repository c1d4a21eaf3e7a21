//! The body of an HTTP/1 request. Also notices while the answer is computed that the caller has disconnected.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http1_framing::BodyFraming;
use resources::{AccountMemory, ChargedBuffer, MemoryCharge};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::time::Sleep;

use super::chunks::ChunkedBody;
use super::head::ParsedHead;
use crate::policy::{AHEAD_BYTES_MAX, HALF_CLOSED_TIME, SKIPPED_BYTES_MAX};
use crate::refused::Refused;
use crate::request_body::{self, ReceivedBody};
use crate::socket::{ByteStream, Socket, Wait};

/// The body of one request.
pub(super) struct Http1Body<'a, S> {
    socket: &'a mut Socket<S>,
    /// Bytes received together with the head: the body or a part of it, and perhaps the next request.
    received: &'a [u8],
    framing: BodyFraming,
    expects_continue: bool,
    /// Bytes of `received` that belong to the body.
    used: usize,
    /// Whether the body was read completely, and the next request follows.
    at_next_request: bool,
    /// Bytes received while the answer was computed.
    read_ahead: Vec<u8>,
    /// Runs after the caller has closed its sending side, while the answer is computed.
    half_closed: Option<Pin<Box<Sleep>>>,
    caller_gone: bool,
}

/// The state of the input after a request was answered.
pub(super) struct BodyEnd {
    /// Bytes received with the head that belong to the body.
    pub(super) used: usize,
    /// Bytes received while the answer was computed.
    pub(super) read_ahead: Vec<u8>,
    /// Whether the body was read completely, and the next request follows.
    pub(super) at_next_request: bool,
    /// Whether the caller has disconnected.
    pub(super) caller_gone: bool,
}

/// Bytes read at once. The buffer grows as bytes arrive; the stated length of a body is not allocated in advance.
const STEP_BYTES: usize = 4 << 10;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl<'a, S: ByteStream> Http1Body<'a, S> {
    pub(super) fn new(socket: &'a mut Socket<S>, received: &'a [u8], parsed: &ParsedHead<'_>) -> Self {
        let ParsedHead { framing, expects_continue, .. } = *parsed;
        let at_next_request = framing == BodyFraming::Bytes(0);
        Self {
            socket,
            received,
            framing,
            expects_continue,
            used: 0,
            at_next_request,
            read_ahead: Vec::new(),
            half_closed: None,
            caller_gone: false,
        }
    }

    pub(super) fn into_end(self) -> BodyEnd {
        let Self { used, read_ahead, at_next_request, caller_gone, .. } = self;
        BodyEnd { used, read_ahead, at_next_request, caller_gone }
    }

    async fn read_bytes(
        &mut self,
        length: u64,
        bytes_max: usize,
        memory: AccountMemory<'_>,
    ) -> Result<ReceivedBody<'a>, Refused> {
        let length = usize::try_from(length).ok().filter(|&length| length <= bytes_max);
        let length = length.ok_or(Refused::TooLarge)?;
        if let Some(body) = self.received.get(..length) {
            (self.used, self.at_next_request) = (length, true);
            return Ok(ReceivedBody::borrowed(body));
        }
        self.used = self.received.len();
        let mut whole = ChargedBuffer::default();
        whole.reserve(memory, self.received.len(), length)?;
        whole.bytes_mut().extend_from_slice(self.received);
        self.begin_body().await?;
        while whole.bytes().len() < length {
            let left = length - whole.bytes().len();
            whole.reserve(memory, left.min(STEP_BYTES), length)?;
            let mut rest = (&mut *self.socket).take(left as u64);
            if !matches!(rest.read_buf(whole.bytes_mut()).await, Ok(1..)) {
                return Err(Refused::Broken);
            }
        }
        self.at_next_request = true;
        Ok(whole.into())
    }

    /// Reads and discards a body of at most `bytes_max` bytes.
    async fn discard_bytes(&mut self, length: u64, bytes_max: u64) -> Result<(), Refused> {
        if length > bytes_max {
            return Err(Refused::TooLarge);
        }
        let received = self.received.len().min(usize::try_from(length).unwrap_or(usize::MAX));
        self.used = received;
        let mut left = length - received as u64;
        if left > 0 {
            self.begin_body().await?;
        }
        // On the heap, because an array would make the task of every connection larger.
        let mut discarded = Vec::with_capacity(left.min(STEP_BYTES as u64) as usize);
        while left > 0 {
            discarded.clear();
            match (&mut *self.socket).take(left).read_buf(&mut discarded).await {
                Ok(read @ 1..) => left -= read as u64,
                _ => return Err(Refused::Broken),
            }
        }
        self.at_next_request = true;
        Ok(())
    }

    /// Reads a chunked body. The connection ends after its reply, so that a proxy that reads the chunks differently cannot
    /// smuggle a request behind it.
    async fn read_chunks(
        &mut self,
        bytes_max: usize,
        memory: AccountMemory<'_>,
    ) -> Result<ReceivedBody<'a>, Refused> {
        let (mut chunks, mut charge) = (ChunkedBody::new(), MemoryCharge::default());
        self.used = self.received.len();
        chunks.feed(self.received, bytes_max)?;
        if !chunks.is_whole() {
            self.begin_body().await?;
        }
        let mut piece = Vec::with_capacity(STEP_BYTES);
        while !chunks.is_whole() {
            piece.clear();
            match self.socket.read_buf(&mut piece).await {
                Ok(1..) => {
                    memory.grow(&mut charge, chunks.capacity_for(piece.len()))?;
                    chunks.feed(&piece, bytes_max)?;
                }
                _ => return Err(Refused::Broken),
            }
        }
        Ok(ReceivedBody { bytes: chunks.into_data().into(), charge })
    }

    /// Starts the timeout of the body, and sends `100 Continue` if the caller expects it.
    async fn begin_body(&mut self) -> Result<(), Refused> {
        self.socket.set_wait(Wait::Body(self.socket.last_activity()));
        if self.expects_continue && self.received.is_empty() {
            self.socket.write_all(CONTINUE).await.map_err(|_| Refused::Broken)?;
            self.socket.flush().await.map_err(|_| Refused::Broken)?;
        }
        Ok(())
    }

    /// Ready when the caller has disconnected. Bytes that it sends are kept.
    fn poll_caller_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.half_closed.is_none() {
            ready!(self.poll_read_ahead(cx));
        }
        if let Some(timer) = &mut self.half_closed {
            ready!(timer.as_mut().poll(cx));
        }
        self.caller_gone = true;
        Poll::Ready(())
    }

    /// Keeps bytes that the caller sends. Ready when it has closed its sending side, or the connection is broken.
    fn poll_read_ahead(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.received.len() - self.used + self.read_ahead.len() < AHEAD_BYTES_MAX {
            let mut piece = [0; 1 << 10];
            let mut buf = ReadBuf::new(&mut piece);
            if ready!(Pin::new(&mut *self.socket).poll_read(cx, &mut buf)).is_err() {
                return Poll::Ready(());
            }
            if buf.filled().is_empty() {
                self.half_closed = Some(Box::pin(tokio::time::sleep(HALF_CLOSED_TIME)));
                return Poll::Ready(());
            }
            self.read_ahead.extend_from_slice(buf.filled());
        }
        Poll::Pending
    }
}

impl<'a, S: ByteStream> request_body::RequestBody<'a> for Http1Body<'a, S> {
    async fn read(
        &mut self,
        bytes_max: usize,
        memory: AccountMemory<'_>,
    ) -> Result<ReceivedBody<'a>, Refused> {
        let received = match self.framing {
            BodyFraming::Bytes(length) => self.read_bytes(length, bytes_max, memory).await,
            BodyFraming::Chunks => self.read_chunks(bytes_max, memory).await,
        }?;
        self.socket.set_wait(Wait::Answer);
        Ok(received)
    }

    async fn skip(&mut self) {
        // A caller that waits for `100 Continue` has not sent its body.
        if let (BodyFraming::Bytes(length), false) = (self.framing, self.expects_continue) {
            // If the body cannot be read, the connection ends after the refusal.
            let _unread = self.discard_bytes(length, SKIPPED_BYTES_MAX).await;
        }
    }

    async fn run_while_connected<T: Send>(
        &mut self,
        mut answer: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<T, Refused> {
        poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer)),
            Poll::Pending => self.poll_caller_gone(cx).map(|()| Err(Refused::Broken)),
        })
        .await
    }
}
