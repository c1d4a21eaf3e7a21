//! RLP blocks, one directly after the other. The genesis block may be the first of them.

use super::{BLOCK_BYTES_MAX, BlockAt, BlockFileFault, OffsetReader, parts};
use crate::chain::Block;
use alloy_rlp::Decodable;
use std::io::{Read, Seek};

/// First byte of the shortest list.
const LIST: u8 = 0xc0;

/// The highest first byte that encodes the length of the list itself; higher ones encode the number of length bytes.
const SHORT_LIST_MAX: u8 = 0xf7;

/// Enough for the length of any block that is accepted.
const LENGTH_BYTES_MAX: usize = 4;

/// How many bytes [`begins_block`] looks at.
pub(super) const BEGINNING_BYTES: usize = 1 + LENGTH_BYTES_MAX + 1;

/// Whether these can be the first bytes of a block: a long list, and in it the header, a long list too.
///
/// A file that ends before this can be told is taken for a block that was cut off.
pub(super) fn begins_block(first: &[u8]) -> bool {
    let Some((prefix, rest)) = first.split_first() else { return false };
    let Some(length_bytes) = prefix.checked_sub(SHORT_LIST_MAX).map(usize::from) else { return false };
    (1..=LENGTH_BYTES_MAX).contains(&length_bytes)
        && rest.get(length_bytes).is_none_or(|inner| *inner > SHORT_LIST_MAX)
}

/// A file of RLP blocks has no state of its own: every block says its length.
#[derive(Debug)]
pub(super) struct RlpBlocks;

impl RlpBlocks {
    pub(super) fn next<R: Read + Seek>(
        &mut self,
        source: &mut OffsetReader<R>,
        last: Option<u64>,
    ) -> Result<Option<BlockAt>, BlockFileFault> {
        if source.remaining() == 0 {
            return Ok(None);
        }
        let offset = source.offset();
        let bytes = read_list(source, last)?;
        let block = decode(bytes).map_err(|reason| {
            BlockFileFault::bad_part("block", offset, last, reason, parts::find_in_block(bytes))
        })?;
        Ok(Some(BlockAt { block, offset }))
    }
}

/// Decodes bytes that are a block from the first to the last.
fn decode(mut bytes: &[u8]) -> alloy_rlp::Result<Block> {
    let block = Block::decode(&mut bytes)?;
    if bytes.is_empty() { Ok(block) } else { Err(alloy_rlp::Error::UnexpectedLength) }
}

/// The bytes of the list that begins here. Their form is left to the decoder.
fn read_list<R: Read + Seek>(
    source: &mut OffsetReader<R>,
    last: Option<u64>,
) -> Result<&[u8], BlockFileFault> {
    let (offset, end) = (source.offset(), source.bytes_total());
    let truncated = BlockFileFault::Truncated { item: "block", offset, end, last };
    let first = source.read(1)?.first().copied().unwrap_or_default();
    if first < LIST {
        return Err(BlockFileFault::Trailing { offset, end, last });
    }
    let payload = if first <= SHORT_LIST_MAX {
        u64::from(first - LIST)
    } else {
        let length_bytes = u64::from(first - SHORT_LIST_MAX);
        if length_bytes > source.remaining() {
            return Err(truncated);
        }
        let prefix = source.read_more(length_bytes)?;
        prefix.iter().skip(1).fold(0, |length: u64, byte| length << 8 | u64::from(*byte))
    };
    if payload > BLOCK_BYTES_MAX {
        let (bytes, max) = (payload, BLOCK_BYTES_MAX);
        return Err(BlockFileFault::TooLarge { item: "block", offset, last, bytes, max });
    }
    if payload > source.remaining() {
        return Err(truncated);
    }
    Ok(source.read_more(payload)?)
}
