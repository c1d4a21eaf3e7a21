//! The body of a request.
//!
//! The limit on bodies applies to the received and to the inflated bytes. Both are charged to the account before memory is
//! allocated for them.

use std::borrow::Cow;
use std::pin::Pin;

use resources::{AccountMemory, ChargedBuffer, MemoryCharge, OverBudget};

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
