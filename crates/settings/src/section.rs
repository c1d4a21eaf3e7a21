//! One table of the configuration file. Keys are asked for by name; what nobody asked for is a mistake.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The mistakes found so far, by where they stand in the text.
#[derive(Debug, Default)]
pub(crate) struct Found {
    text: String,
    mistakes: RefCell<Vec<(usize, String)>>,
    /// Every key that was asked for.
    asked: RefCell<Vec<KnownKey>>,
}

/// A key that a file may have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownKey {
    /// The key with the names of its tables.
    pub path: String,
    /// Its value when it is left out, as it is written in a file.
    pub default: String,
    /// What 0 means; `None` where the value is not a number.
    pub zero: Option<ZeroMeaning>,
}

/// What 0 means as the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZeroMeaning {
    /// Nothing: it would be a limit that lets nothing through, so it is refused.
    Refused,
    /// There is no limit.
    NoLimit,
    /// There is no delay.
    NoDelay,
}

/// Longest time of a key in milliseconds, a year: nobody waits longer, and sums of such times never overflow.
const MILLISECONDS_MAX: u64 = 366 * 24 * 60 * 60 * 1_000;

/// Largest number of a key that has no smaller bound of its own: sums and products with it stay within 64 bits.
const NUMBER_MAX: u64 = 1 << 50;

impl Found {
    pub(crate) fn in_text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    pub(crate) fn add(&self, at: usize, what: String) {
        self.mistakes.borrow_mut().push((at, what));
    }

    pub(crate) fn into_asked(self) -> Vec<KnownKey> {
        self.asked.into_inner()
    }

    /// What is wrong on which line, in the order of the lines.
    pub(crate) fn into_mistakes(self) -> Vec<(usize, String)> {
        let mut mistakes = self.mistakes.into_inner();
        mistakes.sort();
        let line = |at: usize| self.text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1;
        mistakes.into_iter().map(|(at, what)| (line(at), what)).collect()
    }
}

/// A table, or the absence of one.
#[derive(Debug)]
pub struct Section<'a> {
    table: Option<&'a DeTable<'a>>,
    /// `limits.` for the keys of `[limits]`.
    prefix: String,
    /// Where the table stands.
    at: usize,
    asked: Vec<String>,
    found: &'a Found,
}

impl<'a> Section<'a> {
    pub(crate) fn root(table: &'a DeTable<'a>, found: &'a Found) -> Self {
        Self { table: Some(table), prefix: String::new(), at: 0, asked: Vec::new(), found }
    }

    pub(crate) fn empty(found: &'a Found) -> Self {
        Self { table: None, prefix: String::new(), at: 0, asked: Vec::new(), found }
    }

