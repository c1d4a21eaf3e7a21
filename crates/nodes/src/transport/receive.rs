//! On which terms a reply is read.

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
}
