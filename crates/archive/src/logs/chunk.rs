//! A chunk: the ordinals that share all but their low 16 bits, as a bitmap in memory and as a row.
//!
//! 65,536 ordinals are one container of a roaring bitmap, so a row is never larger than about 8 KiB, and the
//! newest chunk of a busy address is what a commit rewrites, not its whole history.

use std::ops::Range;

use roaring::RoaringBitmap;

use super::error::DamagedLogRow;

const CHUNK_BITS: u32 = 16;
const LOW_MASK: u64 = (1 << CHUNK_BITS) - 1;

/// One more than the highest ordinal whose chunk number fits into a key.
pub(super) const ORDINALS_END: u64 = 1 << (32 + CHUNK_BITS);

/// Chunk number and position in the chunk; None where the index cannot count as far.
pub(super) fn split(ordinal: u64) -> Option<(u32, u16)> {
    let number = u32::try_from(ordinal >> CHUNK_BITS).ok()?;
    Some((number, (ordinal & LOW_MASK) as u16))
}

/// The first ordinal of a chunk.
pub(super) fn first_ordinal(number: u32) -> u64 {
    u64::from(number) << CHUNK_BITS
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chunk {
    pub(super) number: u32,
    /// The low 16 bits of the ordinals.
    pub(super) lows: RoaringBitmap,
}

impl Chunk {
    pub(super) fn len(&self) -> u64 {
        self.lows.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lows.is_empty()
    }

    pub(super) fn ordinals(&self) -> impl Iterator<Item = u64> + '_ {
        let first = first_ordinal(self.number);
        self.lows.iter().map(move |low| first + u64::from(low))
    }

    /// The ordinal with number `n` from 0, if there are as many.
    pub(super) fn nth(&self, n: u64) -> Option<u64> {
        let low = self.lows.select(u32::try_from(n).ok()?)?;
        Some(first_ordinal(self.number) + u64::from(low))
    }

    /// Drops what lies outside `ordinals`.
    pub(super) fn clip(&mut self, ordinals: &Range<u64>) {
        let first = first_ordinal(self.number);
        let start = ordinals.start.saturating_sub(first).min(LOW_MASK + 1) as u32;
        let end = ordinals.end.saturating_sub(first).min(LOW_MASK + 1) as u32;
        self.lows.remove_range(..start);
        self.lows.remove_range(end..);
    }
}

/// Appends the row of a bitmap to `row`, in the smallest of the forms that roaring has.
pub(super) fn encode_into(lows: &mut RoaringBitmap, row: &mut Vec<u8>) -> std::io::Result<()> {
    lows.optimize();
    row.reserve(lows.serialized_size());
    lows.serialize_into(row)
}

/// The bitmap of a row. Every way in which the bytes can be wrong is an error, because a wrong bitmap would
/// be a wrong answer.
pub(super) fn decode(number: u32, row: &[u8]) -> Result<RoaringBitmap, DamagedLogRow> {
    let mut rest = row;
    match RoaringBitmap::deserialize_from(&mut rest) {
        Ok(lows) if rest.is_empty() && lows.max().is_some_and(|low| u64::from(low) <= LOW_MASK) => Ok(lows),
        _ => Err(DamagedLogRow { what: "the index", ordinal: first_ordinal(number) }),
    }
}
