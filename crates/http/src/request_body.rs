//! The bytes of a request, held to the limit while they arrive and again while they are inflated, and charged to the
//! caller's account before memory for them is allocated.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;

use http::header;
use resources::{AccountId, AccountMemory, ChargedBuffer, MemoryCharge, OverBudget, Threads};

use crate::connection::Connection;
use crate::head::Head;
use crate::inflate::{Coding, InflateError, inflate};
use crate::refused::Refused;

/// A request's body, and with it the way to its caller.
///
/// HTTP/1 lends its bytes from where they came in (`'a`), HTTP/2 hands over its own.
pub trait Body<'a>: Send {
    /// The whole body, if it has at most so many bytes and the account has memory for them.
    fn read(
        &mut self,
        bytes_max: usize,
        memory: AccountMemory<'_>,
    ) -> impl Future<Output = Result<ReceivedBody<'a>, Refused>> + Send;

    /// Gets the body of a refused request out of the way, where that keeps a connection in use.
    fn skip(&mut self) -> impl Future<Output = ()> + Send;

    /// Waits for an answer for as long as the caller does.
    fn attend<T: Send>(
        &mut self,
        answer: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> impl Future<Output = Result<T, Refused>> + Send;
}

/// A whole body, and the charge for its memory.
#[derive(Debug)]
pub struct ReceivedBody<'a> {
    pub bytes: Cow<'a, [u8]>,
    pub charge: MemoryCharge,
}

impl<'a> ReceivedBody<'a> {
    /// A body that lies in the buffer of its connection.
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

/// Larger bodies are inflated and read in the pool: they would delay the other connections of the thread.
pub const INLINE_BODY_BYTES_MAX: usize = 64 << 10;

/// Why a body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyRefused {
    pub refused: Refused,
    /// How many bytes were inflated for nothing; `None` if it was refused before that, or for lack of memory.
    pub inflated: Option<usize>,
}

impl From<Refused> for BodyRefused {
    fn from(refused: Refused) -> Self {
        Self { refused, inflated: None }
    }
}

/// Reads the whole body of a request of this account, and inflates it in `threads` if it turns out to be large.
pub async fn read_body<'a>(
    connection: &Connection,
    head: &Head<'_>,
    body: &mut impl Body<'a>,
    account: AccountId,
    bytes_max: usize,
    threads: &Threads,
) -> Result<ReceivedBody<'a>, BodyRefused> {
    let received = body.read(bytes_max, connection.memory(account)).await?;
    connection.counts().bytes_in.fetch_add(received.bytes.len() as u64, Relaxed);
    let mut encodings = head.headers.all(&header::CONTENT_ENCODING);
    let coding = match (encodings.next(), encodings.next()) {
        (None, _) => None,
        (Some(encoding), None) => Coding::named(encoding)?,
        // One inside the other: nobody does that to a body of a few kilobytes.
        (Some(_), Some(_)) => return Err(Refused::Encoding.into()),
    };
    match coding {
        None => Ok(received),
        Some(coding) => inflated(connection, account, coding, received, bytes_max, threads).await,
    }
}

/// Inflates a body, in the pool if it turns out to be large.
async fn inflated<'a>(
    connection: &Connection,
    account: AccountId,
    coding: Coding,
    received: ReceivedBody<'_>,
    bytes_max: usize,
    threads: &Threads,
) -> Result<ReceivedBody<'a>, BodyRefused> {
    let inline_max = bytes_max.min(INLINE_BODY_BYTES_MAX);
    let mut outcome = match received.bytes.len() <= inline_max {
        true => inflate(coding, &received.bytes, inline_max, connection.memory(account)),
        false => Err(InflateError { refused: Refused::TooLarge, inflated: 0 }),
    };
    if inline_max < bytes_max && matches!(&outcome, Err(error) if error.refused == Refused::TooLarge) {
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
