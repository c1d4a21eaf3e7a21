//! Limits for reading one reply.

use bytes::Bytes;
use resources::AccountId;
use tokio::time::Instant;

use super::buffer::{Buffer, EndpointMemory};
use super::limits::EndpointLimits;
use crate::call::Fault;

/// Limits for reading one reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveContext<'a> {
    pub(super) limits: &'a EndpointLimits,
    pub(super) memory: &'a EndpointMemory,
    /// In whose share of the memory the reply is read.
    pub(super) account: AccountId,
    /// Until when it may wait for memory.
    pub(super) until: Instant,
}

impl ReceiveContext<'_> {
    /// A buffer for a reply of `length` bytes, or of unknown length if that is 0.
    pub(super) fn buffer(&self, length: usize) -> Result<Buffer, Fault> {
        self.memory.for_account(self.account).buffer(length)
    }

    /// One more buffer of the same reply, of which `held` stays in memory until the new buffer is filled.
    pub(super) async fn buffer_beside(&self, held: &Bytes, length: usize) -> Result<Buffer, Fault> {
        self.memory.for_account(self.account).buffer_beside(held, length, self.until).await
    }
}
