//! Headers, and what of them leads to the block before, to logs and to fees.

use alloy_consensus::Header;
use alloy_primitives::{B256, Bloom};

use super::{ProofFailure, Unproven};
use crate::BlockId;
use crate::raw::header::RawBlock;

/// What of a block's header leads to the block before it and to its logs. Its hash was computed from its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenHeader {
    pub id: BlockId,
    pub parent: B256,
    pub logs_bloom: Bloom,
    pub fees: FeeFields,
}

/// What of a header the fees of its block, and of the one after it, follow from.
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
        }
    }
}

impl ProvenHeader {
    /// Reads a delivered block. Its hash is that of its members; whether it is the block that was meant is for the caller to
    /// see.
    fn read(json: &[u8]) -> Result<Self, Unproven> {
        let header = header(json)?;
        Ok(Self::of(header.hash_slow(), &header))
    }

    /// Reads what a node delivered as the block of this number.
    pub fn read_of_number(json: &[u8], number: u64) -> Result<Self, Unproven> {
        let header = Self::read(json)?;
        if header.id.number == number { Ok(header) } else { Err(ProofFailure::OtherNumber.into()) }
    }

    /// What counts of a header with this hash.
    pub fn of(hash: B256, header: &Header) -> Self {
        let id = BlockId { number: header.number, hash };
        Self { id, parent: header.parent_hash, logs_bloom: header.logs_bloom, fees: header.into() }
    }

    /// Proves what a node delivered as the block of this hash.
    pub fn prove(json: &[u8], hash: B256) -> Result<Self, Unproven> {
        let header = Self::read(json)?;
        if header.id.hash == hash { Ok(header) } else { Err(ProofFailure::HeaderHash.into()) }
    }
}

/// Proves what a node delivered as the block of this hash, and gives all of its header.
pub fn prove_header(json: &[u8], hash: B256) -> Result<Header, Unproven> {
    let header = header(json)?;
    if header.hash_slow() == hash { Ok(header) } else { Err(ProofFailure::HeaderHash.into()) }
}

fn header(json: &[u8]) -> Result<Header, Unproven> {
    if json.trim_ascii() == b"null" {
        return Err(Unproven::NotThere);
    }
    let raw: Option<RawBlock<'_>> = serde_json::from_slice(json).ok();
    Ok(raw.and_then(|raw| raw.header()).ok_or(ProofFailure::Malformed)?)
}
