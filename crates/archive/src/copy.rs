//! Copies of a file that is in use: the rows of one snapshot are sent through a stream, and a new file is made of them.
//!
//! Rows are sent and not pages. While a snapshot is held, redb uses no page of its tables again, but those of redb's own tables
//! (savepoints, free pages) are overwritten by the next commit, so that a file of copied pages would need what is inside of redb.
//! A file that is made of rows has no free pages, and every sector that it needs was compared with its checksum.
//!
//! The writer of the file does not wait. Until the last row is sent, the pages that it replaces are not used again, and the file
//! grows by them.
//!
//! The stream: format version of the file (4 bytes), number of rows (8); then for each table its rows, each a byte
//! [`ROW`], the lengths of key and value (4 bytes each), key and value; and a byte [`END_OF_TABLE`]. Numbers are big-endian. A byte
//! [`FAILED`] with a message after its length (4 bytes) may come instead of any row, as the last item.

mod receive; // stream → file
mod send; // snapshot → stream

pub(crate) use receive::receive;
pub use receive::{CopyProgress, ReceiveError};
pub use send::SendError;
pub(crate) use send::{rows_of, send};

const ROW: u8 = 1;
const END_OF_TABLE: u8 = 2;
const FAILED: u8 = 3;

/// Bytes of a key or a value. The largest rows are the raw records of a block and the data of a log.
const ROW_PART_BYTES_MAX: u32 = 1 << 30;

/// Bytes that are read or written at once.
const BUFFER_BYTES: usize = 256 << 10;
