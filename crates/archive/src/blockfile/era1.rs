//! Era1 files: a sequence of e2store records, each with a type, a length and a payload.
//!
//! `Version | (CompressedHeader | CompressedBody | CompressedReceipts | TotalDifficulty)* | Accumulator | BlockIndex`
//!
//! Headers and bodies are RLP in snappy frames, whose checksums find damage. Receipts and total difficulties
//! are skipped: executing the blocks gives both. The accumulator is skipped too: that each block names its
//! parent's hash proves the same. The index at the end shows that nothing was cut off.

use super::{BLOCK_BYTES_MAX, BlockAt, BlockFileFault, OffsetReader, parts};
use crate::chain::Transaction;
use alloy_consensus::{BlockBody, Header};
use alloy_rlp::Decodable;
use snap::read::FrameDecoder;
use std::io::{Read, Seek};

/// The record with which a file begins: its type, and a length of 0.
pub(super) const VERSION_RECORD: [u8; 8] = [0x65, 0x32, 0, 0, 0, 0, 0, 0];

/// The most blocks that one file holds by its definition.
const BLOCKS_MAX: u64 = 8192;

/// First block, one offset per block, number of blocks.
const INDEX_BYTES_MAX: u64 = 8 + 8 * BLOCKS_MAX + 8;

/// Bytes before every payload: type, length, and two bytes that are 0.
const RECORD_HEADER_BYTES: u64 = 8;

/// Types of records.
mod kind {
    pub(super) const BEACON_BLOCK: u16 = 0x01;
    pub(super) const BEACON_STATE: u16 = 0x02;
    pub(super) const HEADER: u16 = 0x03;
    pub(super) const BODY: u16 = 0x04;
    pub(super) const RECEIPTS: u16 = 0x05;
    pub(super) const TOTAL_DIFFICULTY: u16 = 0x06;
    pub(super) const ACCUMULATOR: u16 = 0x07;
    pub(super) const VERSION: u16 = 0x3265;
    pub(super) const INDEX: u16 = 0x3266;
}

/// The part of a file that was read.
#[derive(Debug, Default)]
pub(super) struct Era1 {
    first: Option<u64>,
    blocks: u64,
}

/// A record whose payload comes next.
struct Era1Record {
    kind: u16,
    bytes: u32,
    offset: u64,
}

impl Era1 {
    pub(super) fn next<R: Read + Seek>(
        &mut self,
        source: &mut OffsetReader<R>,
        last: Option<u64>,
    ) -> Result<Option<BlockAt>, BlockFileFault> {
        loop {
            let record = read_record(source, last)?;
            match record.kind {
                kind::HEADER => return self.read_block(source, record, last).map(Some),
                kind::INDEX => return self.read_index(source, record, last).map(|()| None),
                kind::VERSION | kind::RECEIPTS | kind::TOTAL_DIFFICULTY | kind::ACCUMULATOR => {
                    source.skip(record.bytes)?;
                }
                kind::BEACON_BLOCK | kind::BEACON_STATE => return Err(BlockFileFault::BeaconEra),
                kind::BODY => return Err(record.undecodable(last, "a body without a header before it")),
                unknown => {
                    return Err(record.undecodable(last, format!("unknown record type {unknown:#06x}")));
                }
            }
        }
    }

    /// A header, and the body in the record after it.
    fn read_block<R: Read + Seek>(
        &mut self,
        source: &mut OffsetReader<R>,
        record: Era1Record,
        last: Option<u64>,
    ) -> Result<BlockAt, BlockFileFault> {
        let header: Header = read_compressed(source, &record, last)?;
        let body_record = read_record(source, last)?;
        if body_record.kind != kind::BODY {
            return Err(body_record.undecodable(last, "a header without a body after it"));
        }
        let body: BlockBody<Transaction> = read_compressed(source, &body_record, last)?;
        self.first = self.first.or(Some(header.number));
        self.blocks += 1;
        Ok(BlockAt { block: body.into_block(header), offset: record.offset })
    }

