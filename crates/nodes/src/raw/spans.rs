//! The byte range of each log of an answer, so that answers can be cut, joined and sorted as bytes.

use std::ops::Range;

use super::cursor::Cursor;
use super::hex;
use super::log::{LogReader, RawLog};
use crate::BlockId;

/// A log of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSpan {
    pub block: BlockId,
    /// Its position in the block.
    pub index: u64,
    /// The bytes of the log, without the comma after it.
    pub bytes: Range<usize>,
}

/// All logs of an answer, in order. `None` if it is not a list of logs, or one of them was removed.
pub fn read_logs(result: &[u8]) -> Option<Vec<LogSpan>> {
    let (mut cursor, mut reader) = (Cursor::new(result), LogReader::new());
    let mut logs = Vec::new();
    cursor.expect(b'[')?;
    if !cursor.take(b']') {
        logs.push(read(&mut cursor, &mut reader)?);
        while cursor.take(b',') {
            logs.push(read(&mut cursor, &mut reader)?);
        }
        cursor.expect(b']')?;
    }
    cursor.end().map(|()| logs)
}

fn read<'a>(cursor: &mut Cursor<'a>, reader: &mut LogReader<'a>) -> Option<LogSpan> {
    cursor.peek()?;
    let start = cursor.at();
    let mut log = RawLog::BLANK;
    reader.read(cursor, &mut log)?;
    if log.removed || !log.has_digits(None) || !hex::is_hex(log.transaction_hash) {
        return None;
    }
    let block = BlockId { number: log.block_number, hash: hex::fixed(log.block_hash)?.into() };
    Some(LogSpan { block, index: log.index, bytes: start..cursor.at() })
}
