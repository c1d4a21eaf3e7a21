//! A term of the index: "this address", "this topic at this position", "this many topics".
//!
//! A row's key is kind (1 byte), value (32 bytes) and chunk (4 bytes, big-endian), so the chunks of one term
//! lie side by side in chain order.

use alloy_primitives::{Address, B256};
use redb::ReadableTable;

/// The key of a row of the index.
pub(super) type IndexKey = [u8; 37];

/// The index, in a read or in a write transaction.
pub(crate) trait IndexTable: ReadableTable<&'static IndexKey, &'static [u8]> {}
impl<T: ReadableTable<&'static IndexKey, &'static [u8]>> IndexTable for T {}

const KIND_ADDRESS: u8 = 0;
const KIND_FIRST_TOPIC: u8 = 1; // Positions 0 to 3 are the kinds 1 to 4.
const KIND_TOPIC_COUNT: u8 = 5;

/// Kind and value: a key without its chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Term([u8; 33]);

impl Term {
    fn new(kind: u8, value: B256) -> Self {
        let mut term = [kind; 33];
        term[1..].copy_from_slice(value.as_slice());
        Self(term)
    }

    pub(super) fn address(address: &Address) -> Self {
        Self::new(KIND_ADDRESS, address.into_word())
    }

    /// `position` is below [`TOPICS_MAX`](super::TOPICS_MAX), which every caller has checked.
    pub(super) fn topic(position: usize, topic: &B256) -> Self {
        Self::new(KIND_FIRST_TOPIC + position as u8, *topic)
    }

    /// A log with exactly `count` topics.
    pub(super) fn topic_count(count: usize) -> Self {
        Self::new(KIND_TOPIC_COUNT, B256::with_last_byte(count as u8))
    }

    pub(super) fn key(&self, chunk: u32) -> IndexKey {
        let mut key = [0; 37];
        key[..33].copy_from_slice(&self.0);
        key[33..].copy_from_slice(&chunk.to_be_bytes());
        key
    }
}

/// The chunk that a key ends with.
pub(super) fn chunk_of(key: &IndexKey) -> u32 {
    let [.., a, b, c, d] = *key;
    u32::from_be_bytes([a, b, c, d])
}
