//! One log, read without a tree.
//!
//! Nodes write the members of all their logs in the same order. A reader remembers the order of the last log and
//! compares the next name with the one it expects; only where that fails does it look the name up. What stands between
//! the data and the index is the same in all logs of a transaction, and is compared as a whole.

use alloy_primitives::{Address, B256, Bytes, Log, LogData};

use super::cursor::Cursor;
use super::hex;

/// The EVM has LOG0 to LOG4.
pub(super) const TOPICS_MAX: usize = 4;

/// Members whose place is remembered. Logs have ten or eleven of them; those further on are looked up.
const PLACES: usize = 16;

/// A log as slices of the answer. Numbers are read; digits of the rest are yet to be seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawLog<'a> {
    pub(super) address: &'a [u8; 40],
    topics: [&'a [u8; 64]; TOPICS_MAX],
    topic_count: usize,
    pub(super) data: &'a [u8],
    pub(super) block_number: u64,
    pub(super) block_hash: &'a [u8; 64],
    pub(super) transaction_hash: &'a [u8; 64],
    pub(super) transaction_index: u64,
    pub(super) index: u64,
    pub(super) removed: bool,
    /// Its transaction, with all that is said of it, is written exactly as in the log that was read before.
    pub(super) is_next: bool,
}

impl<'a> RawLog<'a> {
    const BLANK: Self = Self {
        address: &[b'0'; 40],
        topics: [&[b'0'; 64]; TOPICS_MAX],
        topic_count: 0,
        data: &[],
        block_number: 0,
        block_hash: &[b'0'; 64],
        transaction_hash: &[b'0'; 64],
        transaction_index: 0,
        index: 0,
        removed: false,
        is_next: false,
    };

    #[inline]
    pub(super) fn topics(&self) -> &[&'a [u8; 64]] {
        &self.topics[..self.topic_count]
    }

    /// Whether its digits are digits, as far as those of the log before do not tell. Hashes are left to those who
    /// compare them.
    fn has_digits(&self, previous: Option<&Self>) -> bool {
        let judged = previous.map_or(&[][..], Self::topics);
        let topics = self.topics().iter().enumerate();
        (previous.is_some_and(|previous| previous.address == self.address) || hex::is_hex(self.address))
            && topics
                .into_iter()
                .all(|(place, topic)| judged.get(place) == Some(topic) || hex::is_hex(*topic))
            && hex::is_hex(self.data)
    }

    /// What of the log goes into roots.
    pub(super) fn decode(&self) -> Option<Log> {
        let address = Address::from(hex::fixed::<20>(self.address)?);
        let topics = self.topics().iter().map(|topic| hex::fixed::<32>(*topic).map(B256::from));
        let data = hex::is_hex(self.data).then(|| const_hex::decode(self.data).ok())??;
        let data = LogData::new(topics.collect::<Option<_>>()?, Bytes::from(data))?;
        Some(Log { address, data })
    }

    fn read(&mut self, member: Member, cursor: &mut Cursor<'a>) -> Option<()> {
        match member {
            Member::Address => self.address = cursor.fixed()?,
            Member::Topics => self.read_topics(cursor)?,
            Member::Data => self.data = cursor.data()?,
            Member::BlockNumber => self.block_number = cursor.quantity()?,
            Member::BlockHash => self.block_hash = cursor.fixed()?,
            Member::TransactionHash => self.transaction_hash = cursor.fixed()?,
            Member::TransactionIndex => self.transaction_index = cursor.quantity()?,
            Member::LogIndex => self.index = cursor.quantity()?,
            Member::Removed => self.removed = cursor.boolean()?,
            Member::BlockTimestamp => cursor.skip_quantity()?,
            Member::Other => cursor.skip()?,
        }
        Some(())
    }

    fn read_topics(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        cursor.expect(b'[')?;
        if cursor.take(b']') {
            return Some(());
        }
        for place in 0..TOPICS_MAX {
            self.topics[place] = cursor.fixed()?;
            self.topic_count = place + 1;
            if !cursor.take(b',') {
                return cursor.expect(b']');
            }
        }
        None
    }
}

/// The members of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Address,
    Topics,
    Data,
    BlockNumber,
    BlockHash,
    TransactionHash,
    TransactionIndex,
    LogIndex,
    Removed,
    BlockTimestamp,
    /// Nodes add members of their own.
    Other,
}

impl Member {
    /// Those without which a log says too little.
    const REQUIRED: u16 = (1 << Self::Removed as u16) - 1;

    /// Those that come first in the logs of all common nodes.
    const FIRST: u16 = Self::Address.bit() | Self::Topics.bit() | Self::Data.bit();

    const fn bit(self) -> u16 {
        1 << self as u16
    }

    fn named(name: &[u8]) -> Self {
        match name {
            b"address" => Self::Address,
            b"topics" => Self::Topics,
            b"data" => Self::Data,
            b"blockNumber" => Self::BlockNumber,
            b"blockHash" => Self::BlockHash,
            b"transactionHash" => Self::TransactionHash,
            b"transactionIndex" => Self::TransactionIndex,
            b"logIndex" => Self::LogIndex,
            b"removed" => Self::Removed,
            b"blockTimestamp" => Self::BlockTimestamp,
            _ => Self::Other,
        }
    }

