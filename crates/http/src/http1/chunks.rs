//! Chunked bodies: `5\r\nhello\r\n0\r\n\r\n`.
//!
//! Extensions and trailers are ignored, but they are checked as strictly as a head, because a proxy may take a bare carriage
//! return in them for the end of a line.

use crate::refused::Refused;

/// Reads one chunked body, which may arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct ChunkedBody {
    at: ChunkPosition,
    whole: Vec<u8>,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// Bytes of all lines so far.
    line_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkPosition {
    #[default]
    Size,
    Data {
        left: u64,
    },
    /// The line end after the data of a chunk.
    DataEnd,
    /// Lines after the last chunk.
    Trailers,
    End,
}

/// Limit on sizes, extensions and trailers of a body, which do not count towards the limit on bodies.
const LINE_BYTES_MAX: usize = 64 << 10;

impl ChunkedBody {
    /// Reads received bytes. Bytes after the end of the body are ignored, because no request may follow it.
    pub(super) fn feed(&mut self, mut bytes: &[u8], bytes_max: usize) -> Result<(), Refused> {
        while !bytes.is_empty() && !self.is_whole() {
            bytes = match self.at {
                ChunkPosition::Data { left } => self.data(left, bytes, bytes_max)?,
                _ => self.line(bytes)?,
            };
        }
        Ok(())
    }

    pub(super) fn is_whole(&self) -> bool {
        self.at == ChunkPosition::End
    }

    /// The capacity that the buffer may get when `more` bytes are added: a vector at least doubles.
    pub(super) fn capacity_for(&self, more: usize) -> usize {
        match self.whole.len() + more {
            needed if needed <= self.whole.capacity() => self.whole.capacity(),
            needed => needed.max(2 * self.whole.capacity()),
        }
    }

    pub(super) fn into_whole(self) -> Vec<u8> {
        self.whole
    }

    fn data<'a>(&mut self, left: u64, bytes: &'a [u8], bytes_max: usize) -> Result<&'a [u8], Refused> {
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let (data, rest) = bytes.split_at(here);
        if self.whole.len() + data.len() > bytes_max {
            return Err(Refused::TooLarge);
        }
        self.whole.extend_from_slice(data);
        let left = left - here as u64;
        self.at = if left == 0 { ChunkPosition::DataEnd } else { ChunkPosition::Data { left } };
        Ok(rest)
    }

    /// Reads a line or a part of one; returns the bytes after it.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Refused> {
        let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
        let (line, rest) = bytes.split_at(end);
        self.line_bytes += line.len();
        if self.line_bytes > LINE_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        self.line.extend_from_slice(line);
        if line.ends_with(b"\n") {
            let whole = std::mem::take(&mut self.line);
            self.at = self.after(&whole)?;
        }
        Ok(rest)
    }

    /// The position after a line.
    fn after(&self, line: &[u8]) -> Result<ChunkPosition, Refused> {
        let text = line.strip_suffix(b"\r\n").ok_or(Refused::Ambiguous)?;
        match self.at {
            ChunkPosition::Size => match size(text).ok_or(Refused::Ambiguous)? {
                0 => Ok(ChunkPosition::Trailers),
                left => Ok(ChunkPosition::Data { left }),
            },
            ChunkPosition::DataEnd if text.is_empty() => Ok(ChunkPosition::Size),
            ChunkPosition::DataEnd => Err(Refused::Ambiguous),
            _ if text.is_empty() => Ok(ChunkPosition::End),
            _ if is_field_line(text) => Ok(ChunkPosition::Trailers),
            _ => Err(Refused::Ambiguous),
        }
    }
}

