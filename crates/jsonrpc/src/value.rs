//! One JSON value as the caller wrote it, read as what a parameter should be.
//!
//! A `Value` holds text that the scanner has accepted, so reading it cannot meet broken JSON; it can only be of
//! another kind than the reader hoped for.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::scan::Scanner;

/// A JSON value as a slice of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a>(&'a str);

/// What kind of value it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl<'a> Value<'a> {
    /// A value standing alone in `text`, or `None` if `text` is not one JSON value.
    pub fn read(text: &'a str) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let value = scanner.value(0).ok()?;
        scanner.peek().is_none().then_some(Self(value))
    }

    pub(crate) fn from_scanned(text: &'a str) -> Self {
        Self(text)
    }

    /// The caller's bytes, without white space around them.
    pub fn raw(self) -> &'a str {
        self.0
    }

    pub fn kind(self) -> Kind {
        match self.0.as_bytes().first() {
            Some(b'"') => Kind::String,
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.0 == "true")
    }

    /// A number without sign, fraction and exponent that fits; anything else is no integer here.
    pub fn as_u64(self) -> Option<u64> {
        let plain = self.kind() == Kind::Number && self.0.bytes().all(|byte| byte.is_ascii_digit());
        if plain { self.0.parse().ok() } else { None }
    }

    /// The string's text. Borrowed unless it has escapes, which no hexadecimal value needs.
    #[inline]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        Some(Cow::Owned(unescape(inner)))
    }

    /// The elements of an array, `None` for any other kind.
    pub fn elements(self) -> Option<Elements<'a>> {
        (self.kind() == Kind::Array).then(|| Elements(Inside::of(self.0)))
    }

    /// The members of an object in the caller's order, `None` for any other kind.
    pub fn members(self) -> Option<Members<'a>> {
        (self.kind() == Kind::Object).then(|| Members { inside: Inside::of(self.0), seen: BTreeSet::new() })
    }
}

/// Walks the inside of an array or object.
#[derive(Clone, Debug)]
struct Inside<'a> {
    scanner: Scanner<'a>,
    done: bool,
}

impl<'a> Inside<'a> {
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
pub struct Elements<'a>(Inside<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.0.done { None } else { self.0.value() }
    }
}

/// The members of an object. A name that occurs a second time comes marked, so that it can be refused.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    inside: Inside<'a>,
    // A tree, because its cost cannot be attacked as that of a hash table or a sorted list can.
    seen: BTreeSet<Cow<'a, str>>,
}

/// One member of an object.
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

/// The text that a string with escapes stands for. A lone surrogate has no text; it reads as U+FFFD.
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

/// The character that the escape at the start of `text` stands for, and how many bytes it takes.
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
    fn integers_are_plain_digits() {
        let int = |text| Value::read(text).and_then(Value::as_u64);
        assert_eq!(int("18446744073709551615"), Some(u64::MAX));
        for other in ["18446744073709551616", "-1", "1.0", "1e3", "\"1\"", "true"] {
            assert_eq!(int(other), None, "{other}");
        }
    }

    #[test]
    fn a_repeated_member_is_marked_even_when_it_is_spelled_with_escapes() {
        let members: Vec<_> =
            Value::read(r#"{"to":1, "a":2, "t\u006f":3}"#).unwrap().members().unwrap().collect();
        assert_eq!(members.iter().map(|m| m.repeated).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(members[2].name, "to");
    }

    #[test]
    fn empty_containers_have_nothing_inside() {
        assert_eq!(Value::read("[ ]").unwrap().elements().unwrap().count(), 0);
        assert_eq!(Value::read("{\n}").unwrap().members().unwrap().count(), 0);
        assert!(Value::read("{}").unwrap().elements().is_none());
    }

    #[test]
    fn lone_surrogates_read_as_the_replacement_character() {
        let text = |raw| Value::read(raw).unwrap().as_str().unwrap().into_owned();
        assert_eq!(text(r#""\ud83d\ude00""#), "😀");
        assert_eq!(text(r#""a\ud83dz""#), "a\u{fffd}z");
        assert_eq!(text(r#""\ude00\ud83d""#), "\u{fffd}\u{fffd}");
    }

    proptest! {
        #[test]
        fn strings_decode_as_serde_json_decodes_them(text: String) {
            let encoded = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(Value::read(&encoded).unwrap().as_str().unwrap(), text);
        }

        #[test]
        fn elements_are_those_of_serde_json(numbers: Vec<u64>) {
            let encoded = serde_json::to_string_pretty(&numbers).unwrap();
            let read: Vec<u64> =
                Value::read(&encoded).unwrap().elements().unwrap().filter_map(Value::as_u64).collect();
            prop_assert_eq!(read, numbers);
        }
    }
}
