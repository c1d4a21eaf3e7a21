//! Logs in the form in which common nodes write them: geth, reth, anvil and Chaingate itself.
//!
//! The members are expected in a fixed order. Anything else is left to the general reader. The text between the data and the index is
//! the same in all logs of a transaction, and is compared as a whole.

use super::RawLog;
use crate::raw::cursor::Cursor;

/// Reads logs of the usual form, and remembers the transaction of the last one.
#[derive(Clone, Debug)]
pub(super) struct UsualReader<'a> {
    /// The text from the end of the data to the value of the index. It is empty if the last log was not read here.
    middle: &'a [u8],
    transaction: LogTransaction<'a>,
}

/// The members that all logs of a transaction share.
#[derive(Clone, Copy, Debug)]
struct LogTransaction<'a> {
    block_number: u64,
    block_hash: &'a [u8; 64],
    hash: &'a [u8; 64],
    index: u64,
}

impl<'a> LogTransaction<'a> {
    fn of(log: &RawLog<'a>) -> Self {
        Self {
            block_number: log.block_number,
            block_hash: log.block_hash,
            hash: log.transaction_hash,
            index: log.transaction_index,
        }
    }

    #[inline]
    fn write(&self, log: &mut RawLog<'a>) {
        log.block_number = self.block_number;
        log.block_hash = self.block_hash;
        log.transaction_hash = self.hash;
        log.transaction_index = self.index;
    }
}

impl<'a> UsualReader<'a> {
    pub(super) fn new() -> Self {
        Self { middle: &[], transaction: LogTransaction::of(&RawLog::BLANK) }
    }

    /// Forgets the last log, because the general reader has read one after it.
    pub(super) fn forget(&mut self) {
        self.middle = &[];
    }

    /// Consumes a log. After `None`, cursor and log are in an unspecified state.
    #[inline]
    pub(super) fn read(&mut self, cursor: &mut Cursor<'a>, log: &mut RawLog<'a>) -> Option<()> {
        cursor.text(b"{\"address\":")?;
        log.address = cursor.fixed()?;
        cursor.text(b",\"topics\":")?;
        log.read_topics(cursor)?;
        cursor.text(b",\"data\":")?;
        log.data = cursor.data()?;
        log.is_next = !self.middle.is_empty() && cursor.skip_text(self.middle);
        if log.is_next {
            self.transaction.write(log);
        } else {
            let start = cursor.at();
            read_middle(log, cursor)?;
            (self.middle, self.transaction) = (cursor.since(start), LogTransaction::of(log));
        }
        log.index = cursor.quantity()?;
        log.removed = false;
        cursor.text(b",\"removed\":false}")
    }
}

/// Consumes the members of the transaction, and the name of the index.
#[inline]
fn read_middle<'a>(log: &mut RawLog<'a>, cursor: &mut Cursor<'a>) -> Option<()> {
    if cursor.literal(b",\"blockNumber\":") {
        read_as_geth(log, cursor)?;
    } else {
        read_as_reth(log, cursor)?;
    }
    cursor.text(b",\"logIndex\":")
}

#[inline]
fn read_as_geth<'a>(log: &mut RawLog<'a>, cursor: &mut Cursor<'a>) -> Option<()> {
    log.block_number = cursor.quantity()?;
    cursor.text(b",\"transactionHash\":")?;
    log.transaction_hash = cursor.fixed()?;
    cursor.text(b",\"transactionIndex\":")?;
    log.transaction_index = cursor.quantity()?;
    cursor.text(b",\"blockHash\":")?;
    log.block_hash = cursor.fixed()?;
    if cursor.literal(b",\"blockTimestamp\":") {
        cursor.quantity()?;
    }
    Some(())
}

/// Reads the members in the order of reth and anvil, which use the same library.
#[inline]
fn read_as_reth<'a>(log: &mut RawLog<'a>, cursor: &mut Cursor<'a>) -> Option<()> {
    cursor.text(b",\"blockHash\":")?;
    log.block_hash = cursor.fixed()?;
    cursor.text(b",\"blockNumber\":")?;
    log.block_number = cursor.quantity()?;
    if cursor.literal(b",\"blockTimestamp\":") {
        cursor.quantity()?;
    }
    cursor.text(b",\"transactionHash\":")?;
    log.transaction_hash = cursor.fixed()?;
    cursor.text(b",\"transactionIndex\":")?;
    log.transaction_index = cursor.quantity()?;
    Some(())
}