    /// Checks that the index lists the blocks that were read, and that nothing follows it.
    fn read_index<R: Read + Seek>(
        &self,
        source: &mut OffsetReader<R>,
        record: Era1Record,
        last: Option<u64>,
    ) -> Result<(), BlockFileFault> {
        let bytes = u64::from(record.bytes);
        if !(16..=INDEX_BYTES_MAX).contains(&bytes) {
            return Err(record.undecodable(last, format!("a block index of {bytes} bytes")));
        }
        let index = source.read(bytes)?;
        let (first, count) = (number(index.first_chunk()), number(index.last_chunk()));
        if count != self.blocks || self.first.is_some_and(|block| block != first) {
            let reason = format!(
                "the block index speaks of {count} blocks from {first}, but the file has {} from {}",
                self.blocks,
                self.first.unwrap_or_default()
            );
            return Err(record.undecodable(last, reason));
        }
        match source.remaining() {
            0 => Ok(()),
            _ => Err(BlockFileFault::Trailing { offset: source.offset(), end: source.bytes_total(), last }),
        }
    }
}

impl Era1Record {
    fn undecodable(&self, last: Option<u64>, reason: impl std::fmt::Display) -> BlockFileFault {
        BlockFileFault::undecodable("record", self.offset, last, reason)
    }

    /// The checksums of the payload are correct, so an undecodable payload was written like this.
    fn malformed(&self, last: Option<u64>, reason: alloy_rlp::Error, payload: &[u8]) -> BlockFileFault {
        let found = if self.kind == kind::BODY { parts::find_in_body(payload) } else { None };
        let (part, reason) = found.map_or(("its payload".into(), reason), |found| (found.part, found.reason));
        let (item, offset, reason) = ("record", self.offset, reason.to_string());
        BlockFileFault::Malformed { item, offset, last, part, reason }
    }
}

fn number(bytes: Option<&[u8; 8]>) -> u64 {
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Reads the header of a record, and checks that the file contains its payload.
fn read_record<R: Read + Seek>(
    source: &mut OffsetReader<R>,
    last: Option<u64>,
) -> Result<Era1Record, BlockFileFault> {
    let (offset, end) = (source.offset(), source.bytes_total());
    if source.remaining() == 0 {
        return Err(BlockFileFault::NoIndex { end, last });
    }
    let truncated = BlockFileFault::Truncated { item: "record", offset, end, last };
    if source.remaining() < RECORD_HEADER_BYTES {
        return Err(truncated);
    }
    let Some([k0, k1, b0, b1, b2, b3, reserved @ ..]) =
        source.read(RECORD_HEADER_BYTES)?.first_chunk::<8>().copied()
    else {
        return Err(truncated);
    };
    let record = Era1Record {
        kind: u16::from_le_bytes([k0, k1]),
        bytes: u32::from_le_bytes([b0, b1, b2, b3]),
        offset,
    };
    if reserved != [0, 0] {
        return Err(record.undecodable(last, "its reserved bytes are not 0"));
    }
    if u64::from(record.bytes) > source.remaining() {
        return Err(truncated);
    }
    Ok(record)
}

/// Decompresses and decodes a payload. Decompression stops at the block size limit, so that a small file cannot fill the
/// memory.
fn read_compressed<T: Decodable, R: Read + Seek>(
    source: &mut OffsetReader<R>,
    record: &Era1Record,
    last: Option<u64>,
) -> Result<T, BlockFileFault> {
    let too_large = |bytes| BlockFileFault::TooLarge {
        item: "record",
        offset: record.offset,
        last,
        bytes,
        max: BLOCK_BYTES_MAX,
    };
    let bytes = u64::from(record.bytes);
    if bytes > BLOCK_BYTES_MAX {
        return Err(too_large(bytes));
    }
    let mut unpacked = Vec::new();
    FrameDecoder::new(source.read(bytes)?)
        .take(BLOCK_BYTES_MAX + 1)
        .read_to_end(&mut unpacked)
        .map_err(|error| record.undecodable(last, error))?;
    if unpacked.len() as u64 > BLOCK_BYTES_MAX {
        return Err(too_large(unpacked.len() as u64));
    }
    let mut rest = unpacked.as_slice();
    let value = T::decode(&mut rest).map_err(|error| record.malformed(last, error, &unpacked))?;
    if !rest.is_empty() {
        return Err(record.undecodable(last, "it goes on after its end"));
    }
    Ok(value)
}