    /// The table under `key`.
    pub fn section(&mut self, key: &str) -> Section<'a> {
        let value = self.value(key);
        let table = value.and_then(|value| self.expect(key, value, "a table", |value| value.as_table()));
        self.below(key, table, value.map_or(self.at, |value| value.span().start))
    }

    /// The tables under `key`, which stands in double brackets. Mistakes name each by its place, counted from 1.
    pub fn sections(&mut self, key: &str) -> Vec<Section<'a>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let array = self.expect(key, value, "an array of tables", |value| value.as_array());
        let tables = array.into_iter().flatten().enumerate().filter_map(|(index, element)| {
            let table = self.expect(key, element, "a table", |element| element.as_table())?;
            Some(self.below(&format!("{key} {}", index + 1), Some(table), element.span().start))
        });
        tables.collect()
    }

    fn below(&self, key: &str, table: Option<&'a DeTable<'a>>, at: usize) -> Section<'a> {
        let prefix = format!("{}{key}.", self.prefix);
        Section { table, prefix, at, asked: Vec::new(), found: self.found }
    }

    /// The keys of this table, all of which count as asked for.
    pub fn names(&mut self) -> Vec<String> {
        let names = self.table.into_iter().flatten().map(|(key, _)| key.get_ref().to_string());
        names.collect()
    }

    /// Notes a key for the document about all of them.
    fn note(&self, key: &str, default: impl std::fmt::Display) {
        self.note_number(key, default, None);
    }

    fn note_number(&self, key: &str, default: impl std::fmt::Display, zero: Option<ZeroMeaning>) {
        let (path, default) = (format!("{}{key}", self.prefix), default.to_string());
        self.found.asked.borrow_mut().push(KnownKey { path, default, zero });
    }

    /// A number from 1 on.
    pub fn number(&mut self, key: &str, usual: u64) -> u64 {
        self.number_up_to(key, usual, NUMBER_MAX)
    }

    /// A number from 1 to `most`.
    pub fn number_up_to(&mut self, key: &str, usual: u64, most: u64) -> u64 {
        self.note_number(key, usual, Some(ZeroMeaning::Refused));
        self.positive(key, most).unwrap_or(usual)
    }

    /// A number from 1 on, of things that are counted in memory.
    pub fn size(&mut self, key: &str, usual: usize) -> usize {
        self.size_up_to(key, usual, NUMBER_MAX as usize)
    }

    /// A number from 1 to `most`, of things that are counted in memory.
    pub fn size_up_to(&mut self, key: &str, usual: usize, most: usize) -> usize {
        self.note_number(key, usual, Some(ZeroMeaning::Refused));
        self.positive(key, most as u64).map_or(usual, |number| number as usize)
    }

    /// A number from 1 to `most` that has no fixed default.
    pub fn optional_number(&mut self, key: &str, most: u64) -> Option<u64> {
        self.note_number(key, "", Some(ZeroMeaning::Refused));
        self.positive(key, most)
    }

    /// A limit that can be switched off, which is written as 0.
    pub fn limit(&mut self, key: &str, usual: Option<u64>) -> Option<u64> {
        self.note_number(key, usual.unwrap_or(0), Some(ZeroMeaning::NoLimit));
        self.integer(key, NUMBER_MAX).map_or(usual, |number| (number > 0).then_some(number))
    }

    /// A number from 0 on, or a word that stands for one. There is no fixed default.
    pub fn number_or_word(&mut self, key: &str, word: &str, meaning: u64) -> Option<u64> {
        self.note(key, "");
        let value = self.value(key)?;
        match value.get_ref().as_str() {
            Some(text) if text == word => Some(meaning),
            Some(_) => {
                self.mistake(key, &format!("must be a block number or \"{word}\""));
                None
            }
            None => self.integer(key, NUMBER_MAX),
        }
    }

    /// A time from 1 ms on.
    pub fn milliseconds(&mut self, key: &str, usual: Duration) -> Duration {
        self.note_number(key, usual.as_millis(), Some(ZeroMeaning::Refused));
        self.positive(key, MILLISECONDS_MAX).map_or(usual, Duration::from_millis)
    }

    /// A time from 1 ms on that has no fixed default.
    pub fn optional_milliseconds(&mut self, key: &str) -> Option<Duration> {
        self.optional_number(key, MILLISECONDS_MAX).map(Duration::from_millis)
    }

    /// A time to wait, which may be 0.
    pub fn delay(&mut self, key: &str, usual: Duration) -> Duration {
        self.note_number(key, usual.as_millis(), Some(ZeroMeaning::NoDelay));
        self.integer(key, MILLISECONDS_MAX).map_or(usual, Duration::from_millis)
    }

    pub fn flag(&mut self, key: &str, usual: bool) -> bool {
        self.note(key, usual);
        let value = self.value(key);
        value
            .and_then(|value| self.expect(key, value, "true or false", |value| value.as_bool()))
            .unwrap_or(usual)
    }

    pub fn text(&mut self, key: &str, usual: &str) -> String {
        self.note(key, format_args!("\"{usual}\""));
        self.string(key).unwrap_or_else(|| usual.to_owned())
    }

    pub fn optional_text(&mut self, key: &str) -> Option<String> {
        self.note(key, "");
        self.string(key)
    }

    fn string(&mut self, key: &str) -> Option<String> {
        let value = self.value(key)?;
        self.expect(key, value, "a string", |value| value.as_str().map(str::to_owned))
    }

    /// An array of strings.
    pub fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        self.note(key, "");
        let value = self.value(key)?;
        let all = |value: &'a DeValue<'a>| {
            let texts = value.as_array()?.iter().map(|element| element.get_ref().as_str().map(str::to_owned));
            texts.collect()
        };
        self.expect(key, value, "an array of strings", all)
    }

    pub fn address(&mut self, key: &str, usual: SocketAddr) -> SocketAddr {
        self.note(key, format_args!("\"{usual}\""));
        match self.string(key).map(|text| text.parse()) {
            None => usual,
            Some(Ok(address)) => address,
            Some(Err(_)) => {
                self.mistake(key, "must be an address and a port, such as 127.0.0.1:8545");
                usual
            }
        }
    }

    /// Records what is wrong with the value of `key`, at its line or else at that of the table.
    pub fn mistake(&mut self, key: &str, what: &str) {
        let at = self.value(key).map_or(self.at, |value| value.span().start);
        self.found.add(at, format!("{}{key}: {what}", self.prefix));
    }

    /// Refuses a key that earlier versions or other services have, with the reason.
    pub fn refuse(&mut self, key: &str, why: &str) {
        if self.value(key).is_some() {
            self.mistake(key, why);
        }
    }

    fn positive(&mut self, key: &str, most: u64) -> Option<u64> {
        let number = self.integer(key, most)?;
        if number == 0 {
            self.mistake(key, "must be greater than 0");
            return None;
        }
        Some(number)
    }

    fn integer(&mut self, key: &str, most: u64) -> Option<u64> {
        let value = self.value(key)?;
        let number = self.expect(key, value, "a whole number that is not negative", |value| {
            let integer = value.as_integer()?;
            u64::from_str_radix(integer.as_str(), integer.radix()).ok()
        })?;
        if number > most {
            self.mistake(key, &format!("must be at most {most}"));
            return None;
        }
        Some(number)
    }

    fn value(&mut self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.asked.push(key.to_owned());
        self.table.and_then(|table| table.get(key))
    }

    fn expect<T>(
        &self,
        key: &str,
        value: &'a Spanned<DeValue<'a>>,
        want: &str,
        read: impl Fn(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<T> {
        let read = read(value.get_ref());
        if read.is_none() {
            self.found.add(value.span().start, format!("{}{key}: must be {want}", self.prefix));
        }
        read
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        for (key, _) in self.table.into_iter().flatten() {
            if !self.asked.iter().any(|asked| asked == key.get_ref()) {
                self.found.add(key.span().start, format!("unknown key `{}{}`", self.prefix, key.get_ref()));
            }
        }
    }
}
