//! Limits for reading one reply.

use bytes::Bytes;
use tokio::time::Instant;

use super::buffer::{Buffer, EndpointMemory};
use super::limits::EndpointLimits;
use crate::call::Fault;

/// Limits for reading one reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveContext<'a> {
    pub(super) limits: &'a EndpointLimits,
    pub(super) memory: &'a EndpointMemory,
    /// Until when it may wait for memory.
    pub(super) until: Instant,
}

impl ReceiveContext<'_> {
    pub(super) async fn buffer(&self, length: usize) -> Result<Buffer, Fault> {
        self.memory.buffer(length, self.until).await
    }

    /// One more buffer of the same reply, of which `held` is kept until the new buffer is filled.
    pub(super) async fn buffer_beside(&self, held: &Bytes, length: usize) -> Result<Buffer, Fault> {
        self.memory.buffer_beside(held, length, self.until).await
    }
}
