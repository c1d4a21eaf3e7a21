//! One log: as it is written to the archive, and as a borrowed view of its row.

use alloy_primitives::{Address, B256};
use thiserror::Error;

use super::TOPICS_MAX;

/// A log that claims more topics than the EVM can give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a log has {0} topics, the most is {TOPICS_MAX}")]
pub(crate) struct TopicsTooMany(pub(crate) usize);

/// Rejects more topics than a log can have, so that rows and index agree.
pub(super) fn check_topics(topics: &[B256]) -> Result<(), TopicsTooMany> {
    if topics.len() > TOPICS_MAX { Err(TopicsTooMany(topics.len())) } else { Ok(()) }
}

/// The block of a log that is being written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogBlock {
    pub(crate) number: u64,
    pub(crate) hash: B256,
    pub(crate) timestamp: u64,
}

/// A log that is being written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogRow<'a> {
    pub(crate) block: &'a LogBlock,
    pub(crate) transaction_index: u32,
    pub(crate) transaction_hash: &'a B256,
    pub(crate) log_index: u32,
    pub(crate) address: &'a Address,
    pub(crate) topics: &'a [B256],
    pub(crate) data: &'a [u8],
}

/// A log in the archive: numbers by value, everything else as a view of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRef<'a> {
    pub(super) block_number: u64,
    pub(super) block_hash: &'a [u8; 32],
    pub(super) block_timestamp: u64,
    pub(super) transaction_index: u32,
    pub(super) transaction_hash: &'a [u8; 32],
    pub(super) log_index: u32,
    pub(super) address: &'a [u8; 20],
    pub(super) topics: &'a [[u8; 32]],
    pub(super) data: &'a [u8],
}

impl<'a> LogRef<'a> {
    pub fn block_number(&self) -> u64 {
        self.block_number
    }

    pub fn block_hash(&self) -> &'a [u8; 32] {
        self.block_hash
    }

    pub fn block_timestamp(&self) -> u64 {
        self.block_timestamp
    }

    pub fn transaction_index(&self) -> u32 {
        self.transaction_index
    }

    pub fn transaction_hash(&self) -> &'a [u8; 32] {
        self.transaction_hash
    }

    /// The position of the log in its block, not in its transaction.
    pub fn log_index(&self) -> u32 {
        self.log_index
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
