//! Bodies in chunks: `5\r\nhello\r\n0\r\n\r\n`.
//!
//! Extensions and trailers have no effect, but they are checked as strictly as a head: a reader in front of this one may
//! take a bare carriage return in them for the end of a line.

use crate::refused::Refused;

/// The reader of one such body, which may come in pieces.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    at: At,
    whole: Vec<u8>,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// Bytes of lines so far.
    line_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Size,
    Data {
        left: u64,
    },
    /// The line end behind a chunk's data.
    DataEnd,
    /// Lines behind the last chunk. Their fields are ignored.
    Trailers,
    End,
}

/// Sizes with their extensions, and trailers. Nobody needs more; without a limit, they would be a body without one.
const LINE_BYTES_MAX: usize = 64 << 10;

impl Chunks {
    /// Takes what came in. Whatever is behind the end is left alone: nothing may follow a body like this.
    pub(super) fn feed(&mut self, mut bytes: &[u8], bytes_max: usize) -> Result<(), Refused> {
        while !bytes.is_empty() && !self.is_whole() {
            bytes = match self.at {
                At::Data { left } => self.data(left, bytes, bytes_max)?,
                _ => self.line(bytes)?,
            };
        }
        Ok(())
    }

    pub(super) fn is_whole(&self) -> bool {
        self.at == At::End
    }

    /// How large the buffer of the body may get with this many more bytes: a vector at least doubles.
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
        self.at = if left == 0 { At::DataEnd } else { At::Data { left } };
        Ok(rest)
    }

    /// One line, or the beginning of one; returns what comes after it.
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

    /// Where a line, with its end, leads to.
    fn after(&self, line: &[u8]) -> Result<At, Refused> {
        let text = line.strip_suffix(b"\r\n").ok_or(Refused::Ambiguous)?;
        match self.at {
            At::Size => match size(text).ok_or(Refused::Ambiguous)? {
                0 => Ok(At::Trailers),
                left => Ok(At::Data { left }),
            },
            At::DataEnd if text.is_empty() => Ok(At::Size),
            At::DataEnd => Err(Refused::Ambiguous),
            _ if text.is_empty() => Ok(At::End),
            _ if is_field_line(text) => Ok(At::Trailers),
            _ => Err(Refused::Ambiguous),
        }
    }
}

/// The size at the beginning of a line; extensions behind a semicolon are ignored. Stricter than `httparse`, which takes a
/// line without any digit for a zero.
fn size(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(text.len());
    let (digits, extensions) = text.split_at(end);
    if digits.is_empty() || !are_extensions(extensions) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Whether `text` may stand behind a chunk's size: nothing, or a semicolon and a name before anything else.
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

/// Whether `text` is a name, a colon and a value. A line that begins with a space would continue the line before it
/// (folding), which readers disagree on.
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

    /// Feeds `text` whole and byte by byte, which must not differ.
    fn read(text: &str) -> Result<Option<String>, Refused> {
        let fed = |size: usize| {
            let mut chunks = Chunks::default();
            text.as_bytes().chunks(size).try_for_each(|piece| chunks.feed(piece, 20))?;
            let whole = chunks.is_whole();
            Ok(whole.then(|| String::from_utf8(chunks.into_whole()).unwrap()))
        };
        let whole = fed(text.len().max(1));
        assert_eq!(whole, fed(1), "{text:?}");
        whole
    }

    #[test]
    fn chunks_make_a_body() {
        assert_eq!(read("5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n"), Ok(Some("hello!".into())));
        assert_eq!(read("A\r\n0123456789\r\n0\r\nx: y\r\n\r\nbehind"), Ok(Some("0123456789".into())));
        assert_eq!(read("0\r\n\r\n"), Ok(Some(String::new())));
        for part in ["", "5", "5\r\nhel", "5\r\nhello\r\n", "0\r\n", "0\r\nx: y\r\n"] {
            assert_eq!(read(part), Ok(None), "{part:?}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
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

    // Extensions and trailers were skipped unread up to the next line feed. Readers that take a bare carriage return for the
    // end of a line, or fold lines, saw other chunks and other headers in them.
    #[test]
    fn extensions_and_trailers_are_held_to_the_rules_of_a_head() {
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
    fn there_is_a_limit_to_data_and_to_what_is_around_it() {
        assert_eq!(read("15\r\n012345678901234567890\r\n"), Err(Refused::TooLarge));
        assert_eq!(read(&format!("1;{}\r\n", "x".repeat(LINE_BYTES_MAX))), Err(Refused::TooLarge));
        assert_eq!(
            read(&format!("0\r\n{}", "x: y\r\n".repeat(LINE_BYTES_MAX / 6 + 1))),
            Err(Refused::TooLarge)
        );
    }
}
