//! Pieces of a range: aligned chunks, which queries that overlap share, and what is left at its ends, which is cached for
//! queries of exactly the same blocks.

use std::sync::Arc;

use alloy_primitives::B256;
use bytes::Bytes;
use methods::{BlockRef, LogFilterParams};
use nodes::raw::read_logs;
use nodes::{CanonicalChain, GivenBy};
use resources::ChargedReaders;

use super::canonical;
use crate::cache::{CacheKey, CachedAnswer};
use crate::provenance::Verification;
use crate::remote::fetched::deep_in;

/// Blocks of a chunk. Small enough that the newest whole chunk is not far below the head, large enough that a day of
/// blocks is a few dozen.
const CHUNK_BLOCKS: u64 = 128;

/// A wider query is not cut up: looking for its chunks would take longer than a node with an index does.
const CHUNKS_MAX: u64 = 256;

/// Some blocks of a range.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) from: u64,
    pub(super) to: u64,
    /// The key of its logs in the cache; `None` if they are not to be cached.
    pub(super) key: Option<CacheKey>,
    pub(super) is_chunk: bool,
    pub(super) found: Option<LogsText>,
}

impl Piece {
    /// Blocks whose logs are not cached.
    pub(super) fn without_key(from: u64, to: u64) -> Self {
        Self { from, to, key: None, is_chunk: false, found: None }
    }
}

/// The logs of a piece: their text, with commas between and nothing around, and their number.
#[derive(Clone, Debug, Default)]
pub(super) struct LogsText {
    pub(super) text: Bytes,
    pub(super) count: u64,
}

/// About how many pieces with a key a range is cut into.
pub(super) fn count(from: u64, to: u64) -> usize {
    let chunks = (to - from) / CHUNK_BLOCKS;
    if chunks > CHUNKS_MAX { 0 } else { chunks as usize + 1 }
}

/// Cuts a range into pieces, upwards.
pub(super) fn of(chain: &CanonicalChain, filter: &Arc<LogFilterParams>, from: u64, to: u64) -> Vec<Piece> {
    if count(from, to) == 0 {
        return vec![Piece::without_key(from, to)];
    }
    let mut pieces = Vec::new();
    let mut start = from;
    while start <= to {
        let chunk = start / CHUNK_BLOCKS * CHUNK_BLOCKS;
        let last = chunk.saturating_add(CHUNK_BLOCKS - 1);
        let end = last.min(to);
        let is_chunk = start == chunk && end == last;
        let key = Some(key(chain, filter, start, end));
        pieces.push(Piece { from: start, to: end, key, is_chunk, found: None });
        let Some(next) = end.checked_add(1) else { break };
        start = next;
    }
    pieces
}

fn key(chain: &CanonicalChain, filter: &Arc<LogFilterParams>, first: u64, last: u64) -> CacheKey {
    CacheKey::Logs { filter: Arc::clone(filter), first, last: anchor(chain, last) }
}

/// The last block of a chunk, which is part of its cache key. Far below the head its hash need not be known: the epoch
/// stands for it.
fn anchor(chain: &CanonicalChain, last: u64) -> BlockRef {
    canonical(chain, last).unwrap_or(BlockRef { number: last, hash: B256::ZERO })
}

/// A chunk as it is cached: a copy, because the answer that it was cut from may be many times as large.
pub(super) fn cached_answer(
    found: &LogsText,
    last: u64,
    chain: &Arc<CanonicalChain>,
    verified: Verification,
    given_by: Option<GivenBy>,
) -> CachedAnswer {
    let block = Some(anchor(chain, last));
    CachedAnswer {
        result: Bytes::copy_from_slice(&found.text),
        block,
        verified,
        given_by,
        deep_in: deep_in(chain, block),
        count: found.count,
        readers: ChargedReaders::default(),
    }
}

/// Gives every piece its part of an answer. Answers and pieces are both in order.
pub(super) fn cut(result: &Bytes, pieces: &mut [Piece]) {
    let mut pieces = pieces.iter_mut();
    let mut open: Option<(&mut Piece, std::ops::Range<usize>, u64)> = None;
    for log in read_logs(result).unwrap_or_default() {
        match &mut open {
            Some((piece, bytes, count)) if log.block.number <= piece.to => {
                bytes.end = log.bytes.end;
                *count += 1;
            }
            _ => {
                close(open.take(), result);
                let piece = pieces.find(|piece| log.block.number <= piece.to);
                open = piece.map(|piece| (piece, log.bytes, 1));
            }
        }
    }
    close(open, result);
}

fn close(open: Option<(&mut Piece, std::ops::Range<usize>, u64)>, result: &Bytes) {
    let Some((piece, bytes, count)) = open else { return };
    let more = LogsText { text: result.slice(bytes), count };
    piece.found = Some(match piece.found.take() {
        // The piece was fetched in several parts.
        Some(before) if before.count > 0 => {
            let text = [&before.text[..], b",", &more.text[..]].concat().into();
            LogsText { text, count: before.count + more.count }
        }
        _ => more,
    });
}

/// The whole answer.
pub(super) fn join<'a>(parts: impl Iterator<Item = &'a LogsText> + Clone) -> Bytes {
    let bytes = parts.clone().map(|part| part.text.len() + 1).sum::<usize>() + 2;
    let mut text = Vec::with_capacity(bytes);
    text.push(b'[');
    for part in parts.filter(|part| part.count > 0) {
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(&part.text);
    }
    text.push(b']');
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(block: u64, index: u64) -> String {
        let (hash, address) = ("11".repeat(32), "22".repeat(20));
        format!(
            r#"{{"address":"0x{address}","topics":[],"data":"0x","blockNumber":"{block:#x}","transactionHash":"0x{hash}","transactionIndex":"0x0","blockHash":"0x{hash}","logIndex":"{index:#x}","removed":false}}"#
        )
    }

    fn piece(from: u64, to: u64) -> Piece {
        Piece::without_key(from, to)
    }

    #[test]
    fn what_is_cut_and_joined_is_the_same() {
        let logs = [log(3, 0), log(3, 1), log(130, 0), log(400, 0)].join(",");
        let whole = Bytes::from(format!("[{logs}]"));
        let mut pieces = [piece(3, 127), piece(128, 255), piece(256, 383), piece(384, 400)];
        cut(&whole, &mut pieces);
        let counts: Vec<_> =
            pieces.iter().map(|piece| piece.found.as_ref().map_or(0, |found| found.count)).collect();
        assert_eq!(counts, [2, 1, 0, 1]);
        assert_eq!(join(pieces.iter().filter_map(|piece| piece.found.as_ref())), whole);
    }

    #[test]
    fn a_piece_may_come_in_several_parts() {
        let mut pieces = [piece(0, 127)];
        cut(&Bytes::from(format!("[{}]", log(1, 0))), &mut pieces);
        cut(&Bytes::from_static(b"[]"), &mut pieces);
        cut(&Bytes::from(format!("[{}]", log(100, 0))), &mut pieces);
        let joined = join(pieces.iter().filter_map(|piece| piece.found.as_ref()));
        assert_eq!(joined, format!("[{},{}]", log(1, 0), log(100, 0)));
    }

    #[test]
    fn nothing_joined_is_an_empty_list() {
        assert_eq!(join([LogsText::default()].iter()), "[]");
    }
}
