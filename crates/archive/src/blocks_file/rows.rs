//! The rows of the tables. `docs/blocks-format.md` says the same in prose.

use crate::{
    chain::{Block, Transaction},
    execute::Receipt,
    rows::CorruptRow,
};
use alloy_consensus::Header;
use alloy_eips::eip4895::Withdrawals;
use alloy_primitives::{B256, Bloom};
use alloy_rlp::{Decodable, Encodable, encode_list, list_length};

/// A proven block that is to be stored.
#[derive(Debug, Clone, Copy)]
pub struct BlockParts<'a> {
    pub hash: B256,
    pub header: &'a Header,
    pub transactions: &'a [Transaction],
    pub uncles: &'a [Header],
    pub withdrawals: Option<&'a Withdrawals>,
    pub receipts: &'a [Receipt],
}

/// A block as its rows, ready to be written. Making them takes longer than writing them, and needs no access to the file.
#[derive(Debug, Clone)]
pub struct EncodedBlock {
    pub(super) header: StoredHeader,
    pub(super) body: Vec<u8>,
    pub(super) receipts: Vec<u8>,
    pub(super) transactions: Vec<B256>,
}

impl EncodedBlock {
    pub fn new(parts: &BlockParts<'_>) -> Self {
        let header = StoredHeader {
            number: parts.header.number,
            hash: parts.hash,
            parent: parts.header.parent_hash,
            logs_bloom: parts.header.logs_bloom,
        };
        let mut receipts = Vec::with_capacity(list_length(parts.receipts));
        encode_list(parts.receipts, &mut receipts);
        Self {
            header,
            body: compressed(&block_rlp(parts)),
            receipts: compressed(&receipts),
            transactions: parts.transactions.iter().map(|transaction| *transaction.tx_hash()).collect(),
        }
    }

    pub fn number(&self) -> u64 {
        self.header.number
    }

    pub fn hash(&self) -> B256 {
        self.header.hash
    }

    pub fn parent(&self) -> B256 {
        self.header.parent
    }

    /// Its bytes in the file, without those of the tables.
    pub fn bytes(&self) -> usize {
        self.body.len() + self.receipts.len() + self.transactions.len() * (32 + 12) + StoredHeader::BYTES_MAX
    }
}

/// The block's RLP, as it goes between nodes.
fn block_rlp(parts: &BlockParts<'_>) -> Vec<u8> {
    let payload_length = parts.header.length()
        + list_length(parts.transactions)
        + list_length(parts.uncles)
        + parts.withdrawals.map_or(0, Encodable::length);
    let list = alloy_rlp::Header { list: true, payload_length };
    let mut out = Vec::with_capacity(list.length_with_payload());
    list.encode(&mut out);
    parts.header.encode(&mut out);
    encode_list(parts.transactions, &mut out);
    encode_list(parts.uncles, &mut out);
    if let Some(withdrawals) = parts.withdrawals {
        withdrawals.encode(&mut out);
    }
    out
}

/// Snappy takes up to 4 GiB, and no block is near that.
fn compressed(bytes: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(bytes).unwrap_or_default()
}

/// The parts of a header that lead to the block before it and to its logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredHeader {
    pub number: u64,
    pub hash: B256,
    pub parent: B256,
    pub logs_bloom: Bloom,
}

impl StoredHeader {
    const BYTES_MAX: usize = 32 + 32 + 256;

    /// A bloom without bits is left out.
    pub(super) fn row(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(Self::BYTES_MAX);
        row.extend_from_slice(self.hash.as_slice());
        row.extend_from_slice(self.parent.as_slice());
        if !self.logs_bloom.is_zero() {
            row.extend_from_slice(self.logs_bloom.as_slice());
        }
        row
    }

    pub(super) fn read(number: u64, row: &[u8]) -> Result<Self, CorruptRow> {
        let corrupt = CorruptRow { table: "headers" };
        let (hash, rest) = row.split_first_chunk::<32>().ok_or(corrupt)?;
        let (parent, rest) = rest.split_first_chunk::<32>().ok_or(corrupt)?;
        let logs_bloom = match rest {
            [] => Bloom::ZERO,
            bits => Bloom::new(bits.try_into().map_err(|_| corrupt)?),
        };
        Ok(Self { number, hash: B256::new(*hash), parent: B256::new(*parent), logs_bloom })
    }
}

/// A whole block as it stands in the file. Reading it takes longer than getting it.
#[derive(Debug, Clone)]
pub struct StoredBody(pub(super) Vec<u8>);

impl StoredBody {
    /// Bytes that it has, compressed.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    pub fn decode(&self) -> Result<Block, CorruptRow> {
        decoded(&self.0, "bodies")
    }
}

/// The receipts of a block as they stand in the file.
#[derive(Debug, Clone)]
pub struct StoredReceipts(pub(super) Vec<u8>);

impl StoredReceipts {
    /// Bytes that they have, compressed.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    pub fn decode(&self) -> Result<Vec<Receipt>, CorruptRow> {
        decoded(&self.0, "receipts")
    }
}

fn decoded<T: Decodable>(row: &[u8], table: &'static str) -> Result<T, CorruptRow> {
    let bytes = snap::raw::Decoder::new().decompress_vec(row).map_err(|_| CorruptRow { table })?;
    let mut rest = &bytes[..];
    let value = T::decode(&mut rest).map_err(|_| CorruptRow { table })?;
    if rest.is_empty() { Ok(value) } else { Err(CorruptRow { table }) }
}
