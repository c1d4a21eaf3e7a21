//! The bytes behind a head, and the eye on the caller while the answer is made.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use resources::{AccountMemory, ChargedBuffer, MemoryCharge};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::time::Sleep;

use super::chunks::Chunks;
use super::head::{Extent, Parsed};
use crate::refused::Refused;
use crate::request_body::{self, ReceivedBody};
use crate::socket::{Socket, Stream, Wait};

/// The body of one request.
pub(super) struct Body<'a, S> {
    socket: &'a mut Socket<S>,
    /// What came in together with the head: the body or a part of it, and perhaps more.
    here: &'a [u8],
    extent: Extent,
    expects_continue: bool,
    /// How much of `here` is the body's.
    used: usize,
    /// Whether what follows is the next request.
    at_next: bool,
    /// What came in while the answer was made.
    ahead: Vec<u8>,
    /// Runs while the answer is made for a caller that has ended its side of the connection.
    half_closed: Option<Pin<Box<Sleep>>>,
    gone: bool,
}

/// What is left when a request is answered.
pub(super) struct Rest {
    /// How many bytes of those that came with the head were the body's.
    pub(super) used: usize,
    /// What came in later.
    pub(super) ahead: Vec<u8>,
    /// Whether the next request begins there.
    pub(super) at_next: bool,
    /// Whether the caller has gone, and nobody waits for the reply.
    pub(super) gone: bool,
}

/// Bytes that are read at once. The stated length of a body is not allocated in advance: its buffer grows as bytes come in.
const STEP_BYTES: usize = 4 << 10;

/// A refused request's body, up to here, is read and thrown away to keep its connection; a longer one is not worth it.
const SKIPPED_BYTES_MAX: u64 = 64 << 10;

/// What a caller may send ahead while it waits, in all. Then we look away, and it waits with the rest; whether it is still
/// there is then not known before its answer is.
const AHEAD_BYTES_MAX: usize = 16 << 10;

/// How long an answer is still waited for after its caller has ended its side of the connection. A caller that has only
/// ended its side still reads the reply; one that has closed the connection does not, and the work for it is given up. TCP
/// does not tell the two apart.
const HALF_CLOSED_TIME: Duration = Duration::from_secs(2);

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl<'a, S: Stream> Body<'a, S> {
    pub(super) fn new(socket: &'a mut Socket<S>, here: &'a [u8], parsed: &Parsed<'_>) -> Self {
        let Parsed { extent, expects_continue, .. } = *parsed;
        let at_next = extent == Extent::Bytes(0);
        Self {
            socket,
            here,
            extent,
            expects_continue,
            used: 0,
            at_next,
            ahead: Vec::new(),
            half_closed: None,
            gone: false,
        }
    }

    pub(super) fn into_rest(self) -> Rest {
        let Self { used, ahead, at_next, gone, .. } = self;
        Rest { used, ahead, at_next, gone }
    }

    async fn read_bytes(
        &mut self,
        length: u64,
        bytes_max: usize,
        memory: AccountMemory<'_>,
    ) -> Result<ReceivedBody<'a>, Refused> {
        let length = usize::try_from(length).ok().filter(|&length| length <= bytes_max);
        let length = length.ok_or(Refused::TooLarge)?;
        if let Some(body) = self.here.get(..length) {
            (self.used, self.at_next) = (length, true);
            return Ok(ReceivedBody::borrowed(body));
        }
        self.used = self.here.len();
        let mut whole = ChargedBuffer::default();
        whole.reserve(memory, self.here.len(), length)?;
        whole.bytes_mut().extend_from_slice(self.here);
        self.go_on().await?;
        while whole.bytes().len() < length {
            let left = length - whole.bytes().len();
            whole.reserve(memory, left.min(STEP_BYTES), length)?;
            let mut rest = (&mut *self.socket).take(left as u64);
            if !matches!(rest.read_buf(whole.bytes_mut()).await, Ok(1..)) {
                return Err(Refused::Broken);
            }
        }
        self.at_next = true;
        Ok(whole.into())
    }

    /// Reads a body of at most `bytes_max` bytes and keeps nothing of it.
    async fn discard_bytes(&mut self, length: u64, bytes_max: u64) -> Result<(), Refused> {
        if length > bytes_max {
            return Err(Refused::TooLarge);
        }
        let here = self.here.len().min(usize::try_from(length).unwrap_or(usize::MAX));
        self.used = here;
        let mut left = length - here as u64;
        if left > 0 {
            self.go_on().await?;
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
        self.at_next = true;
        Ok(())
    }

    /// A chunked request is framed by one reader only, and that is us; so nothing may follow it.
    async fn read_chunks(
        &mut self,
        bytes_max: usize,
        memory: AccountMemory<'_>,
    ) -> Result<ReceivedBody<'a>, Refused> {
        let (mut chunks, mut charge) = (Chunks::default(), MemoryCharge::default());
        self.used = self.here.len();
        chunks.feed(self.here, bytes_max)?;
        if !chunks.is_whole() {
            self.go_on().await?;
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
        Ok(ReceivedBody { bytes: chunks.into_whole().into(), charge })
    }

    /// Waits for the rest of the body from now on, and says so to who waits for that.
    async fn go_on(&mut self) -> Result<(), Refused> {
        self.socket.waits_for(Wait::Body(self.socket.free_since()));
        if self.expects_continue && self.here.is_empty() {
            self.socket.write_all(CONTINUE).await.map_err(|_| Refused::Broken)?;
            self.socket.flush().await.map_err(|_| Refused::Broken)?;
        }
        Ok(())
    }

    /// Ready when the caller has gone. What it sends ahead is kept.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.half_closed.is_none() {
            ready!(self.poll_ahead(cx));
        }
        if let Some(timer) = &mut self.half_closed {
            ready!(timer.as_mut().poll(cx));
        }
        self.gone = true;
        Poll::Ready(())
    }

    /// Keeps what the caller sends ahead. Ready when it has ended its side, or the connection is broken.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.here.len() - self.used + self.ahead.len() < AHEAD_BYTES_MAX {
            let mut piece = [0; 1 << 10];
            let mut buf = ReadBuf::new(&mut piece);
            if ready!(Pin::new(&mut *self.socket).poll_read(cx, &mut buf)).is_err() {
                return Poll::Ready(());
            }
            if buf.filled().is_empty() {
                self.half_closed = Some(Box::pin(tokio::time::sleep(HALF_CLOSED_TIME)));
                return Poll::Ready(());
            }
            self.ahead.extend_from_slice(buf.filled());
        }
        Poll::Pending
    }
}

impl<'a, S: Stream> request_body::Body<'a> for Body<'a, S> {
    async fn read(
        &mut self,
        bytes_max: usize,
        memory: AccountMemory<'_>,
    ) -> Result<ReceivedBody<'a>, Refused> {
        match self.extent {
            Extent::Bytes(length) => self.read_bytes(length, bytes_max, memory).await,
            Extent::Chunks => self.read_chunks(bytes_max, memory).await,
        }
    }

    async fn skip(&mut self) {
        // Who asks before sending has nothing under way yet, and should not be told to go on.
        if let (Extent::Bytes(length), false) = (self.extent, self.expects_continue) {
            // If it cannot be read, the connection ends with the refusal.
            let _unread = self.discard_bytes(length, SKIPPED_BYTES_MAX).await;
        }
    }

    async fn attend<T: Send>(
        &mut self,
        mut answer: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<T, Refused> {
        self.socket.waits_for(Wait::Answer);
        poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer)),
            Poll::Pending => self.poll_gone(cx).map(|()| Err(Refused::Broken)),
        })
        .await
    }
}
