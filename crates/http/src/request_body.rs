//! Reads and inflates the body of a request.
//!
//! The limit on bodies applies to the received and to the inflated bytes. Both are charged to the account before memory is
//! allocated for them.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;

use http::header;
use resources::{AccountId, AccountMemory, ChargedBuffer, MemoryCharge, OverBudget, ThreadPool};

use crate::connection::Connection;
use crate::content_coding::ContentCoding;
use crate::head::RequestHead;
use crate::inflate::{InflateError, inflate};
use crate::refused::Refused;

/// The body of a request, and the connection to its caller.
///
/// HTTP/1 returns bytes that borrow from the input buffer (`'a`), HTTP/2 returns owned bytes.
pub trait RequestBody<'a>: Send {
    /// Reads the whole body, if it has at most `bytes_max` bytes and the account has memory for them.
    fn read(
        &mut self,
        bytes_max: usize,
        memory: AccountMemory<'_>,
    ) -> impl Future<Output = Result<ReceivedBody<'a>, Refused>> + Send;

    /// Discards the body of a refused request if that allows the connection to stay open.
    fn skip(&mut self) -> impl Future<Output = ()> + Send;

    /// Runs `answer`, and cancels it if the caller disconnects.
    fn run_while_connected<T: Send>(
        &mut self,
        answer: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> impl Future<Output = Result<T, Refused>> + Send;
}

/// A complete body, and the charge for its memory.
#[derive(Debug)]
pub struct ReceivedBody<'a> {
    pub bytes: Cow<'a, [u8]>,
    pub charge: MemoryCharge,
}

impl<'a> ReceivedBody<'a> {
    /// A body in the input buffer of its connection.
    pub(crate) fn borrowed(bytes: &'a [u8]) -> Self {
        Self { bytes: Cow::Borrowed(bytes), charge: MemoryCharge::default() }
    }
}

impl From<ChargedBuffer> for ReceivedBody<'_> {
    fn from(buffer: ChargedBuffer) -> Self {
        let (bytes, charge) = buffer.into_parts();
        Self { bytes: Cow::Owned(bytes), charge }
    }
}

impl From<OverBudget> for Refused {
    fn from(_: OverBudget) -> Self {
        Self::OverCapacity
    }
}

/// Larger bodies are inflated and parsed in the thread pool, because they would delay other connections of the thread.
pub const INLINE_BODY_BYTES_MAX: usize = 64 << 10;

/// Larger compressed bodies are inflated in the thread pool, because even one that inflates to nothing takes more than a
/// millisecond.
const INLINE_COMPRESSED_BYTES_MAX: usize = 8 << 10;

/// Why a body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyRefused {
    pub refused: Refused,
    /// Bytes inflated before the refusal; `None` if the body was refused before that, or for lack of memory.
    pub inflated: Option<usize>,
}

impl From<Refused> for BodyRefused {
    fn from(refused: Refused) -> Self {
        Self { refused, inflated: None }
    }
}

/// Reads the whole body of a request and inflates it, in `threads` if it is large.
pub async fn read_body<'a>(
    connection: &Connection,
    head: &RequestHead<'_>,
    body: &mut impl RequestBody<'a>,
    account: AccountId,
    bytes_max: usize,
    threads: &ThreadPool,
) -> Result<ReceivedBody<'a>, BodyRefused> {
    let received = body.read(bytes_max, connection.memory(account)).await?;
    connection.counts().bytes_in.fetch_add(received.bytes.len() as u64, Relaxed);
    let mut encodings = head.headers.all(&header::CONTENT_ENCODING);
    let coding = match (encodings.next(), encodings.next()) {
        (None, _) => None,
        (Some(encoding), None) => ContentCoding::read(encoding)?,
        // Nested encodings are not supported.
        (Some(_), Some(_)) => return Err(Refused::Encoding.into()),
    };
    match coding {
        None => Ok(received),
        Some(coding) => inflated(connection, account, coding, received, bytes_max, threads).await,
    }
}

/// Inflates a body. A body that turns out to be large is inflated again in the thread pool.
async fn inflated<'a>(
    connection: &Connection,
    account: AccountId,
    coding: ContentCoding,
    received: ReceivedBody<'_>,
    bytes_max: usize,
    threads: &ThreadPool,
) -> Result<ReceivedBody<'a>, BodyRefused> {
    let inline_max = bytes_max.min(INLINE_BODY_BYTES_MAX);
    let mut outcome = match received.bytes.len() <= inline_max.min(INLINE_COMPRESSED_BYTES_MAX) {
        true => inflate(coding, &received.bytes, inline_max, connection.memory(account)),
        false => Err(InflateError { refused: Refused::TooLarge, inflated: 0 }),
    };
    let is_in_pool = inline_max < bytes_max || received.bytes.len() > INLINE_COMPRESSED_BYTES_MAX;
    if is_in_pool && matches!(&outcome, Err(error) if error.refused == Refused::TooLarge) {
        let (bytes, charge) = (received.bytes.into_owned(), received.charge);
        let memory = connection.server().memory.clone();
        let job = move || {
            let _charge = charge;
            inflate(coding, &bytes, bytes_max, memory.of(account))
        };
        let busy = Err(InflateError { refused: Refused::OverCapacity, inflated: 0 });
        outcome = threads.run(account, job).await.unwrap_or(busy);
    }
    match outcome {
        Ok(buffer) => Ok(buffer.into()),
        Err(InflateError { refused: Refused::OverCapacity, .. }) => Err(Refused::OverCapacity.into()),
        Err(InflateError { refused, inflated }) => Err(BodyRefused { refused, inflated: Some(inflated) }),
    }
}
