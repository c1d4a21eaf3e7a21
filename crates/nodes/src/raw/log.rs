//! One log, read without a tree.
//!
//! Nodes write the members of all their logs in the same order. A reader remembers the order of the last log and
//! compares the next name with the one it expects; only where that fails does it look the name up.

mod usual; // one log as common nodes write it

use alloy_primitives::{Address, B256, Bytes, Log, LogData};

use self::usual::UsualReader;
use super::cursor::Cursor;
use super::hex;

/// The EVM has LOG0 to LOG4.
const TOPICS_MAX: usize = 4;

/// The most members whose order is remembered. Logs have ten or eleven; names of further ones are looked up.
const PLACES: usize = 16;

/// A log as slices of the answer. Numbers are parsed; the digits of the rest are not checked.
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
    /// Whether the members of its transaction are written exactly as in the log before.
    pub(super) is_next: bool,
}

impl<'a> RawLog<'a> {
    pub(super) const BLANK: Self = Self {
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

    /// Whether its digits are valid. Parts that are equal to those of the log before are not checked again, and hashes are checked by
    /// those who compare them.
    pub(super) fn has_digits(&self, previous: Option<&Self>) -> bool {
        let judged = previous.map_or(&[][..], Self::topics);
        let topics = self.topics().iter().enumerate();
        (previous.is_some_and(|previous| previous.address == self.address) || hex::is_hex(self.address))
            && topics
                .into_iter()
                .all(|(place, topic)| judged.get(place) == Some(topic) || hex::is_hex(*topic))
            && hex::is_hex(self.data)
    }

    /// The log as receipts roots contain it.
    pub(super) fn decode(&self) -> Option<Log> {
        let address = Address::from(hex::fixed::<20>(self.address)?);
        let topics = self.topics().iter().map(|topic| hex::fixed::<32>(*topic).map(B256::from));
        let data = hex::is_hex(self.data).then(|| const_hex::decode(self.data).ok())??;
        let data = LogData::new(topics.collect::<Option<_>>()?, Bytes::from(data))?;
        Some(Log { address, data })
    }

    fn read(&mut self, member: LogMember, cursor: &mut Cursor<'a>) -> Option<()> {
        match member {
            LogMember::Address => self.address = cursor.fixed()?,
            LogMember::Topics => self.read_topics(cursor)?,
            LogMember::Data => self.data = cursor.data()?,
            LogMember::BlockNumber => self.block_number = cursor.quantity()?,
            LogMember::BlockHash => self.block_hash = cursor.fixed()?,
            LogMember::TransactionHash => self.transaction_hash = cursor.fixed()?,
            LogMember::TransactionIndex => self.transaction_index = cursor.quantity()?,
            LogMember::LogIndex => self.index = cursor.quantity()?,
            LogMember::Removed => self.removed = cursor.boolean()?,
            LogMember::BlockTimestamp => cursor.skip_quantity()?,
            LogMember::Other => cursor.skip()?,
        }
        Some(())
    }

    #[inline]
    pub(super) fn read_topics(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        self.topic_count = 0;
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
enum LogMember {
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
    /// A member that nodes have added.
    Other,
}

impl LogMember {
    /// The members that a log must have.
    const REQUIRED: u16 = (1 << Self::Removed as u16) - 1;

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

    /// Its bit in the set of members that were seen. A member that occurs twice is refused, because the caller might read the other one.
    fn note(self, seen: &mut u16) -> Option<()> {
        let bit = 1 << self as u16;
        let repeated = *seen & bit != 0 && self != Self::Other;
        *seen |= bit;
        (!repeated).then_some(())
    }
}

/// Reads logs one after another.
#[derive(Clone, Debug)]
pub(super) struct LogReader<'a> {
    usual: UsualReader<'a>,
    order: [LogMember; PLACES],
}

impl<'a> LogReader<'a> {
    pub(super) fn new() -> Self {
        Self { usual: UsualReader::new(), order: [LogMember::Other; PLACES] }
    }

    /// Consumes a log into a buffer of the caller, because copying a log takes as long as reading it. `None` if it is not a log.
    #[inline]
    pub(super) fn read(&mut self, cursor: &mut Cursor<'a>, log: &mut RawLog<'a>) -> Option<()> {
        let start = cursor.at();
        if self.usual.read(cursor, log).is_some() {
            return Some(());
        }
        cursor.return_to(start);
        self.usual.forget();
        self.read_any(cursor, log)
    }

    /// Consumes a log whose members are in any order.
    pub(super) fn read_any(&mut self, cursor: &mut Cursor<'a>, log: &mut RawLog<'a>) -> Option<()> {
        cursor.expect(b'{')?;
        *log = RawLog::BLANK;
        let mut seen = 0;
        for place in 0.. {
            let member = self.member(place, cursor)?;
            member.note(&mut seen)?;
            log.read(member, cursor)?;
            if !cursor.take(b',') {
                break;
            }
        }
        cursor.expect(b'}')?;
        (seen & LogMember::REQUIRED == LogMember::REQUIRED).then_some(())
    }

    /// Consumes a list of logs, and checks their digits except those of hashes.
    pub(super) fn read_list(&mut self, cursor: &mut Cursor<'a>) -> Option<Vec<RawLog<'a>>> {
        cursor.expect(b'[')?;
        let mut logs: Vec<RawLog<'a>> = Vec::new();
        if cursor.take(b']') {
            return Some(logs);
        }
        loop {
            logs.push(RawLog::BLANK);
            let (log, before) = logs.split_last_mut()?;
            self.read(cursor, log)?;
            if !log.has_digits(before.last()) {
                return None;
            }
            if !cursor.take(b',') {
                cursor.expect(b']')?;
                return Some(logs);
            }
        }
    }

    #[inline]
    fn member(&mut self, place: usize, cursor: &mut Cursor<'_>) -> Option<LogMember> {
        match self.order.get(place) {
            Some(expected) if expected.comes_next(cursor) => Some(*expected),
            _ => self.learn(place, cursor),
        }
    }

    fn learn(&mut self, place: usize, cursor: &mut Cursor<'_>) -> Option<LogMember> {
        let member = LogMember::named(cursor.name()?);
        if let Some(remembered) = self.order.get_mut(place) {
            *remembered = member;
        }
        Some(member)
    }
}
