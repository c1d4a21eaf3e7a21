//! The bloom of some logs, or of as many as may be hashed.
//!
//! Hashing is most of the work, and the same few contracts and events make most of the logs, so each thread remembers the
//! hashes of what it has seen lately.

use std::cell::RefCell;

use alloy_primitives::{B256, Bloom, BloomInput, keccak256};

use super::hex;
use super::log::RawLog;

/// What logs leave in a bloom.
pub(super) struct Accrued {
    pub(super) bloom: Bloom,
    /// Whether all of them are in it.
    whole: bool,
    hashes_left: usize,
}

impl Accrued {
    /// `None` if some of the digits are none. Most of what a log is made of stands at the same place in the one before,
    /// and is hashed once.
    pub(super) fn of(logs: &[RawLog<'_>], hashes_max: usize) -> Option<Self> {
        let mut accrued = Self { bloom: Bloom::ZERO, whole: true, hashes_left: hashes_max };
        let mut previous: Option<&RawLog<'_>> = None;
        for log in logs {
            if previous.is_none_or(|previous| previous.address != log.address) {
                accrued.add::<20>(log.address)?;
            }
            let before = previous.map_or(&[][..], RawLog::topics);
            for (place, topic) in log.topics().iter().enumerate() {
                if before.get(place) != Some(topic) {
                    accrued.add::<32>(*topic)?;
                }
            }
            if !accrued.whole {
                break;
            }
            previous = Some(log);
        }
        Some(accrued)
    }

    fn add<const N: usize>(&mut self, digits: &[u8]) -> Option<()> {
        if self.whole {
            let value = hex::fixed::<N>(digits)?;
            match MEMORY.with_borrow_mut(|memory| memory.hash(&value, &mut self.hashes_left)) {
                Some(hash) => self.bloom.accrue(BloomInput::Hash(hash)),
                None => self.whole = false,
            }
        }
        Some(())
    }

    /// Whether the logs can have this bloom.
    pub(super) fn fits(&self, said: &Bloom) -> bool {
        if self.whole { *said == self.bloom } else { said.contains(&self.bloom) }
    }
}

/// Values that are remembered, at one place each.
const PLACES: usize = 256;

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::new(Memory::default());
}

/// Hashes of values that were seen lately. Two values of one place drive each other out, which costs time and nothing else.
#[derive(Default)]
struct Memory(Vec<Seen>);

#[derive(Clone, Default)]
struct Seen {
    value: [u8; 32],
    length: usize,
    hash: B256,
}

impl Memory {
    /// The hash of an address or a topic, unless it takes one more than are left.
    fn hash(&mut self, value: &[u8], left: &mut usize) -> Option<B256> {
        if self.0.is_empty() {
            self.0.resize(PLACES, Seen::default());
        }
        let seen = &mut self.0[place(value)];
        if seen.length != value.len() || seen.value[..seen.length] != *value {
            *left = left.checked_sub(1)?;
            seen.value[..value.len()].copy_from_slice(value);
            (seen.length, seen.hash) = (value.len(), keccak256(value));
        }
        Some(seen.hash)
    }
}

/// By the last bytes: numbers and addresses in topics begin with zeros.
fn place(value: &[u8]) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let last = value.last_chunk().map_or(0, |last| u64::from_le_bytes(*last));
    (last.wrapping_mul(SPREAD) >> 56) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, Bytes, Log, logs_bloom};

    use super::super::cursor::Cursor;
    use super::super::log::LogReader;
    use super::*;

    fn log(address: u8, topics: &[u8]) -> Log {
        let topics = topics.iter().map(|topic| B256::repeat_byte(*topic)).collect();
        Log::new_unchecked(Address::repeat_byte(address), topics, Bytes::new())
    }

    /// The same as a node would write them.
    fn written(logs: &[Log]) -> String {
        let log = |log: &Log| {
            let topics = serde_json::to_string(log.topics()).unwrap();
            let (address, hash) = (log.address, B256::ZERO);
            format!(
                r#"{{"address":"{address}","topics":{topics},"data":"0x","blockNumber":"0x1","blockHash":"{hash}","transactionHash":"{hash}","transactionIndex":"0x0","logIndex":"0x0"}}"#
            )
        };
        format!("[{}]", logs.iter().map(log).collect::<Vec<_>>().join(","))
    }

    fn some_logs() -> [Log; 5] {
        [log(1, &[1, 2]), log(1, &[1, 3]), log(2, &[1]), log(2, &[]), log(1, &[3, 1, 4, 4])]
    }

    fn accrued(logs: &[Log], hashes_max: usize) -> Accrued {
        let text = written(logs);
        let read = LogReader::new().read_list(&mut Cursor::new(text.as_bytes())).unwrap();
        Accrued::of(&read, hashes_max).unwrap()
    }

    #[test]
    fn the_bloom_is_the_one_of_all_logs() {
        let logs = some_logs();
        for count in 0..=logs.len() {
            let accrued = accrued(&logs[..count], usize::MAX);
            assert_eq!(accrued.bloom, logs_bloom(&logs[..count]));
            assert!(!accrued.fits(&Bloom::repeat_byte(0xff)));
        }
    }

    #[test]
    fn what_was_hashed_must_be_in_the_bloom() {
        let logs = some_logs();
        for hashes_max in 0..8 {
            MEMORY.take();
            let accrued = accrued(&logs, hashes_max);
            assert!(accrued.fits(&logs_bloom(&logs)));
            // The third value is a topic that the last two logs do not have.
            assert_eq!(accrued.fits(&logs_bloom(&logs[3..])), hashes_max < 3, "{hashes_max}");
        }
    }

    /// What is remembered takes no hashing, and is what hashing would give, whoever else had its place meanwhile.
    #[test]
    fn what_is_remembered_is_what_hashing_gives() {
        let mut memory = Memory::default();
        let mut hash = |value: &[u8], mut left: usize| (memory.hash(value, &mut left), left);
        for round in 0..3_u64 {
            for number in 0..2_000_u64 {
                let word = B256::left_padding_from(&(number * 7).to_be_bytes());
                assert_eq!(hash(&word[..], 9).0, Some(keccak256(word)), "{round}");
                assert_eq!(hash(&word[12..], 9).0, Some(keccak256(&word[12..])), "{round}");
            }
        }
        let word = B256::repeat_byte(7);
        assert_eq!(hash(&word[..], 0), (None, 0));
        assert_eq!(hash(&word[..], 1), (Some(keccak256(word)), 0));
        assert_eq!(hash(&word[..], 0), (Some(keccak256(word)), 0));
    }
}
