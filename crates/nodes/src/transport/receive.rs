//! On which terms a reply is read.

use bytes::Bytes;
use tokio::time::Instant;

use super::buffer::{Buffer, EndpointMemory};
use super::limits::Limits;
use crate::call::Fault;

/// What a reply may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    pub(super) limits: &'a Limits,
    pub(super) memory: &'a EndpointMemory,
    /// How long it may wait for memory.
    pub(super) until: Instant,
}

impl Terms<'_> {
    pub(super) async fn buffer(&self, length: usize) -> Result<Buffer, Fault> {
        self.memory.buffer(length, self.until).await
    }

    /// One more buffer of the same reply, of which `held` is kept until the new buffer is filled.
    pub(super) async fn buffer_beside(&self, held: &Bytes, length: usize) -> Result<Buffer, Fault> {
        self.memory.buffer_beside(held, length, self.until).await
    }
}
