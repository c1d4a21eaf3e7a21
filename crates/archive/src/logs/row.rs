//! One log as the bytes of its row, and read from them without a copy.
//!
//! Block number (8 bytes), transaction index (4), log index in the block (4), transaction hash (32),
//! address (20), number of topics (1), the topics (32 each), data (the rest). Numbers are big-endian.

use alloy_primitives::{Address, B256};
use thiserror::Error;

use super::TOPICS_MAX;

/// Everything before the topics.
const FIXED_BYTES: usize = 8 + 4 + 4 + 32 + 20 + 1;

/// A log that claims more topics than the EVM can give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a log has {0} topics, the most is {TOPICS_MAX}")]
pub(crate) struct TopicsTooMany(pub(crate) usize);

/// Refuses what no log can have, so that rows and index agree on what a log is.
pub(super) fn check_topics(topics: &[B256]) -> Result<(), TopicsTooMany> {
    if topics.len() > TOPICS_MAX { Err(TopicsTooMany(topics.len())) } else { Ok(()) }
}

/// A log on its way into the archive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogRow<'a> {
    pub(crate) block_number: u64,
    pub(crate) transaction_index: u32,
    pub(crate) log_index: u32,
    pub(crate) transaction_hash: &'a B256,
    pub(crate) address: &'a Address,
    pub(crate) topics: &'a [B256],
    pub(crate) data: &'a [u8],
}

impl LogRow<'_> {
    /// Appends the row to `row`, which an importer clears and uses again for the next log.
    pub(crate) fn encode_into(&self, row: &mut Vec<u8>) -> Result<(), TopicsTooMany> {
        check_topics(self.topics)?;
        row.reserve(FIXED_BYTES + 32 * self.topics.len() + self.data.len());
        row.extend_from_slice(&self.block_number.to_be_bytes());
        row.extend_from_slice(&self.transaction_index.to_be_bytes());
        row.extend_from_slice(&self.log_index.to_be_bytes());
        row.extend_from_slice(self.transaction_hash.as_slice());
        row.extend_from_slice(self.address.as_slice());
        row.push(self.topics.len() as u8); // At most TOPICS_MAX, checked above.
        for topic in self.topics {
            row.extend_from_slice(topic.as_slice());
        }
        row.extend_from_slice(self.data);
        Ok(())
    }
}

/// A log in the archive: numbers by value, everything else as a view of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRef<'a> {
    block_number: u64,
    transaction_index: u32,
    log_index: u32,
    transaction_hash: &'a [u8; 32],
    address: &'a [u8; 20],
    topics: &'a [[u8; 32]],
    data: &'a [u8],
}

impl<'a> LogRef<'a> {
    /// None where the bytes cannot be a log row.
    pub fn decode(row: &'a [u8]) -> Option<Self> {
        let (block_number, row) = row.split_first_chunk()?;
        let (transaction_index, row) = row.split_first_chunk()?;
        let (log_index, row) = row.split_first_chunk()?;
        let (transaction_hash, row) = row.split_first_chunk()?;
        let (address, row) = row.split_first_chunk()?;
        let (topic_count, row) = row.split_first()?;
        let topic_count = usize::from(*topic_count);
        if topic_count > TOPICS_MAX {
            return None;
        }
        let (topics, data) = row.split_at_checked(32 * topic_count)?;
        Some(Self {
            block_number: u64::from_be_bytes(*block_number),
            transaction_index: u32::from_be_bytes(*transaction_index),
            log_index: u32::from_be_bytes(*log_index),
            transaction_hash,
            address,
            topics: topics.as_chunks().0,
            data,
        })
    }

    pub fn block_number(&self) -> u64 {
        self.block_number
    }

    pub fn transaction_index(&self) -> u32 {
        self.transaction_index
    }

    /// The position of the log in its block, not in its transaction.
    pub fn log_index(&self) -> u32 {
        self.log_index
    }

    pub fn transaction_hash(&self) -> &'a [u8; 32] {
        self.transaction_hash
    }

    pub fn address(&self) -> &'a [u8; 20] {
        self.address
    }

    pub fn topics(&self) -> &'a [[u8; 32]] {
        self.topics
    }

    pub fn data(&self) -> &'a [u8] {
        self.data
    }
}