    /// Consumes the name and the colon if they come next. Constants, so that each is a compare of fixed size.
    #[inline(always)]
    fn comes_next(self, cursor: &mut Cursor<'_>) -> bool {
        match self {
            Self::Address => cursor.literal(b"\"address\":"),
            Self::Topics => cursor.literal(b"\"topics\":"),
            Self::Data => cursor.literal(b"\"data\":"),
            Self::BlockNumber => cursor.literal(b"\"blockNumber\":"),
            Self::BlockHash => cursor.literal(b"\"blockHash\":"),
            Self::TransactionHash => cursor.literal(b"\"transactionHash\":"),
            Self::TransactionIndex => cursor.literal(b"\"transactionIndex\":"),
            Self::LogIndex => cursor.literal(b"\"logIndex\":"),
            Self::Removed => cursor.literal(b"\"removed\":"),
            Self::BlockTimestamp => cursor.literal(b"\"blockTimestamp\":"),
            Self::Other => false,
        }
    }

    /// Its bit among those seen. One that occurs twice is a trap: we might judge the one and the caller read the
    /// other.
    fn note(self, seen: &mut u16) -> Option<()> {
        let repeated = *seen & self.bit() != 0 && self != Self::Other;
        *seen |= self.bit();
        (!repeated).then_some(())
    }
}

/// Reads logs one after another.
#[derive(Clone, Debug)]
pub(super) struct LogReader<'a> {
    order: [Member; PLACES],
    middle: Middle<'a>,
    /// Whether the middle is that of the last log.
    has_middle: bool,
}

/// What stands between the data and the index of the last log.
#[derive(Clone, Debug)]
struct Middle<'a> {
    /// From the quote behind the data up to the value of the index.
    text: &'a [u8],
    log: RawLog<'a>,
    /// Up to the data and the index.
    seen: u16,
    place: usize,
}

/// A log that is being read.
struct Draft<'a> {
    log: RawLog<'a>,
    seen: u16,
    place: usize,
    /// Where the middle begins, if the log begins as usual.
    middle_at: Option<usize>,
}

impl<'a> LogReader<'a> {
    pub(super) fn new() -> Self {
        let middle = Middle { text: &[], log: RawLog::BLANK, seen: 0, place: 0 };
        Self { order: [Member::Other; PLACES], middle, has_middle: false }
    }

    /// Consumes a log. `None` if it is none.
    #[inline]
    pub(super) fn read(&mut self, cursor: &mut Cursor<'a>) -> Option<RawLog<'a>> {
        cursor.expect(b'{')?;
        let mut draft = Draft { log: RawLog::BLANK, seen: 0, place: 0, middle_at: None };
        let had_middle = std::mem::take(&mut self.has_middle);
        loop {
            let member = self.member(draft.place, cursor)?;
            if member == Member::LogIndex {
                self.remember_middle(&draft, cursor);
            }
            draft.read(member, cursor)?;
            if draft.seen == Member::FIRST {
                draft.middle_at = Some(cursor.at());
                if had_middle && cursor.skip_text(self.middle.text) {
                    self.take_middle(&mut draft);
                    draft.read(Member::LogIndex, cursor)?;
                }
            }
            if !cursor.take(b',') {
                break;
            }
        }
        cursor.expect(b'}')?;
        (draft.seen & Member::REQUIRED == Member::REQUIRED).then_some(draft.log)
    }

    /// Keeps what stands before the index, if it is all that a log says of its transaction.
    #[inline]
    fn remember_middle(&mut self, draft: &Draft<'a>, cursor: &Cursor<'a>) {
        let is_all = (draft.seen | Member::LogIndex.bit()) & Member::REQUIRED == Member::REQUIRED;
        if let Some(start) = draft.middle_at.filter(|_| is_all) {
            let text = cursor.since(start);
            self.middle = Middle { text, log: draft.log, seen: draft.seen, place: draft.place };
            self.has_middle = true;
        }
    }

    /// Takes over what the log before said of its transaction.
    #[inline]
    fn take_middle(&mut self, draft: &mut Draft<'a>) {
        let RawLog { address, topics, topic_count, data, .. } = draft.log;
        draft.log = RawLog { address, topics, topic_count, data, is_next: true, ..self.middle.log };
        (draft.seen, draft.place) = (self.middle.seen, self.middle.place);
        self.has_middle = true;
    }

    /// Consumes a list of logs, whose digits are digits but for those of the hashes.
    pub(super) fn read_list(&mut self, cursor: &mut Cursor<'a>) -> Option<Vec<RawLog<'a>>> {
        cursor.expect(b'[')?;
        let mut logs: Vec<RawLog<'a>> = Vec::new();
        if cursor.take(b']') {
            return Some(logs);
        }
        loop {
            let log = self.read(cursor)?;
            if !log.has_digits(logs.last()) {
                return None;
            }
            logs.push(log);
            if !cursor.take(b',') {
                cursor.expect(b']')?;
                return Some(logs);
            }
        }
    }

    #[inline]
    fn member(&mut self, place: usize, cursor: &mut Cursor<'_>) -> Option<Member> {
        match self.order.get(place) {
            Some(expected) if expected.comes_next(cursor) => Some(*expected),
            _ => self.learn(place, cursor),
        }
    }

    fn learn(&mut self, place: usize, cursor: &mut Cursor<'_>) -> Option<Member> {
        let member = Member::named(cursor.name()?);
        if let Some(remembered) = self.order.get_mut(place) {
            *remembered = member;
        }
        Some(member)
    }
}

impl<'a> Draft<'a> {
    /// Consumes the value of a member.
    #[inline]
    fn read(&mut self, member: Member, cursor: &mut Cursor<'a>) -> Option<()> {
        self.place += 1;
        member.note(&mut self.seen)?;
        self.log.read(member, cursor)
    }
}

/// Whether two hashes are the same, whatever the case of their digits.
#[inline]
pub(super) fn same_digits(one: &[u8; 64], other: &[u8; 64]) -> bool {
    one == other || one.eq_ignore_ascii_case(other)
}