/// Parses the size of a chunk. Stricter than `httparse`, which reads a line without digits as zero.
fn size(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(text.len());
    let (digits, extensions) = text.split_at(end);
    if digits.is_empty() || !are_extensions(extensions) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Whether `text` is empty, or a semicolon, a name and visible characters.
fn are_extensions(text: &[u8]) -> bool {
    match text.split_first() {
        None => true,
        Some((b';', rest)) => {
            let named = rest.trim_ascii_start().first().is_some_and(|&byte| is_token_byte(byte));
            named && rest.iter().all(|&byte| is_value_byte(byte))
        }
        Some(_) => false,
    }
}

/// Whether `text` is a name, a colon and a value. A line that begins with a space (folding) is refused, because readers
/// disagree on it.
fn is_field_line(text: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', text) else { return false };
    let (name, value) = text.split_at(colon);
    !name.is_empty()
        && name.iter().all(|&byte| is_token_byte(byte))
        && value.iter().all(|&byte| is_value_byte(byte))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Any byte but control characters; a tab is allowed.
fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `text` at once and byte by byte; the results must be equal.
    fn read(text: &str) -> Result<Option<String>, Refused> {
        let fed = |size: usize| {
            let mut chunks = ChunkedBody::default();
            text.as_bytes().chunks(size).try_for_each(|piece| chunks.feed(piece, 20))?;
            let whole = chunks.is_whole();
            Ok(whole.then(|| String::from_utf8(chunks.into_whole()).unwrap()))
        };
        let whole = fed(text.len().max(1));
        assert_eq!(whole, fed(1), "{text:?}");
        whole
    }

    #[test]
    fn chunks_are_joined() {
        assert_eq!(read("5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n"), Ok(Some("hello!".into())));
        assert_eq!(read("A\r\n0123456789\r\n0\r\nx: y\r\n\r\nbehind"), Ok(Some("0123456789".into())));
        assert_eq!(read("0\r\n\r\n"), Ok(Some(String::new())));
        for part in ["", "5", "5\r\nhel", "5\r\nhello\r\n", "0\r\n", "0\r\nx: y\r\n"] {
            assert_eq!(read(part), Ok(None), "{part:?}");
        }
    }

    #[test]
    fn ambiguous_chunks_are_refused() {
        for text in [
            "5\nhello\r\n",
            "5\r\nhello\n",
            "5\r\nhello!\r\n",
            "-1\r\n",
            "0x5\r\nhello\r\n",
            " \r\n",
            "\r\n",
            "11111111111111111\r\n",
        ] {
            assert_eq!(read(text), Err(Refused::Ambiguous), "{text:?}");
        }
    }

    /// Extensions and trailers were skipped up to the next line feed. Proxies that take a bare carriage return for the end of
    /// a line, or fold lines, read other chunks and other headers in them.
    #[test]
    fn extensions_and_trailers_are_checked_as_strictly_as_a_head() {
        for text in [
            "5;a\rb\r\n",
            "5;\0\r\n",
            "5; \x01=2\r\n",
            "5;\r\n",
            "5; ;a\r\n",
            "5 a\r\n",
            "5\t\r\n",
            "5;a\x7f\r\n",
        ] {
            assert_eq!(read(text), Err(Refused::Ambiguous), "{text:?}");
        }
        for trailer in [
            "no colon",
            " folded: x",
            "\tfolded: x",
            ": no name",
            "a b: c",
            "a : b",
            "a: b\rc: d",
            "a: \0",
            "a\0: b",
            "\r",
        ] {
            let text = format!("0\r\na: b\r\n{trailer}\r\n\r\n");
            assert_eq!(read(&text), Err(Refused::Ambiguous), "{text:?}");
        }
        for text in ["0;a\r\n\r\n", "0; a=\"x y\";b=1\r\n\r\n", "0\r\nX-Sum: \ta b\r\nempty:\r\n\r\n"] {
            assert_eq!(read(text), Ok(Some(String::new())), "{text:?}");
        }
    }

    #[test]
    fn data_and_lines_are_limited() {
        assert_eq!(read("15\r\n012345678901234567890\r\n"), Err(Refused::TooLarge));
        assert_eq!(read(&format!("1;{}\r\n", "x".repeat(LINE_BYTES_MAX))), Err(Refused::TooLarge));
        assert_eq!(
            read(&format!("0\r\n{}", "x: y\r\n".repeat(LINE_BYTES_MAX / 6 + 1))),
            Err(Refused::TooLarge)
        );
    }
}
