//! A small archive of made-up logs, and the slow and obvious way to query it.

#![allow(clippy::unwrap_used, reason = "a test that panics is a test that fails")]

mod damage; // broken rows are errors
mod filters; // each rule of a filter, by example
mod index; // what reaches the table
mod random; // against brute force
mod packs; // many logs as bytes
mod stops; // deadline, cancellation, and how little is read

use std::ops::{ControlFlow, Range};

use alloy_primitives::{Address, B256};
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable, backends::InMemoryBackend};

use super::{
    error::DamagedLogRow,
    pack::{PACK_LOGS, PACKED_DATA_MAX, Pack, PackedLog, data_key, pack_of},
    row::TopicsTooMany,
    *,
};
use crate::tables::{LOG_INDEX, LOGS};

/// The parts of a log that a filter sees. Small numbers stand for addresses and topics.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TestLog {
    ordinal: u64,
    address: u16,
    topics: Vec<u16>,
}

fn log(ordinal: u64, address: u16, topics: &[u16]) -> TestLog {
    TestLog { ordinal, address, topics: topics.to_vec() }
}

fn address(n: u16) -> Address {
    Address::left_padding_from(&n.to_be_bytes())
}

fn topic(n: u16) -> B256 {
    B256::left_padding_from(&n.to_be_bytes())
}

fn filter(addresses: &[u16], topics: &[&[u16]]) -> LogFilter {
    LogFilter {
        addresses: addresses.iter().map(|n| address(*n)).collect(),
        topics: topics.iter().map(|any| any.iter().map(|n| topic(*n)).collect()).collect(),
    }
}

/// The definition of a match, word for word.
fn matches_filter(log: &TestLog, filter: &LogFilter) -> bool {
    let by_address = filter.addresses.is_empty() || filter.addresses.contains(&address(log.address));
    let enough_topics = log.topics.len() >= filter.topics.len();
    let by_topics =
        filter.topics.iter().zip(&log.topics).all(|(any, n)| any.is_empty() || any.contains(&topic(*n)));
    by_address && enough_topics && by_topics
}

/// The ordinals that match, found by looking at every log.
fn brute_force(logs: &[TestLog], ordinals: &Range<u64>, filter: &LogFilter) -> Vec<u64> {
    let inside = logs.iter().filter(|log| ordinals.contains(&log.ordinal) && matches_filter(log, filter));
    inside.map(|log| log.ordinal).collect()
}

/// Numbers of the block and the transaction that a log stands in: ten logs to a block, four to a transaction, so that
/// packs have several of both, whole and cut.
fn block_of(ordinal: u64) -> LogBlock {
    LogBlock { number: ordinal / 10, hash: topic((ordinal / 10) as u16), timestamp: 1_000 + ordinal / 10 }
}

fn transaction_of(ordinal: u64) -> (u32, B256) {
    ((ordinal % 10 / 4) as u32, topic((ordinal / 10 * 3 + ordinal % 10 / 4) as u16))
}

/// The data names the ordinal; now and then there is as much of it as a pack takes, or more.
fn data_of(ordinal: u64) -> Vec<u8> {
    let words = match ordinal % 97 {
        3 => PACKED_DATA_MAX / 8,
        5 => PACKED_DATA_MAX / 8 + 1,
        few => few as usize % 3,
    };
    ordinal.to_be_bytes().repeat(words)
}

