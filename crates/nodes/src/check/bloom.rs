//! The bloom of some logs, or of as many as may be hashed.

use alloy_primitives::{Bloom, BloomInput};

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
        self.whole &= self.hashes_left > 0;
        if self.whole {
            self.hashes_left -= 1;
            self.bloom.accrue(BloomInput::Raw(&hex::fixed::<N>(digits)?));
        }
        Some(())
    }

    /// Whether the logs can have this bloom.
    pub(super) fn fits(&self, said: &Bloom) -> bool {
        if self.whole { *said == self.bloom } else { said.contains(&self.bloom) }
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, B256, Bytes, Log, logs_bloom};

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
            let accrued = accrued(&logs, hashes_max);
            assert!(accrued.fits(&logs_bloom(&logs)));
            // The third value is a topic that the last two logs do not have.
            assert_eq!(accrued.fits(&logs_bloom(&logs[3..])), hashes_max < 3, "{hashes_max}");
        }
    }
}
