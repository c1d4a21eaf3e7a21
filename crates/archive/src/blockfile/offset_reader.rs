//! A reader that knows its offset in a file of known size.

use std::io::{self, Read, Seek};

/// Reads a file through one buffer that all reads share.
#[derive(Debug)]
pub(super) struct OffsetReader<R> {
    reader: R,
    offset: u64,
    bytes_total: u64,
    buffer: Vec<u8>,
}

impl<R: Read + Seek> OffsetReader<R> {
    pub(super) fn new(reader: R, bytes_total: u64) -> Self {
        Self { reader, offset: 0, bytes_total, buffer: Vec::new() }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    pub(super) fn remaining(&self) -> u64 {
        self.bytes_total.saturating_sub(self.offset)
    }

    /// The next bytes, at most `bytes` of them, without moving on.
    pub(super) fn peek(&mut self, bytes: usize) -> io::Result<&[u8]> {
        self.buffer.clear();
        let read = self.reader.by_ref().take(bytes as u64).read_to_end(&mut self.buffer)?;
        self.reader.seek_relative(-(read as i64))?;
        Ok(&self.buffer)
    }

    /// The next bytes, in place of whatever was read before. The caller has bounded their number.
    pub(super) fn read(&mut self, bytes: u64) -> io::Result<&[u8]> {
        self.buffer.clear();
        self.read_more(bytes)
    }

    /// All that was read since [`read`](Self::read), and as many bytes more.
    pub(super) fn read_more(&mut self, bytes: u64) -> io::Result<&[u8]> {
        let read = self.reader.by_ref().take(bytes).read_to_end(&mut self.buffer)?;
        self.offset += read as u64;
        // Callers compare sizes first, so this happens only if the file shrinks while it is read.
        if (read as u64) < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(&self.buffer) }
    }

    pub(super) fn skip(&mut self, bytes: u32) -> io::Result<()> {
        self.reader.seek_relative(i64::from(bytes))?;
        self.offset += u64::from(bytes);
        Ok(())
    }
}
