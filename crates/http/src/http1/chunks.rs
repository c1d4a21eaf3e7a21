//! The data of a chunked body, within a limit.

use http1_framing::{ChunkDecoder, ChunkStep, LineLimit};

use crate::policy::CHUNK_LINES_BYTES_MAX;
use crate::refused::Refused;

/// Joins the chunks of one body, which may arrive in pieces.
#[derive(Debug)]
pub(super) struct ChunkedBody {
    decoder: ChunkDecoder,
    data: Vec<u8>,
    is_whole: bool,
}

impl ChunkedBody {
    pub(super) fn new() -> Self {
        let decoder = ChunkDecoder::new(LineLimit::PerBody(CHUNK_LINES_BYTES_MAX));
        Self { decoder, data: Vec::new(), is_whole: false }
    }

    /// Reads received bytes. Bytes after the end of the body are ignored, because no request may follow it.
    pub(super) fn feed(&mut self, mut bytes: &[u8], bytes_max: usize) -> Result<(), Refused> {
        loop {
            let (used, next) = self.decoder.read_lines(bytes)?;
            bytes = &bytes[used..];
            match next {
                // The size is known before the data, which a caller may send slowly, or not at all.
                ChunkStep::Data(left) if left > (bytes_max - self.data.len()) as u64 => {
                    return Err(Refused::TooLarge);
                }
                ChunkStep::Data(left) if !bytes.is_empty() => bytes = self.add(left, bytes),
                ChunkStep::Data(_) | ChunkStep::Line => return Ok(()),
                ChunkStep::End => {
                    self.is_whole = true;
                    return Ok(());
                }
            }
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The capacity that the buffer may get when `more` bytes are added: a vector at least doubles.
    pub(super) fn capacity_for(&self, more: usize) -> usize {
        match self.data.len() + more {
            needed if needed <= self.data.capacity() => self.data.capacity(),
            needed => needed.max(2 * self.data.capacity()),
        }
    }

    pub(super) fn into_data(self) -> Vec<u8> {
        self.data
    }

    /// Adds the data of a chunk of which `left` bytes are missing; returns the bytes after it.
    fn add<'a>(&mut self, left: u64, bytes: &'a [u8]) -> &'a [u8] {
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let (data, rest) = bytes.split_at(here);
        self.data.extend_from_slice(data);
        self.decoder.take_data(here as u64);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `text` at once and byte by byte; the results must be equal.
    fn read(text: &str) -> Result<Option<String>, Refused> {
        let fed = |size: usize| {
            let mut chunks = ChunkedBody::new();
            text.as_bytes().chunks(size).try_for_each(|piece| chunks.feed(piece, 20))?;
            let whole = chunks.is_whole();
            Ok(whole.then(|| String::from_utf8(chunks.into_data()).unwrap()))
        };
        let whole = fed(text.len().max(1));
        assert_eq!(whole, fed(1), "{text:?}");
        whole
    }

    #[test]
    fn chunks_are_joined() {
        assert_eq!(read("5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n"), Ok(Some("hello!".into())));
        assert_eq!(read("A\r\n0123456789\r\n0\r\nx: y\r\n\r\nbehind"), Ok(Some("0123456789".into())));
        assert_eq!(read("5\r\nhel"), Ok(None));
        assert_eq!(read("5\nhello\r\n"), Err(Refused::Ambiguous));
    }

    /// A chunk of any size was waited for until more data than the limit had arrived.
    #[test]
    fn a_size_above_the_limit_is_refused_before_any_data() {
        assert_eq!(read("14\r\n"), Ok(None));
        for size in ["15", "15;a=b", "ffffffffffffffff"] {
            assert_eq!(read(&format!("{size}\r\n")), Err(Refused::TooLarge), "{size}");
        }
        assert_eq!(read("10000000000000000\r\n"), Err(Refused::Ambiguous), "readers could overflow");
        assert_eq!(read("a\r\n0123456789\r\nb\r\n"), Err(Refused::TooLarge));
    }

    #[test]
    fn data_and_lines_are_limited() {
        assert_eq!(read("15\r\n012345678901234567890\r\n"), Err(Refused::TooLarge));
        assert_eq!(read("14\r\n01234567890123456789\r\n1\r\n"), Err(Refused::TooLarge));
        assert_eq!(read(&format!("1;{}\r\n", "x".repeat(CHUNK_LINES_BYTES_MAX))), Err(Refused::TooLarge));
        assert_eq!(
            read(&format!("0\r\n{}", "x: y\r\n".repeat(CHUNK_LINES_BYTES_MAX / 6 + 1))),
            Err(Refused::TooLarge)
        );
    }
}
