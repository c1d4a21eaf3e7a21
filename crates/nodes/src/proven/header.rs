//! What of a block's header leads to the block before it and to its logs.

use alloy_primitives::{B256, Bloom};

use super::{ProofFailure, Unproven};
use crate::BlockId;
use crate::check::header::RawBlock;

/// A header whose hash was computed from its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenHeader {
    pub id: BlockId,
    pub parent: B256,
    pub logs_bloom: Bloom,
}

impl ProvenHeader {
    /// Reads a delivered block. Its hash is that of its members; whether it is the block that was meant is for the caller to
    /// see.
    pub fn read(json: &[u8]) -> Result<Self, Unproven> {
        if json.trim_ascii() == b"null" {
            return Err(Unproven::NotThere);
        }
        let raw: Option<RawBlock<'_>> = serde_json::from_slice(json).ok();
        let header = raw.and_then(|raw| raw.header()).ok_or(ProofFailure::Malformed)?;
        let id = BlockId { number: header.number, hash: header.hash_slow() };
        Ok(Self { id, parent: header.parent_hash, logs_bloom: header.logs_bloom })
    }

    /// Proves what a node delivered as the block of this hash.
    pub fn prove(json: &[u8], hash: B256) -> Result<Self, Unproven> {
        let header = Self::read(json)?;
        if header.id.hash == hash { Ok(header) } else { Err(ProofFailure::HeaderHash.into()) }
    }
}
