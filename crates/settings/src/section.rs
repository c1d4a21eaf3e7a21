//! One table of the configuration file. A key that no reader has requested is reported as unknown.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::nearest_key::nearest_key;
use crate::reference::{is_reference, process_environment, resolve};

/// The errors and keys that are collected while a file is read.
#[derive(Debug, Default)]
pub(crate) struct ReadContext {
    text: String,
    /// Errors, each with its byte offset in the text.
    errors: RefCell<Vec<(usize, String)>>,
    /// Every key that was requested.
    known_keys: RefCell<Vec<KnownKey>>,
}

/// A key that a configuration file may contain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownKey {
    /// The key with the names of its tables.
    pub path: String,
    /// The default as it is written in a file; empty if there is no fixed default.
    pub default: String,
    /// The meaning of 0; `None` if the value is not a number.
    pub zero: Option<ZeroMeaning>,
}

/// The meaning of 0 as the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZeroMeaning {
    /// 0 is reported as an error, because the limit would allow nothing.
    Invalid,
    NoLimit,
    NoDelay,
}

/// The largest time of a key, one year: sums of such times never overflow.
const MILLISECONDS_MAX: u64 = 366 * 24 * 60 * 60 * 1_000;

/// The largest number of a key without a smaller bound: sums of such numbers stay within 64 bits.
const NUMBER_MAX: u64 = 1 << 50;

impl ReadContext {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    pub(crate) fn add_error(&self, offset: usize, message: String) {
        self.errors.borrow_mut().push((offset, message));
    }

    pub(crate) fn into_known_keys(self) -> Vec<KnownKey> {
        self.known_keys.into_inner()
    }

    /// The errors with their lines, in the order of the lines.
    pub(crate) fn into_errors(self) -> Vec<(usize, String)> {
        let mut errors = self.errors.into_inner();
        errors.sort();
        let line = |offset: usize| self.text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1;
        errors.into_iter().map(|(offset, message)| (line(offset), message)).collect()
    }
}

/// A table of the file, which may be absent.
#[derive(Debug)]
pub struct Section<'a> {
    table: Option<&'a DeTable<'a>>,
    /// `limits.` for the keys of `[limits]`.
    prefix: String,
    /// The byte offset of the table in the file.
    offset: usize,
    /// Keys that were requested; all other keys of the table are unknown.
    requested: Vec<String>,
    context: &'a ReadContext,
}

impl<'a> Section<'a> {
    pub(crate) fn root(table: &'a DeTable<'a>, context: &'a ReadContext) -> Self {
        Self { table: Some(table), prefix: String::new(), offset: 0, requested: Vec::new(), context }
    }

    pub(crate) fn empty(context: &'a ReadContext) -> Self {
        Self { table: None, prefix: String::new(), offset: 0, requested: Vec::new(), context }
    }

