//! Headers, and their fields for parents, logs and fees.

use alloy_consensus::Header;
use alloy_primitives::{B256, Bloom};

use super::{ProofFailure, Unproven};
use crate::BlockId;
use crate::raw::header::{RawBlock, has_gap};

/// The fields of a header that lead to the parent and to the logs of the block. Its hash was computed from its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenHeader {
    pub id: BlockId,
    pub parent: B256,
    pub logs_bloom: Bloom,
    pub fees: FeeFields,
}

/// The fields of a header from which the fees of its block and of the next one follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeeFields {
    pub timestamp: u64,
    pub gas_used: u64,
    pub gas_limit: u64,
    pub base_fee: Option<u64>,
    pub blob_gas_used: Option<u64>,
    pub excess_blob_gas: Option<u64>,
    /// Whether the header commits to requests, as it does from Prague on.
    pub has_requests: bool,
    /// Whether members are missing before others, so that the optional ones may be anything.
    pub has_gap: bool,
}

impl From<&Header> for FeeFields {
    fn from(header: &Header) -> Self {
        Self {
            timestamp: header.timestamp,
            gas_used: header.gas_used,
            gas_limit: header.gas_limit,
            base_fee: header.base_fee_per_gas,
            blob_gas_used: header.blob_gas_used,
            excess_blob_gas: header.excess_blob_gas,
            has_requests: header.requests_hash.is_some(),
            has_gap: has_gap(header),
        }
    }
}

impl ProvenHeader {
    /// Reads a delivered block. Its hash is computed from its members; the caller must check that it is the right block.
    fn read(json: &[u8]) -> Result<Self, Unproven> {
        let header = header(json)?;
        Ok(Self::of(header.hash_slow(), &header))
    }

    /// Reads a delivered block of this number.
    pub fn read_of_number(json: &[u8], number: u64) -> Result<Self, Unproven> {
        let header = Self::read(json)?;
        if header.id.number == number { Ok(header) } else { Err(ProofFailure::OtherNumber.into()) }
    }

    /// The fields of a header with this hash.
    pub fn of(hash: B256, header: &Header) -> Self {
        let id = BlockId { number: header.number, hash };
        Self { id, parent: header.parent_hash, logs_bloom: header.logs_bloom, fees: header.into() }
    }

    /// Proves a delivered block against its hash.
    pub fn prove(json: &[u8], hash: B256) -> Result<Self, Unproven> {
        let header = Self::read(json)?;
        if header.id.hash == hash { Ok(header) } else { Err(ProofFailure::HeaderHash.into()) }
    }
}

/// Proves a delivered block against its hash, and returns the whole header. If it has a gap, its optional members may be anything.
pub fn prove_header(json: &[u8], hash: B256) -> Result<Header, Unproven> {
    let header = header(json)?;
    if header.hash_slow() == hash { Ok(header) } else { Err(ProofFailure::HeaderHash.into()) }
}

fn header(json: &[u8]) -> Result<Header, Unproven> {
    if json.trim_ascii() == b"null" {
        return Err(Unproven::NotThere);
    }
    let raw: RawBlock<'_> = serde_json::from_slice(json).map_err(|_| ProofFailure::Malformed)?;
    Ok(raw.header_as_named()?)
}
