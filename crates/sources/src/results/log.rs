//! Logs. Queries of ten thousand of them are common, so what is the same for all logs of a transaction is written once,
//! and what is the same for all logs is copied with places left open for the digits.

use std::borrow::Borrow;

use super::json::{Json, encode};
use archive::LogRef;

macro_rules! hash {
    () => {
        "\"0x0000000000000000000000000000000000000000000000000000000000000000\""
    };
}

macro_rules! head {
    ($($topics:expr),*) => {
        concat!(
            "{\"address\":\"0x0000000000000000000000000000000000000000\",\"topics\":[",
            $($topics,)*
            "],\"data\":\"0x"
        )
    };
}

/// The approximate size of a log in JSON. Reserving it saves growing the buffer of a large answer a dozen times.
pub const LOG_BYTES_TYPICAL: usize = 720;

/// Everything before the data, by the number of topics.
const HEADS: [&str; 5] = [
    head!(),
    head!(hash!()),
    head!(hash!(), ",", hash!()),
    head!(hash!(), ",", hash!(), ",", hash!()),
    head!(hash!(), ",", hash!(), ",", hash!(), ",", hash!()),
];

/// Where the digits of the address stand in a head.
const ADDRESS: std::ops::Range<usize> = 14..54;

/// Where the digits of the first topic begin in a head.
const TOPICS_AT: usize = 69;

/// From one topic to the next.
const TOPIC_STEP: usize = hash!().len() + 1;

/// A log and where it stands. `T` is 32 bytes.
#[derive(Clone, Copy, Debug)]
pub struct LogFields<'a, T> {
    pub block_number: u64,
    pub block_hash: &'a [u8; 32],
    pub block_timestamp: u64,
    pub transaction_index: u32,
    pub transaction_hash: &'a [u8; 32],
    /// The position of the log in its block, not in its transaction.
    pub log_index: u32,
    pub address: &'a [u8; 20],
    /// At most four.
    pub topics: &'a [T],
    pub data: &'a [u8],
}

impl<'a> From<LogRef<'a>> for LogFields<'a, [u8; 32]> {
    fn from(log: LogRef<'a>) -> Self {
        Self {
            block_number: log.block_number(),
            block_hash: log.block_hash(),
            block_timestamp: log.block_timestamp(),
            transaction_index: log.transaction_index(),
            transaction_hash: log.transaction_hash(),
            log_index: log.log_index(),
            address: log.address(),
            topics: log.topics(),
            data: log.data(),
        }
    }
}

/// Writes logs, one after another.
#[derive(Debug, Default)]
pub struct LogWriter {
    head: LogHead,
    /// Block number and index of the transaction that `middle` is about.
    transaction: Option<(u64, u32)>,
    /// Everything between data and index: `","blockNumber":…,"logIndex":`
    middle: Vec<u8>,
}

impl LogWriter {
    pub fn write<T: Borrow<[u8; 32]>>(&mut self, log: &LogFields<'_, T>, json: &mut Json<'_>) {
        let transaction = Some((log.block_number, log.transaction_index));
        if self.transaction != transaction {
            self.transaction = transaction;
            self.enter(log);
        }
        json.raw(self.head.of(log)).hex(log.data);
        json.raw(&self.middle).quantity(u64::from(log.log_index));
        json.raw(b",\"removed\":false}");
    }

    fn enter<T>(&mut self, log: &LogFields<'_, T>) {
        self.middle.clear();
        let mut json = Json(&mut self.middle);
        json.raw(b"\",\"blockNumber\":").quantity(log.block_number);
        json.raw(b",\"transactionHash\":").data(log.transaction_hash);
        json.raw(b",\"transactionIndex\":").quantity(u64::from(log.transaction_index));
        json.raw(b",\"blockHash\":").data(log.block_hash);
        json.raw(b",\"blockTimestamp\":").quantity(log.block_timestamp);
        json.raw(b",\"logIndex\":");
    }
}

/// The head of the last log, and what it says. Logs of one answer have much in common: what a filter asks for, above all.
#[derive(Debug, Default)]
struct LogHead {
    text: Vec<u8>,
    address: [u8; 20],
    topics: [[u8; 32]; 4],
}

impl LogHead {
    /// The head of this log. Only what differs from the last one is written anew.
    fn of<T: Borrow<[u8; 32]>>(&mut self, log: &LogFields<'_, T>) -> &[u8] {
        let template = HEADS[log.topics.len().min(HEADS.len() - 1)];
        if self.text.len() != template.len() {
            *self = Self { text: template.as_bytes().to_vec(), ..Self::default() };
        }
        if self.address != *log.address {
            self.address = *log.address;
            encode(&self.address, &mut self.text[ADDRESS]);
        }
        let places = self.text[TOPICS_AT..].chunks_mut(TOPIC_STEP);
        for ((last, topic), place) in self.topics.iter_mut().zip(log.topics).zip(places) {
            let topic: &[u8; 32] = topic.borrow();
            if last != topic {
                *last = *topic;
                encode(topic, &mut place[..64]);
            }
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_places_of_a_head_are_where_its_zeros_are() {
        for (topics, head) in HEADS.iter().enumerate() {
            let mut digits = vec![false; head.len()];
            digits[ADDRESS].fill(true);
            (0..topics).for_each(|topic| digits[TOPICS_AT + topic * TOPIC_STEP..][..64].fill(true));
            let rest: String =
                head.chars().zip(digits).filter(|(_, digit)| !digit).map(|(letter, _)| letter).collect();
            let expected = vec!["\"0x\""; topics].join(",");
            assert_eq!(rest, format!("{{\"address\":\"0x\",\"topics\":[{expected}],\"data\":\"0x"));
        }
    }
}
