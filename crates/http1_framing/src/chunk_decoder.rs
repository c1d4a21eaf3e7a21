//! Chunked bodies: `5\r\nhello\r\n0\r\n\r\n`.
//!
//! Extensions and trailers are ignored, but they are checked as strictly as a head, because a proxy may take a bare carriage
//! return in them for the end of a line.

use crate::FramingError;

/// Finds the data and the end of one chunked body, which may arrive in pieces.
///
/// The decoder reads only the lines. Data stays with its owner, who may read it from a socket directly to where it belongs.
#[derive(Debug)]
pub struct ChunkDecoder {
    position: ChunkPosition,
    /// Bytes of lines that count against the limit.
    line_bytes: usize,
    limit: LineLimit,
}

/// The most bytes of sizes, extensions, trailers and line ends, which are no data and are not limited with it.
#[derive(Clone, Copy, Debug)]
pub enum LineLimit {
    /// For all chunks and trailers of a body together.
    PerBody(usize),
    /// For each chunk, and for the last one together with the trailers. A body of many small chunks has no other limit than
    /// that of its data.
    PerChunk(usize),
}

/// The part of a body that follows the lines that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkStep {
    /// The rest of a line.
    Line,
    /// This many bytes of data, at least one.
    Data(u64),
    /// Nothing: the body is complete.
    End,
}

/// A position in a body.
#[derive(Clone, Copy, Debug)]
enum ChunkPosition {
    /// In the digits of a size; `None` before the first.
    Size(Option<u64>),
    /// After the semicolon that follows a size.
    ExtensionStart(u64),
    Extension(u64),
    /// After the carriage return of a line with a size.
    SizeEnd(u64),
    /// In front of this much data.
    Data(u64),
    /// In front of the line end after data.
    DataEnd,
    /// After the carriage return after data.
    DataLineEnd,
    /// At the start of a line after the last chunk.
    TrailerStart,
    TrailerName,
    TrailerValue,
    /// After the carriage return of a trailer.
    TrailerEnd,
    /// After the carriage return of the last, empty line.
    LastLineEnd,
    /// In a malformed line, which is refused at its end.
    Malformed,
    End,
}

impl ChunkDecoder {
    pub fn new(limit: LineLimit) -> Self {
        Self { position: ChunkPosition::Size(None), line_bytes: 0, limit }
    }

    /// Reads the lines at the start of `bytes`, which continue the lines read before. Returns how many bytes they have, and the
    /// part that follows them.
    pub fn read_lines(&mut self, bytes: &[u8]) -> Result<(usize, ChunkStep), FramingError> {
        let mut used = 0;
        loop {
            match self.position {
                ChunkPosition::Data(left) => return Ok((used, ChunkStep::Data(left))),
                ChunkPosition::End => return Ok((used, ChunkStep::End)),
                _ => {}
            }
            let Some(&byte) = bytes.get(used) else { return Ok((used, ChunkStep::Line)) };
            used += 1;
            self.count_line_byte()?;
            self.position = self.position.after(byte)?;
        }
    }

    /// Notes that `count` bytes of data were taken; no more than [`ChunkStep::Data`] has stated.
    pub fn take_data(&mut self, count: u64) {
        let ChunkPosition::Data(left) = self.position else { return };
        debug_assert!(count <= left, "data after the end of a chunk");
        self.position = match left.saturating_sub(count) {
            0 => ChunkPosition::DataEnd,
            left => ChunkPosition::Data(left),
        };
        if let LineLimit::PerChunk(_) = self.limit {
            self.line_bytes = 0;
        }
    }

    fn count_line_byte(&mut self) -> Result<(), FramingError> {
        let (LineLimit::PerBody(bytes_max) | LineLimit::PerChunk(bytes_max)) = self.limit;
        self.line_bytes += 1;
        if self.line_bytes > bytes_max { Err(FramingError::LinesTooLong) } else { Ok(()) }
    }
}

impl ChunkPosition {
    /// The position after one more byte of a line.
    fn after(self, byte: u8) -> Result<Self, FramingError> {
        Ok(match (self, byte) {
            (Self::Size(size), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => match with_digit(size, byte) {
                Some(size) => Self::Size(Some(size)),
                None => Self::Malformed,
            },
            (Self::Size(Some(size)), b';') => Self::ExtensionStart(size),
            (Self::ExtensionStart(size), b' ' | b'\t') => Self::ExtensionStart(size),
            (Self::ExtensionStart(size), _) if is_token_byte(byte) => Self::Extension(size),
            (Self::Extension(size), _) if is_value_byte(byte) => Self::Extension(size),
            (Self::Size(Some(size)) | Self::Extension(size), b'\r') => Self::SizeEnd(size),
            (Self::SizeEnd(0), b'\n') => Self::TrailerStart,
            (Self::SizeEnd(size), b'\n') => Self::Data(size),
            (Self::DataEnd, b'\r') => Self::DataLineEnd,
            (Self::DataLineEnd, b'\n') => Self::Size(None),
            // A line that begins with a space (folding) is malformed, because readers disagree on it.
            (Self::TrailerStart | Self::TrailerName, _) if is_token_byte(byte) => Self::TrailerName,
            (Self::TrailerName, b':') => Self::TrailerValue,
            (Self::TrailerValue, _) if is_value_byte(byte) => Self::TrailerValue,
            (Self::TrailerValue, b'\r') => Self::TrailerEnd,
            (Self::TrailerEnd, b'\n') => Self::TrailerStart,
            (Self::TrailerStart, b'\r') => Self::LastLineEnd,
            (Self::LastLineEnd, b'\n') => Self::End,
            (_, b'\n') => return Err(FramingError::Ambiguous),
            _ => Self::Malformed,
        })
    }
}

/// Appends a hexadecimal digit to a size; `None` if it becomes too large.
fn with_digit(size: Option<u64>, digit: u8) -> Option<u64> {
    let digit = char::from(digit).to_digit(16)?;
    size.unwrap_or(0).checked_mul(16)?.checked_add(digit.into())
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Any byte but control characters; a tab is allowed.
fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

#[cfg(test)]
mod tests;
