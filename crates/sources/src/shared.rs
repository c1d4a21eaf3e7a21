//! One answer for several callers: each account that reads it is charged for it once.

use bytes::Bytes;
use resources::{AccountMemory, ChargedReaders};

use crate::failure::Failure;
use crate::provenance::{Answer, Provenance};

/// An answer that equal calls in flight share.
#[derive(Clone, Debug)]
pub struct SharedAnswer {
    provenance: Provenance,
    result: Bytes,
    readers: ChargedReaders,
}

impl SharedAnswer {
    pub fn new(provenance: Provenance, result: Bytes) -> Self {
        Self { provenance, result, readers: ChargedReaders::default() }
    }

    /// The answer for one of the callers.
    pub fn lend(&self, memory: AccountMemory<'_>) -> Result<Answer, Failure> {
        let result = memory.lend(&self.result, &self.readers)?;
        Ok(Answer { provenance: self.provenance, shared: Some(result) })
    }
}
