//! A small archive of made-up logs, and the slow and obvious way to query it.

#![allow(clippy::unwrap_used, reason = "a test that panics is a test that fails")]

mod damage; // broken rows are errors
mod filters; // each rule of a filter, by example
mod index; // what reaches the table
mod random; // against brute force
mod rows; // one log as bytes
mod stops; // deadline, cancellation, and how little is read

use std::ops::{ControlFlow, Range};

use alloy_primitives::{Address, B256};
use redb::{Database, ReadOnlyTable, ReadableDatabase, backends::InMemoryBackend};

use super::{error::Damaged, row::TopicsTooMany, *};
use crate::tables::{LOG_INDEX, LOGS};

/// What a filter can see of a log. Small numbers stand for addresses and topics.
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

/// The row that stands for a log; its data names the ordinal.
fn row_of(log: &TestLog) -> Vec<u8> {
    let topics: Vec<_> = log.topics.iter().map(|n| topic(*n)).collect();
    let mut row = Vec::new();
    LogRow {
        block_number: log.ordinal / 10,
        transaction_index: 3,
        log_index: (log.ordinal % 10) as u32,
        transaction_hash: &topic(999),
        address: &address(log.address),
        topics: &topics,
        data: &log.ordinal.to_be_bytes(),
    }
    .encode_into(&mut row)
    .unwrap();
    row
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
            let mut rows = write.open_table(LOGS).unwrap();
            for log in logs {
                let topics: Vec<_> = log.topics.iter().map(|n| topic(*n)).collect();
                rows.insert(log.ordinal, row_of(log).as_slice()).unwrap();
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
        plan(&self.index(), &LogQuery { ordinals, filter, limit, stop: Stop::default() })
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
        let flow = read(&self.logs(), matches, Stop::default(), |ordinal, found| {
            let at = logs.binary_search_by_key(&ordinal, |log| log.ordinal).unwrap();
            assert_eq!(Some(found), LogRef::decode(&row_of(&logs[at])));
            seen.push(ordinal);
            ControlFlow::<()>::Continue(())
        });
        assert!(flow.unwrap().is_continue());
        seen
    }
}