    /// The table under `key`.
    pub fn section(&mut self, key: &str) -> Section<'a> {
        let value = self.value(key);
        let table = value.and_then(|value| self.expect(key, value, "a table", |value| value.as_table()));
        self.subsection(key, table, value.map_or(self.offset, |value| value.span().start))
    }

    /// The array of tables under `key`. Errors name each table by its position, counted from 1.
    pub fn sections(&mut self, key: &str) -> Vec<Section<'a>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let array = self.expect(key, value, "an array of tables", |value| value.as_array());
        let tables = array.into_iter().flatten().enumerate().filter_map(|(index, element)| {
            let table = self.expect(key, element, "a table", |element| element.as_table())?;
            Some(self.subsection(&format!("{key} {}", index + 1), Some(table), element.span().start))
        });
        tables.collect()
    }

    fn subsection(&self, key: &str, table: Option<&'a DeTable<'a>>, offset: usize) -> Section<'a> {
        let prefix = format!("{}{key}.", self.prefix);
        Section { table, prefix, offset, requested: Vec::new(), context: self.context }
    }

    /// The keys that this table has in the file.
    pub fn keys(&mut self) -> Vec<String> {
        let keys = self.table.into_iter().flatten().map(|(key, _)| key.get_ref().to_string());
        keys.collect()
    }

    /// Records a key for the documentation of all keys.
    fn record(&self, key: &str, default: impl std::fmt::Display) {
        self.record_number(key, default, None);
    }

    fn record_number(&self, key: &str, default: impl std::fmt::Display, zero: Option<ZeroMeaning>) {
        let (path, default) = (format!("{}{key}", self.prefix), default.to_string());
        self.context.known_keys.borrow_mut().push(KnownKey { path, default, zero });
    }

    /// A number greater than 0.
    pub fn number(&mut self, key: &str, default: u64) -> u64 {
        self.number_up_to(key, default, NUMBER_MAX)
    }

    /// A number from 1 to `max`.
    pub fn number_up_to(&mut self, key: &str, default: u64, max: u64) -> u64 {
        self.record_number(key, default, Some(ZeroMeaning::Invalid));
        self.positive(key, max).unwrap_or(default)
    }

    /// A number greater than 0 that fits into `usize`.
    pub fn size(&mut self, key: &str, default: usize) -> usize {
        self.size_up_to(key, default, NUMBER_MAX as usize)
    }

    /// A number from 1 to `max` that fits into `usize`.
    pub fn size_up_to(&mut self, key: &str, default: usize, max: usize) -> usize {
        self.record_number(key, default, Some(ZeroMeaning::Invalid));
        self.positive(key, max as u64).map_or(default, |number| number as usize)
    }

    /// A number from 1 to `max` without a fixed default.
    pub fn optional_number(&mut self, key: &str, max: u64) -> Option<u64> {
        self.record_number(key, "", Some(ZeroMeaning::Invalid));
        self.positive(key, max)
    }

    /// A share, as a number from 0 to 1.
    pub fn ratio(&mut self, key: &str, default: f64) -> f64 {
        const EXPECTED: &str = "a number from 0 to 1";
        self.record(key, default);
        let Some(value) = self.value(key) else { return default };
        let is_share = |ratio: &f64| (0.0..=1.0).contains(ratio);
        if let Some(parsed) = self.parsed::<f64>(key, value, EXPECTED) {
            let ratio = parsed.filter(is_share);
            if parsed.is_some() && ratio.is_none() {
                self.error(key, &format!("must be {EXPECTED}"));
            }
            return ratio.unwrap_or(default);
        }
        let written = |value: &'a DeValue<'a>| {
            let float = value.as_float().map(|float| float.as_str());
            let text = float.or_else(|| value.as_integer().map(|integer| integer.as_str()))?;
            text.parse().ok().filter(is_share)
        };
        self.expect(key, value, EXPECTED, written).unwrap_or(default)
    }

    /// A limit that is switched off with 0.
    pub fn limit(&mut self, key: &str, default: Option<u64>) -> Option<u64> {
        self.record_number(key, default.unwrap_or(0), Some(ZeroMeaning::NoLimit));
        self.integer(key, NUMBER_MAX).map_or(default, |number| (number > 0).then_some(number))
    }

    /// A block number, or a word that stands for `meaning`. There is no fixed default.
    pub fn block_number_or_word(&mut self, key: &str, word: &str, meaning: u64) -> Option<u64> {
        self.record(key, "");
        let value = self.value(key)?;
        match value.get_ref().as_str() {
            Some(text) if text == word => Some(meaning),
            Some(_) => {
                self.error(key, &format!("must be a block number or \"{word}\""));
                None
            }
            None => self.integer(key, NUMBER_MAX),
        }
    }

    /// A time of at least 1 ms.
    pub fn milliseconds(&mut self, key: &str, default: Duration) -> Duration {
        self.record_number(key, default.as_millis(), Some(ZeroMeaning::Invalid));
        self.positive(key, MILLISECONDS_MAX).map_or(default, Duration::from_millis)
    }

    /// A time of at least 1 ms without a fixed default.
    pub fn optional_milliseconds(&mut self, key: &str) -> Option<Duration> {
        self.optional_number(key, MILLISECONDS_MAX).map(Duration::from_millis)
    }

    /// A time without a fixed default; 0 means that it never ends.
    pub fn optional_milliseconds_or_never(&mut self, key: &str) -> Option<Duration> {
        self.record_number(key, "", Some(ZeroMeaning::NoLimit));
        self.integer(key, MILLISECONDS_MAX).map(Duration::from_millis)
    }

    /// A time in milliseconds that may be 0.
    pub fn delay(&mut self, key: &str, default: Duration) -> Duration {
        self.record_number(key, default.as_millis(), Some(ZeroMeaning::NoDelay));
        self.integer(key, MILLISECONDS_MAX).map_or(default, Duration::from_millis)
    }

    pub fn flag(&mut self, key: &str, default: bool) -> bool {
        self.record(key, default);
        self.boolean(key).unwrap_or(default)
    }

    /// `true` or `false`, without a fixed default.
    pub fn optional_flag(&mut self, key: &str) -> Option<bool> {
        self.record(key, "");
        self.boolean(key)
    }

    fn boolean(&mut self, key: &str) -> Option<bool> {
        let value = self.value(key)?;
        let parsed = self.parsed(key, value, "true or false");
        parsed.unwrap_or_else(|| self.expect(key, value, "true or false", |value| value.as_bool()))
    }

    pub fn text(&mut self, key: &str, default: &str) -> String {
        self.record(key, format_args!("\"{default}\""));
        self.string(key).unwrap_or_else(|| default.to_owned())
    }

    pub fn optional_text(&mut self, key: &str) -> Option<String> {
        self.record(key, "");
        self.string(key)
    }

    /// A text that must be there. The error says what it is for.
    pub fn required_text(&mut self, key: &str, purpose: &str) -> Option<String> {
        if self.value(key).is_none() {
            self.error(key, &format!("is missing: {purpose}"));
        }
        self.optional_text(key)
    }

    fn string(&mut self, key: &str) -> Option<String> {
        let value = self.value(key)?;
        let text = self.expect(key, value, "a string", |value| value.as_str())?;
        let text = self.resolved(key, value.span().start, text)?;
        // PostgreSQL has no texts with NUL, and names become part of the ledger of usage.
        if text.contains('\0') {
            self.error(key, "must not contain the character NUL");
            return None;
        }
        Some(text)
    }

    /// An array of strings.
    pub fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        self.record(key, "");
        let value = self.value(key)?;
        let all = |value: &'a DeValue<'a>| {
            let texts = value.as_array()?.iter().map(|element| element.get_ref().as_str());
            texts.collect::<Option<Vec<_>>>()
        };
        let texts = self.expect(key, value, "an array of strings", all)?;
        texts.into_iter().map(|text| self.resolved(key, value.span().start, text)).collect()
    }

    /// The value that a text refers to. `None` if it is no such text.
    fn parsed<T: FromStr>(
        &self,
        key: &str,
        value: &'a Spanned<DeValue<'a>>,
        expected: &str,
    ) -> Option<Option<T>> {
        let text = value.get_ref().as_str().filter(|text| is_reference(text))?;
        let offset = value.span().start;
        let Some(resolved) = self.resolved(key, offset, text) else { return Some(None) };
        let parsed = resolved.parse();
        let report = |_| self.context.add_error(offset, format!("{}{key}: must be {expected}", self.prefix));
        Some(parsed.map_err(report).ok())
    }

    /// The text that a value stands for.
    fn resolved(&self, key: &str, offset: usize, text: &str) -> Option<String> {
        let report = |problem| self.context.add_error(offset, format!("{}{key}: {problem}", self.prefix));
        resolve(text, process_environment).map_err(report).ok()
    }

    pub fn address(&mut self, key: &str, default: SocketAddr) -> SocketAddr {
        self.record(key, format_args!("\"{default}\""));
        match self.string(key).map(|text| text.parse()) {
            None => default,
            Some(Ok(address)) => address,
            Some(Err(_)) => {
                self.error(key, "must be an address and a port, such as 127.0.0.1:8545");
                default
            }
        }
    }

    /// Reports a key of earlier versions, if it is there; `now` says what holds in its place.
    pub fn removed(&mut self, key: &str, now: &str) {
        if self.value(key).is_some() {
            self.error(key, &format!("this key was removed: {now}; delete the line"));
        }
    }

    /// Reports an error in the value of `key`, at its line, or at the line of the table if the key is absent.
    pub fn error(&mut self, key: &str, message: &str) {
        let offset = self.value(key).map_or(self.offset, |value| value.span().start);
        self.context.add_error(offset, format!("{}{key}: {message}", self.prefix));
    }

    fn positive(&mut self, key: &str, max: u64) -> Option<u64> {
        let number = self.integer(key, max)?;
        if number == 0 {
            self.error(key, "must be greater than 0");
            return None;
        }
        Some(number)
    }

    fn integer(&mut self, key: &str, max: u64) -> Option<u64> {
        let value = self.value(key)?;
        const EXPECTED: &str = "a whole number that is not negative";
        let number = match self.parsed(key, value, EXPECTED) {
            Some(parsed) => parsed?,
            None => self.expect(key, value, EXPECTED, |value| {
                let integer = value.as_integer()?;
                u64::from_str_radix(integer.as_str(), integer.radix()).ok()
            })?,
        };
        if number > max {
            self.error(key, &format!("must be at most {max}"));
            return None;
        }
        Some(number)
    }

    fn value(&mut self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.requested.push(key.to_owned());
        self.table.and_then(|table| table.get(key))
    }

    fn expect<T>(
        &self,
        key: &str,
        value: &'a Spanned<DeValue<'a>>,
        expected: &str,
        read: impl Fn(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<T> {
        let read = read(value.get_ref());
        if read.is_none() {
            self.context.add_error(value.span().start, format!("{}{key}: must be {expected}", self.prefix));
        }
        read
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        for (key, _) in self.table.into_iter().flatten() {
            if !self.requested.iter().any(|requested| requested == key.get_ref()) {
                let nearest = nearest_key(key.get_ref(), &self.requested);
                let hint = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
                let message = format!("unknown key `{}{}`{hint}", self.prefix, key.get_ref());
                self.context.add_error(key.span().start, message);
            }
        }
    }
}
