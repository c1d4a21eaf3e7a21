//! A strict scanner for JSON (RFC 8259) with bounded recursion.
//!
//! It validates values and finds their ends, and does not decode them.

use crate::skip::{string_len, value_len};

/// Maximum nesting of arrays and objects. Real calls need six levels; the limit bounds the stack.
pub const DEPTH_MAX: usize = 64;

/// Why a text was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanError {
    Syntax,
    TooDeep,
}

/// A position in a text.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte that is not white space, without consuming it. `None` at the end.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Consumes `byte` if it comes next.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    /// Consumes `byte`, which must come next.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.take(byte) { Ok(()) } else { Err(ScanError::Syntax) }
    }

    /// Consumes one value of any kind and returns its text without surrounding white space. `depth` is the number of
    /// enclosing arrays and objects.
    #[inline]
    pub(crate) fn value(&mut self, depth: usize) -> Result<&'a str, ScanError> {
        let first = self.peek().ok_or(ScanError::Syntax)?;
        let start = self.at;
        match first {
            b'"' => return self.string(),
            b'{' => self.object(depth)?,
            b'[' => self.array(depth)?,
            b't' => self.literal("true")?,
            b'f' => self.literal("false")?,
            b'n' => self.literal("null")?,
            _ => self.number()?,
        }
        Ok(&self.text[start..self.at])
    }

    /// Consumes a string and returns its text including the quotes.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<&'a str, ScanError> {
        self.expect(b'"')?;
        let start = self.at - 1;
        loop {
            self.at += plain_len(&self.text.as_bytes()[self.at..]);
            match self.next_byte()? {
                b'"' => return Ok(&self.text[start..self.at]),
                b'\\' => self.escape()?,
                _ => return Err(ScanError::Syntax),
            }
        }
    }

    /// Consumes one value of text that was validated before, and returns its text.
    pub(crate) fn known_value(&mut self) -> Option<&'a str> {
        self.peek()?;
        self.known(value_len)
    }

    /// Consumes one string of text that was validated before, and returns its text including the quotes.
    pub(crate) fn known_string(&mut self) -> Option<&'a str> {
        self.known(string_len)
    }

    #[inline]
    fn known(&mut self, len: impl Fn(&[u8]) -> Option<usize>) -> Option<&'a str> {
        let start = self.at;
        self.at += len(self.text.as_bytes().get(start..)?)?;
        Some(&self.text[start..self.at])
    }

    fn object(&mut self, depth: usize) -> Result<(), ScanError> {
        check_depth(depth)?;
        self.expect(b'{')?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.peek();
            self.string()?;
            self.expect(b':')?;
            self.value(depth + 1)?;
            if !self.take(b',') {
                return self.expect(b'}');
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), ScanError> {
        check_depth(depth)?;
        self.expect(b'[')?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            if !self.take(b',') {
                return self.expect(b']');
            }
        }
    }

    fn escape(&mut self) -> Result<(), ScanError> {
        match self.next_byte()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    if !self.next_byte()?.is_ascii_hexdigit() {
                        return Err(ScanError::Syntax);
                    }
                }
                Ok(())
            }
            _ => Err(ScanError::Syntax),
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), ScanError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(ScanError::Syntax);
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), ScanError> {
        self.take_now(b'-');
        if !self.take_now(b'0') {
            self.digits()?;
        }
        if self.take_now(b'.') {
            self.digits()?;
        }
        if self.take_now(b'e') || self.take_now(b'E') {
            let _signed = self.take_now(b'+') || self.take_now(b'-');
            self.digits()?;
        }
        Ok(())
    }

    /// Consumes at least one digit.
    fn digits(&mut self) -> Result<(), ScanError> {
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(ScanError::Syntax) } else { Ok(()) }
    }

    /// Consumes `byte` if it is the next one, without skipping white space.
    fn take_now(&mut self, byte: u8) -> bool {
        let found = self.text.as_bytes().get(self.at) == Some(&byte);
        if found {
            self.at += 1;
        }
        found
    }

    fn next_byte(&mut self) -> Result<u8, ScanError> {
        let byte = *self.text.as_bytes().get(self.at).ok_or(ScanError::Syntax)?;
        self.at += 1;
        Ok(byte)
    }
}

#[inline]
pub(crate) fn check_depth(depth: usize) -> Result<(), ScanError> {
    if depth >= DEPTH_MAX { Err(ScanError::TooDeep) } else { Ok(()) }
}

/// The number of leading bytes that are no quote, no backslash and no control character.
///
/// It reads eight bytes at a time, because strings of call data have many kilobytes.
#[inline]
fn plain_len(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // The lowest byte of the result with its high bit set is the first zero byte of `word`. Higher bits may be wrong, but
    // only the lowest one is used.
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;

    let (words, tail) = bytes.as_chunks::<8>();
    for (index, chunk) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let quotes = zero_bytes(word ^ (ONES * b'"' as u64));
        let backslashes = zero_bytes(word ^ (ONES * b'\\' as u64));
        let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let special = quotes | backslashes | controls;
        if special != 0 {
            return index * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let tail_plain = tail.iter().take_while(|&&byte| byte >= 0x20 && byte != b'"' && byte != b'\\').count();
    words.len() * 8 + tail_plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan_all(text: &str) -> Result<(), ScanError> {
        let mut scanner = Scanner::new(text);
        scanner.value(0)?;
        if scanner.peek().is_none() { Ok(()) } else { Err(ScanError::Syntax) }
    }

    #[test]
    fn nesting_is_limited_to_64_levels() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(scan_all(&nested(64)), Ok(()));
        assert_eq!(scan_all(&nested(65)), Err(ScanError::TooDeep));
        assert_eq!(scan_all(&nested(1_000_000)), Err(ScanError::TooDeep));
    }

    #[test]
    fn numbers_follow_the_grammar() {
        for good in ["0", "-0", "1.0", "1e9", "-1.5E+10", "18446744073709551616", "1e999"] {
            assert_eq!(scan_all(good), Ok(()), "{good}");
        }
        for bad in ["01", "+1", "1.", ".5", "1e", "-", "0x1", "1 2", "NaN", "- 1", "1 .0"] {
            assert_eq!(scan_all(bad), Err(ScanError::Syntax), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn plain_len_equals_a_byte_loop(bytes: Vec<u8>) {
            let expected = bytes.iter().take_while(|&&b| b >= 0x20 && b != b'"' && b != b'\\').count();
            prop_assert_eq!(plain_len(&bytes), expected);
        }

        #[test]
        fn texts_are_valid_exactly_if_serde_json_accepts_them(text in r#"[\[\]{}:,"\\ \ntruefalsn0-9eE.+u\-a]{0,24}"#) {
            let expected = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(scan_all(&text).is_ok(), expected, "{}", text);
        }

        #[test]
        fn known_values_end_where_validated_values_end(text in r#"[\[\]{}:,"\\ \ntruefalsn0-9eE.+u\-a]{0,24}"#) {
            if scan_all(&text).is_ok() {
                let (mut scanner, mut again) = (Scanner::new(&text), Scanner::new(&text));
                prop_assert_eq!(again.known_value(), scanner.value(0).ok());
                prop_assert_eq!(again.at, scanner.at);
            }
        }

        #[test]
        fn known_value_does_not_panic_on_invalid_text(text in r#"[\[\]{}:,"\\ \u{e9}a]{0,24}"#) {
            let mut scanner = Scanner::new(&text);
            while scanner.known_value().is_some() {}
        }
    }
}
