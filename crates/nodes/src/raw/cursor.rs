//! A cursor over JSON text that validates it on the way.
//!
//! Large results were not parsed before. A caller that reaches the end without `None`, and checks the hexadecimal digits, has shown
//! that they are JSON. Strings are not decoded: one with an escape is refused, because no number, hash or member name needs any.

use memchr::{memchr, memchr2};

use super::hex;

/// A position in a text.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is not white space, without consuming it.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.bytes.get(self.at)? {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Consumes `byte` if it comes next.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    /// Consumes `byte`, which must come next.
    #[inline]
    pub(super) fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    /// Nothing but white space may be left.
    pub(super) fn end(&mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    /// Consumes exactly this text if it comes next, without white space before it.
    #[inline(always)]
    pub(super) fn literal<const N: usize>(&mut self, text: &[u8; N]) -> bool {
        let found = self.rest().first_chunk::<N>() == Some(text);
        if found {
            self.at += N;
        }
        found
    }

    /// Consumes exactly this text, which must come next.
    #[inline(always)]
    pub(super) fn text<const N: usize>(&mut self, text: &[u8; N]) -> Option<()> {
        self.literal(text).then_some(())
    }

    /// Goes back to an earlier position.
    pub(super) fn return_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Consumes this text, which was consumed before, if it comes next.
    #[inline]
    pub(super) fn skip_text(&mut self, text: &[u8]) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// The text that was consumed since `start`.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    /// Consumes the name of a member and the colon after it, and returns the name without quotes.
    pub(super) fn name(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let rest = self.rest();
        let end = memchr2(b'"', b'\\', rest)?;
        let name = &rest[..end];
        self.at += end + 1;
        let is_text = name.is_ascii() || std::str::from_utf8(name).is_ok();
        let plain = is_text && name.iter().all(|byte| *byte >= b' ');
        self.expect(b':')?;
        (rest[end] == b'"' && plain).then_some(name)
    }

    /// Consumes `"0x…"` with exactly `N` characters behind the prefix. They are not checked to be digits.
    #[inline(always)]
    pub(super) fn fixed<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        self.peek()?;
        let (prefix, rest) = self.rest().split_first_chunk::<3>()?;
        let (digits, rest) = rest.split_first_chunk::<N>()?;
        let whole = prefix == b"\"0x" && rest.first() == Some(&b'"');
        self.at += N + 4;
        whole.then_some(digits)
    }

    /// Consumes a quantity.
    #[inline]
    pub(super) fn quantity(&mut self) -> Option<u64> {
        self.peek()?;
        if !self.literal(b"\"0x") {
            return None;
        }
        let rest = self.rest();
        let (number, digits) = hex::leading_number(rest)?;
        self.at += digits + 1;
        (rest.get(digits) == Some(&b'"')).then_some(number)
    }

    /// Consumes `"0x…"` of any length. They are not checked to be digits.
    #[inline]
    pub(super) fn data(&mut self) -> Option<&'a [u8]> {
        self.peek()?;
        if !self.literal(b"\"0x") {
            return None;
        }
        let rest = self.rest();
        let end = memchr(b'"', rest)?;
        self.at += end + 1;
        Some(&rest[..end])
    }

    /// Consumes `true` or `false`.
    #[inline]
    pub(super) fn boolean(&mut self) -> Option<bool> {
        self.peek()?;
        if self.literal(b"false") {
            return Some(false);
        }
        self.literal(b"true").then_some(true)
    }

    /// Consumes `null` if it comes next.
    #[inline]
    pub(super) fn null(&mut self) -> bool {
        self.peek().is_some() && self.literal(b"null")
    }

    /// Consumes one value of any kind.
    pub(super) fn skip(&mut self) -> Option<()> {
        self.peek()?;
        let start = self.at;
        self.at += jsonrpc::value_len(self.rest())?;
        // The end is only right if the value is well-formed.
        super::is_json(self.since(start)).then_some(())
    }

    /// Consumes one value that is mostly a quantity.
    #[inline]
    pub(super) fn skip_quantity(&mut self) -> Option<()> {
        let start = self.at;
        if self.quantity().is_none() {
            self.at = start;
            self.skip()?;
        }
        Some(())
    }

    #[inline(always)]
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(4), ..Default::default() })]

        #[test]
        fn any_value_is_skipped_to_its_end(value in any_json(), pretty: bool) {
            let write = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
            let text = format!("{},", write(&value).unwrap());
            let mut cursor = Cursor::new(text.as_bytes());
            prop_assert_eq!(cursor.skip(), Some(()));
            prop_assert_eq!(cursor.at(), text.len() - 1);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in "[\\[\\]{}\",:\\\\0xa ]{0,40}") {
            let mut cursor = Cursor::new(bytes.as_bytes());
            while cursor.skip().is_some() {}
            let mut cursor = Cursor::new(bytes.as_bytes());
            while cursor.name().is_some() || cursor.data().is_some() || cursor.fixed::<4>().is_some() {}
        }
    }
}
