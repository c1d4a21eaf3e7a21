//! One JSON value as a slice of the body.
//!
//! A `Value` holds text that the scanner has validated, so that its readers only have to check the kind of the value.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::scan::Scanner;

/// A JSON value as a slice of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a>(&'a str);

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl<'a> Value<'a> {
    /// `None` if `text` is not exactly one JSON value.
    pub fn read(text: &'a str) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let value = scanner.value(0).ok()?;
        scanner.peek().is_none().then_some(Self(value))
    }

    pub(crate) fn from_scanned(text: &'a str) -> Self {
        Self(text)
    }

    /// The JSON text without surrounding white space.
    pub fn raw(self) -> &'a str {
        self.0
    }

    pub fn kind(self) -> ValueKind {
        match self.0.as_bytes().first() {
            Some(b'"') => ValueKind::String,
            Some(b'{') => ValueKind::Object,
            Some(b'[') => ValueKind::Array,
            Some(b't' | b'f') => ValueKind::Bool,
            Some(b'n') | None => ValueKind::Null,
            Some(_) => ValueKind::Number,
        }
    }

    pub fn is_null(self) -> bool {
        self.kind() == ValueKind::Null
    }

    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == ValueKind::Bool).then(|| self.0 == "true")
    }

    /// A number without sign, fraction and exponent that fits into `u64`; `None` for anything else.
    pub fn as_u64(self) -> Option<u64> {
        let plain = self.kind() == ValueKind::Number && self.0.bytes().all(|byte| byte.is_ascii_digit());
        if plain { self.0.parse().ok() } else { None }
    }

    /// The decoded string; `None` for any other kind. Borrowed unless it has escapes.
    #[inline]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        Some(Cow::Owned(unescape(inner)))
    }

    /// The elements of an array; `None` for any other kind.
    pub fn elements(self) -> Option<Elements<'a>> {
        (self.kind() == ValueKind::Array).then(|| Elements(ContainerScanner::of(self.0)))
    }

    /// The members of an object in the caller's order; `None` for any other kind.
    pub fn members(self) -> Option<Members<'a>> {
        (self.kind() == ValueKind::Object)
            .then(|| Members { inside: ContainerScanner::of(self.0), seen: BTreeSet::new() })
    }
}

/// Scans the content of an array or object.
#[derive(Clone, Debug)]
struct ContainerScanner<'a> {
    scanner: Scanner<'a>,
    done: bool,
}

impl<'a> ContainerScanner<'a> {
    fn of(text: &'a str) -> Self {
        let mut scanner = Scanner::new(&text[1..text.len() - 1]);
        let done = scanner.peek().is_none();
        Self { scanner, done }
    }

    fn value(&mut self) -> Option<Value<'a>> {
        let value = self.scanner.known_value()?;
        self.done = !self.scanner.take(b',');
        Some(Value(value))
    }
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub struct Elements<'a>(ContainerScanner<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.0.done { None } else { self.0.value() }
    }
}

/// The members of an object. Duplicate names are marked, so that they can be refused.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    inside: ContainerScanner<'a>,
    // A tree, because its worst case is bounded, unlike that of a hash table or a sorted list.
    seen: BTreeSet<Cow<'a, str>>,
}

/// One member of an object; `repeated` if an earlier member has the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    pub name: Cow<'a, str>,
    pub value: Value<'a>,
    pub repeated: bool,
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        if self.inside.done {
            return None;
        }
        self.inside.scanner.peek();
        let name = Value(self.inside.scanner.known_string()?).as_str()?;
        self.inside.scanner.expect(b':').ok()?;
        let value = self.inside.value()?;
        let repeated = !self.seen.insert(name.clone());
        Some(Member { name, value, repeated })
    }
}

/// Decodes a string with escapes. A lone surrogate becomes U+FFFD.
fn unescape(inner: &str) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        let (decoded, used) = escape(&rest[at..]);
        text.push(decoded);
        rest = &rest[at + used..];
    }
    text.push_str(rest);
    text
}

/// Decodes the escape at the start of `text`; returns the character and the length of the escape.
fn escape(text: &str) -> (char, usize) {
    match text.as_bytes().get(1) {
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'n') => ('\n', 2),
        Some(b'r') => ('\r', 2),
        Some(b't') => ('\t', 2),
        Some(b'u') => unicode_escape(text),
        Some(&other) => (char::from(other), 2),
        None => (char::REPLACEMENT_CHARACTER, text.len()),
    }
}

fn unicode_escape(text: &str) -> (char, usize) {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let Some(first) = unit(0) else { return (char::REPLACEMENT_CHARACTER, text.len()) };
    let pair = [first, unit(6).unwrap_or_default()];
    match char::decode_utf16(pair).next() {
        Some(Ok(decoded)) => (decoded, decoded.len_utf16() * 6),
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_have_only_digits() {
        let int = |text| Value::read(text).and_then(Value::as_u64);
        assert_eq!(int("18446744073709551615"), Some(u64::MAX));
        for other in ["18446744073709551616", "-1", "1.0", "1e3", "\"1\"", "true"] {
            assert_eq!(int(other), None, "{other}");
        }
    }

    #[test]
    fn repeated_members_are_marked_also_with_escapes() {
        let members: Vec<_> =
            Value::read(r#"{"to":1, "a":2, "t\u006f":3}"#).unwrap().members().unwrap().collect();
        assert_eq!(members.iter().map(|m| m.repeated).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(members[2].name, "to");
    }

    #[test]
    fn empty_containers_have_no_elements() {
        assert_eq!(Value::read("[ ]").unwrap().elements().unwrap().count(), 0);
        assert_eq!(Value::read("{\n}").unwrap().members().unwrap().count(), 0);
        assert!(Value::read("{}").unwrap().elements().is_none());
    }

    #[test]
    fn lone_surrogates_become_the_replacement_character() {
        let text = |raw| Value::read(raw).unwrap().as_str().unwrap().into_owned();
        assert_eq!(text(r#""\ud83d\ude00""#), "😀");
        assert_eq!(text(r#""a\ud83dz""#), "a\u{fffd}z");
        assert_eq!(text(r#""\ude00\ud83d""#), "\u{fffd}\u{fffd}");
    }

    proptest! {
        #[test]
        fn strings_are_decoded_as_by_serde_json(text: String) {
            let encoded = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(Value::read(&encoded).unwrap().as_str().unwrap(), text);
        }

        #[test]
        fn elements_are_read_as_by_serde_json(numbers: Vec<u64>) {
            let encoded = serde_json::to_string_pretty(&numbers).unwrap();
            let read: Vec<u64> =
                Value::read(&encoded).unwrap().elements().unwrap().filter_map(Value::as_u64).collect();
            prop_assert_eq!(read, numbers);
        }
    }
}
