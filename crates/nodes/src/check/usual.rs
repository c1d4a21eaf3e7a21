//! Logs in the form in which common nodes write them: geth, reth, anvil and Chaingate itself.
//!
//! Straight on from name to name without a look at what else might come; whatever it does not expect, it leaves to the
//! reader that takes anything. What stands between the data and the index is the same in all logs of a transaction, and is
//! compared as a whole.

use super::cursor::Cursor;
use super::log::RawLog;

/// Remembers what the last log said of its transaction.
#[derive(Clone, Debug)]
pub(super) struct UsualReader<'a> {
    /// From behind the data up to the value of the index; empty if the last log was not read here.
    middle: &'a [u8],
    log: RawLog<'a>,
}

impl<'a> UsualReader<'a> {
    pub(super) fn new() -> Self {
        Self { middle: &[], log: RawLog::BLANK }
    }

    /// The next log is not the next after the one that was read here.
    pub(super) fn forget(&mut self) {
        self.middle = &[];
    }

    /// Consumes a log. After `None` the cursor is anywhere.
    #[inline]
    pub(super) fn read(&mut self, cursor: &mut Cursor<'a>) -> Option<RawLog<'a>> {
        cursor.text(b"{\"address\":")?;
        let mut log = RawLog::BLANK;
        log.address = cursor.fixed()?;
        cursor.text(b",\"topics\":")?;
        log.read_topics(cursor)?;
        cursor.text(b",\"data\":")?;
        log.data = cursor.data()?;
        if !self.middle.is_empty() && cursor.skip_text(self.middle) {
            log.follow(&self.log);
        } else {
            let start = cursor.at();
            read_middle(&mut log, cursor)?;
            (self.middle, self.log) = (cursor.since(start), log);
        }
        log.index = cursor.quantity()?;
        cursor.text(b",\"removed\":false}")?;
        Some(log)
    }
}

/// Consumes what a log says of its transaction, and the name of the index.
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

/// So does anvil, both by the same library.
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