/// Calls `with` with the log as it goes into the archive.
fn with_row<T>(log: &TestLog, with: impl FnOnce(&LogRow<'_>) -> T) -> T {
    let topics: Vec<_> = log.topics.iter().map(|n| topic(*n)).collect();
    let (transaction_index, transaction_hash) = transaction_of(log.ordinal);
    with(&LogRow {
        block: &block_of(log.ordinal),
        transaction_index,
        transaction_hash: &transaction_hash,
        log_index: (log.ordinal % 10) as u32,
        address: &address(log.address),
        topics: &topics,
        data: &data_of(log.ordinal),
    })
}

/// Whether the archive gives back what went in.
fn is_same(found: &LogRef<'_>, log: &TestLog) -> bool {
    with_row(log, |row| {
        (found.block_number(), found.block_timestamp()) == (row.block.number, row.block.timestamp)
            && *found.block_hash() == row.block.hash
            && found.transaction_index() == row.transaction_index
            && found.transaction_hash() == row.transaction_hash
            && found.log_index() == row.log_index
            && found.address() == row.address
            && found.topics().iter().eq(row.topics.iter().map(|topic| &topic.0))
            && found.data() == row.data
    })
}

/// Appends logs to their packs. Where ordinals are left out, something else fills their places in the pack.
fn pack(table: &mut redb::Table<'_, u64, &'static [u8]>, logs: &[TestLog]) {
    for logs in logs.chunk_by(|a, b| pack_of(a.ordinal) == pack_of(b.ordinal)) {
        let number = pack_of(logs[0].ordinal);
        let there = table.get(number).unwrap().map_or(0, |row| Pack::decode(row.value()).unwrap().len());
        let mut packer = LogPacker::resume(table, number * PACK_LOGS + there).unwrap();
        for log in logs {
            while packer.next() < log.ordinal {
                let filler = TestLog { ordinal: packer.next(), address: 0, topics: Vec::new() };
                with_row(&filler, |row| packer.push(row)).unwrap();
            }
            assert_eq!(with_row(log, |row| packer.push(row)).unwrap(), log.ordinal);
        }
        packer.finish().unwrap();
    }
}

struct Archive(Database);

impl Archive {
    fn new() -> Self {
        let db = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let archive = Self(db);
        archive.commit(&[]);
        archive
    }

    /// Holds these logs, committed in groups of `group` logs.
    fn with(logs: &[TestLog], group: usize) -> Self {
        let archive = Self::new();
        logs.chunks(group.max(1)).for_each(|logs| archive.commit(logs));
        archive
    }

    fn commit(&self, logs: &[TestLog]) {
        let mut indexer = LogIndexer::default();
        let write = self.0.begin_write().unwrap();
        {
            pack(&mut write.open_table(LOGS).unwrap(), logs);
            for log in logs {
                let topics: Vec<_> = log.topics.iter().map(|n| topic(*n)).collect();
                indexer.add(log.ordinal, &address(log.address), &topics).unwrap();
            }
            indexer.flush(&mut write.open_table(LOG_INDEX).unwrap()).unwrap();
        }
        write.commit().unwrap();
        assert!(indexer.is_empty());
    }

    fn index(&self) -> ReadOnlyTable<&'static [u8; 37], &'static [u8]> {
        self.0.begin_read().unwrap().open_table(LOG_INDEX).unwrap()
    }

    fn logs(&self) -> ReadOnlyTable<u64, &'static [u8]> {
        self.0.begin_read().unwrap().open_table(LOGS).unwrap()
    }

    fn plan(&self, ordinals: Range<u64>, filter: &LogFilter, limit: usize) -> Result<Matches, QueryError> {
        plan(&self.index(), &LogQuery { ordinals, filter, limit, stop: StopConditions::default() })
    }

    fn find(&self, ordinals: Range<u64>, filter: &LogFilter) -> Vec<u64> {
        let matches = self.plan(ordinals, filter, usize::MAX).unwrap();
        let found: Vec<_> = matches.ordinals().collect();
        assert_eq!(matches.len(), found.len() as u64);
        found
    }

    /// Which logs `read` hands over, each checked against its row.
    fn read(&self, matches: &Matches, logs: &[TestLog]) -> Vec<u64> {
        let mut seen = Vec::new();
        let flow = read(&self.logs(), matches, StopConditions::default(), |ordinal, found| {
            let at = logs.binary_search_by_key(&ordinal, |log| log.ordinal).unwrap();
            assert!(is_same(&found, &logs[at]), "{found:?}");
            seen.push(ordinal);
            ControlFlow::<()>::Continue(())
        });
        assert!(flow.unwrap().is_continue());
        seen
    }
}
