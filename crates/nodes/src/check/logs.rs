//! The answer of a log query: every log matches the filter, lies in the range, and stands in its place.
//!
//! One pass over megabytes, so nothing is decoded that is not needed: what equals the log before needs no second look.

use alloy_primitives::{Address, B256};

use super::cursor::Cursor;
use super::hex;
use super::log::{LogReader, RawLog, same_digits};
use super::{Facts, Lie, Verdict};
use crate::BlockId;

/// A log query, made ready for the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogQuery {
    from: u64,
    to: u64,
    block_hash: Option<B256>,
    addresses: Choice<Address>,
    topics: Vec<Choice<B256>>,
    results_max: usize,
}

impl LogQuery {
    /// Logs of these blocks, from any of the addresses (none: from all), with topics by position (none: any).
    /// A log needs a topic at every position, also at those that any topic fits.
    pub fn new(
        from: u64,
        to: u64,
        addresses: Vec<Address>,
        topics: Vec<Vec<B256>>,
        results_max: usize,
    ) -> Self {
        let topics = topics.into_iter().map(Choice::new).collect();
        Self { from, to, block_hash: None, addresses: Choice::new(addresses), topics, results_max }
    }

    /// The logs must be of this very block.
    pub fn of_block(self, hash: B256) -> Self {
        Self { block_hash: Some(hash), ..self }
    }

    /// The same query over another range.
    pub fn over(&self, from: u64, to: u64) -> Self {
        Self { from, to, ..self.clone() }
    }
}

/// Values of which one must fit; any does if there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice<T>(Vec<T>);

impl<T: Ord> Choice<T> {
    fn new(mut values: Vec<T>) -> Self {
        values.sort_unstable();
        values.dedup();
        Self(values)
    }

    fn fits(&self, value: &T) -> bool {
        self.0.is_empty() || self.0.binary_search(value).is_ok()
    }
}

pub(super) fn check(query: &LogQuery, result: &[u8]) -> Verdict {
    let mut judge = Judge { query, facts: Facts::default() };
    match judge.judge_all(result) {
        Ok(None) if judge.facts.count == 0 => Verdict::Empty,
        Ok(None) => Verdict::Sound(judge.facts),
        Ok(Some(block)) => {
            let to = block.checked_sub(1).filter(|to| *to >= query.from);
            Verdict::TooMany { to, blocks: judge.facts.blocks }
        }
        Err(lie) => Verdict::Wrong(lie),
    }
}

struct Judge<'q> {
    query: &'q LogQuery,
    facts: Facts,
}

impl Judge<'_> {
    /// Judges all logs, or stops at one too many and returns its block.
    fn judge_all(&mut self, result: &[u8]) -> Result<Option<u64>, Lie> {
        let (mut cursor, mut reader) = (Cursor::new(result), LogReader::new());
        let (mut log, mut previous) = (&mut { RawLog::BLANK }, &mut { RawLog::BLANK });
        cursor.expect(b'[').ok_or(Lie::Shape)?;
        if cursor.take(b']') {
            return ended(cursor);
        }
        loop {
            reader.read(&mut cursor, log).ok_or(Lie::Shape)?;
            self.judge(log, (self.facts.count > 0).then_some(&*previous))?;
            self.facts.count += 1;
            if self.facts.count > self.query.results_max {
                return Ok(Some(log.block_number));
            }
            std::mem::swap(&mut log, &mut previous);
            if !cursor.take(b',') {
                cursor.expect(b']').ok_or(Lie::Shape)?;
                return ended(cursor);
            }
        }
    }

    #[inline]
    fn judge(&mut self, log: &RawLog<'_>, previous: Option<&RawLog<'_>>) -> Result<(), Lie> {
        if log.removed {
            return Err(Lie::Removed);
        }
        self.judge_address(log, previous)?;
        self.judge_topics(log, previous)?;
        hex::is_hex(log.data).then_some(()).ok_or(Lie::Shape)?;
        match previous {
            Some(previous) if log.is_next && log.index <= previous.index => Err(Lie::Order),
            Some(_) if log.is_next => Ok(()),
            Some(previous) if previous.block_number == log.block_number => follows(previous, log),
            Some(previous) if previous.block_number > log.block_number => Err(Lie::Order),
            _ => self.judge_block(log),
        }
    }

    #[inline]
    fn judge_address(&self, log: &RawLog<'_>, previous: Option<&RawLog<'_>>) -> Result<(), Lie> {
        if previous.is_some_and(|previous| previous.address == log.address) {
            return Ok(());
        }
        let address = hex::fixed::<20>(log.address).map(Address::from).ok_or(Lie::Shape)?;
        self.query.addresses.fits(&address).then_some(()).ok_or(Lie::Filter)
    }

    #[inline]
    fn judge_topics(&self, log: &RawLog<'_>, previous: Option<&RawLog<'_>>) -> Result<(), Lie> {
        let (topics, asked) = (log.topics(), &self.query.topics);
        if topics.len() < asked.len() {
            return Err(Lie::Filter);
        }
        let judged = previous.map_or(&[][..], RawLog::topics);
        for (place, topic) in topics.iter().enumerate() {
            if judged.get(place) != Some(topic) {
                judge_topic(topic, asked.get(place))?;
            }
        }
        Ok(())
    }

    /// The first log of a block.
    fn judge_block(&mut self, log: &RawLog<'_>) -> Result<(), Lie> {
        let mut hash = B256::ZERO;
        hex::decode(log.block_hash, &mut hash.0).ok_or(Lie::Shape)?;
        hex::is_hex(log.transaction_hash).then_some(()).ok_or(Lie::Shape)?;
        if self.query.block_hash.is_some_and(|asked| asked != hash) {
            return Err(Lie::OtherBlock);
        }
        if !(self.query.from..=self.query.to).contains(&log.block_number) {
            return Err(Lie::Range);
        }
        if self.facts.blocks.last().is_some_and(|last| last.hash == hash) {
            return Err(Lie::Torn);
        }
        self.facts.blocks.push(BlockId { number: log.block_number, hash });
        Ok(())
    }
}

fn ended(mut cursor: Cursor<'_>) -> Result<Option<u64>, Lie> {
    cursor.end().map(|()| None).ok_or(Lie::Shape)
}

fn judge_topic(topic: &[u8; 64], asked: Option<&Choice<B256>>) -> Result<(), Lie> {
    match asked {
        Some(asked) if !asked.0.is_empty() => {
            let topic = hex::fixed::<32>(topic).map(B256::from).ok_or(Lie::Shape)?;
            asked.fits(&topic).then_some(()).ok_or(Lie::Filter)
        }
        _ => hex::is_hex(topic).then_some(()).ok_or(Lie::Shape),
    }
}

/// Whether a log can be the next one in its block.
#[inline]
fn follows(previous: &RawLog<'_>, log: &RawLog<'_>) -> Result<(), Lie> {
    if !same_digits(previous.block_hash, log.block_hash) {
        return Err(Lie::Torn);
    }
    if log.index <= previous.index || log.transaction_index < previous.transaction_index {
        return Err(Lie::Order);
    }
    let same_hash = same_digits(previous.transaction_hash, log.transaction_hash);
    if same_hash != (log.transaction_index == previous.transaction_index) {
        return Err(Lie::Torn);
    }
    (same_hash || hex::is_hex(log.transaction_hash)).then_some(()).ok_or(Lie::Shape)
}
