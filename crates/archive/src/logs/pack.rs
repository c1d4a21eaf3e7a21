//! Consecutive logs as one row of the table `logs`, with what they share written once.
//!
//! To find a row takes longer than to read a log in it, and logs are mostly asked for together: those of a receipt, or
//! all that an address has. A pack is found once for all of its logs that are asked for, and it has everything that an
//! answer says about them. Log number `n` is in pack `n / 32`; all packs but the last are full.
//!
//! A pack: number of logs, of blocks and of transactions (1 byte each); the blocks: number (8 bytes), hash (32),
//! timestamp (8); the transactions: place of its block above (1), index in the block (4), hash (32); the places: of its
//! transaction above (1), end of the log in what follows (4); then the logs: index in the block (4), address (20),
//! number of topics (1), the topics (32 each), data (the rest). Numbers are big-endian.

use super::{TOPICS_MAX, row::LogRef};

/// Logs in a full pack.
pub(crate) const PACK_LOGS: u64 = 32;

/// Data longer than this has a row of its own, so that a pack stays small, whatever contracts emit.
pub(super) const PACKED_DATA_MAX: usize = 2048;

/// The bit in the number of topics that says that the data has a row of its own.
pub(super) const DATA_ELSEWHERE: u8 = 0x80;

pub(super) const BLOCK_BYTES: usize = 8 + 32 + 8;
pub(super) const TRANSACTION_BYTES: usize = 1 + 4 + 32;
pub(super) const PLACE_BYTES: usize = 1 + 4;

/// Number of the pack that a log is in, which is the key of its row.
pub(super) fn pack_of(ordinal: u64) -> u64 {
    ordinal / PACK_LOGS
}

/// Key of the row that has the data of a log too large for its pack. No pack has as high a number.
pub(super) fn data_key(ordinal: u64) -> u64 {
    1 << 63 | ordinal
}

/// A pack, as a view of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pack<'a> {
    pub(super) blocks: &'a [[u8; BLOCK_BYTES]],
    pub(super) transactions: &'a [[u8; TRANSACTION_BYTES]],
    pub(super) places: &'a [[u8; PLACE_BYTES]],
    pub(super) logs: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackedLog<'a> {
    Whole(LogRef<'a>),
    /// Its data has a row of its own.
    WithoutData(LogRef<'a>),
}

impl<'a> Pack<'a> {
    /// None where the bytes cannot be a pack.
    pub(super) fn decode(row: &'a [u8]) -> Option<Self> {
        let ([logs, blocks, transactions], rest) = row.split_first_chunk()?;
        let (blocks, rest) = array(rest, *blocks)?;
        let (transactions, rest) = array(rest, *transactions)?;
        let (places, logs) = array(rest, *logs)?;
        Some(Self { blocks, transactions, places, logs })
    }

    pub(super) fn len(&self) -> u64 {
        self.places.len() as u64
    }

    /// The log with this ordinal; None where the pack does not have it, or is damaged.
    pub(super) fn log(&self, ordinal: u64) -> Option<PackedLog<'a>> {
        let at = (ordinal % PACK_LOGS) as usize;
        let [transaction, end @ ..] = self.places.get(at)?;
        let start = at.checked_sub(1).map_or([0; 4], |before| {
            let [_, end @ ..] = self.places[before];
            end
        });
        let log = self.logs.get(u32::from_be_bytes(start) as usize..u32::from_be_bytes(*end) as usize)?;
        let (block, transaction) = self.transactions.get(usize::from(*transaction))?.split_first()?;
        let (transaction_index, transaction) = transaction.split_first_chunk()?;
        let (block_number, block) = self.blocks.get(usize::from(*block))?.split_first_chunk()?;
        let (block_hash, timestamp) = block.split_first_chunk()?;
        let (log_index, log) = log.split_first_chunk()?;
        let (address, log) = log.split_first_chunk()?;
        let (topic_count, log) = log.split_first()?;
        let topics = usize::from(topic_count & !DATA_ELSEWHERE);
        if topics > TOPICS_MAX {
            return None;
        }
        let (topics, data) = log.split_at_checked(32 * topics)?;
        let log = LogRef {
            block_number: u64::from_be_bytes(*block_number),
            block_hash,
            block_timestamp: u64::from_be_bytes(timestamp.try_into().ok()?),
            transaction_index: u32::from_be_bytes(*transaction_index),
            transaction_hash: transaction.try_into().ok()?,
            log_index: u32::from_be_bytes(*log_index),
            address,
            topics: topics.as_chunks().0,
            data,
        };
        match topic_count & DATA_ELSEWHERE {
            0 => Some(PackedLog::Whole(log)),
            _ => data.is_empty().then_some(PackedLog::WithoutData(log)),
        }
    }
}

/// As many items of a fixed size, and what comes behind them.
fn array<const N: usize>(bytes: &[u8], count: u8) -> Option<(&[[u8; N]], &[u8])> {
    let (items, rest) = bytes.split_at_checked(usize::from(count) * N)?;
    Some((items.as_chunks().0, rest))
}
