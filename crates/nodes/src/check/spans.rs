//! Where each log of an answer lies, so that answers can be cut, joined and sorted as bytes.

use std::ops::Range;

use super::cursor::Cursor;
use super::log::{LogReader, RawLog};

/// A log of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSpan {
    pub block: u64,
    /// Its place in the block.
    pub index: u64,
    /// The bytes of the log, without the comma behind it.
    pub bytes: Range<usize>,
}

/// The logs of an answer that was found sound. In any other they end at the first thing that is no log.
pub fn log_blocks(result: &[u8]) -> LogSpans<'_> {
    let mut cursor = Cursor::new(result);
    let ended = !cursor.take(b'[') || cursor.peek() == Some(b']');
    LogSpans { cursor, reader: LogReader::new(), ended }
}

/// The logs of an answer, in its order.
#[derive(Clone, Debug)]
pub struct LogSpans<'a> {
    cursor: Cursor<'a>,
    reader: LogReader<'a>,
    ended: bool,
}

impl Iterator for LogSpans<'_> {
    type Item = LogSpan;

    fn next(&mut self) -> Option<LogSpan> {
        if self.ended {
            return None;
        }
        self.ended = true;
        self.cursor.peek()?;
        let start = self.cursor.at();
        let mut log = RawLog::BLANK;
        self.reader.read(&mut self.cursor, &mut log)?;
        let bytes = start..self.cursor.at();
        self.ended = !self.cursor.take(b',');
        Some(LogSpan { block: log.block_number, index: log.index, bytes })
    }
}
