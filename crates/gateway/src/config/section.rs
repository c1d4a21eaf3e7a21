//! One table of the configuration file. Keys are asked for by name; what nobody asked for is a mistake.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Mistake;

/// The mistakes found so far, by where they stand in the text.
#[derive(Debug, Default)]
pub(crate) struct Found {
    text: String,
    mistakes: RefCell<Vec<(usize, String)>>,
    /// Every key that was asked for, with what it is when it is left out.
    asked: RefCell<Vec<(String, String)>>,
}

impl Found {
    pub(super) fn in_text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    pub(super) fn add(&self, at: usize, what: String) {
        self.mistakes.borrow_mut().push((at, what));
    }

    pub(crate) fn into_asked(self) -> Vec<(String, String)> {
        self.asked.into_inner()
    }

    /// In the order of the lines.
    pub(super) fn into_mistakes(self) -> Vec<Mistake> {
        let mut mistakes = self.mistakes.into_inner();
        mistakes.sort();
        let line = |at: usize| self.text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1;
        mistakes.into_iter().map(|(at, what)| Mistake { line: line(at), what }).collect()
    }
}

/// A table, or the absence of one.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    table: Option<&'a DeTable<'a>>,
    /// `limits.` for the keys of `[limits]`.
    prefix: String,
    /// Where the table stands.
    at: usize,
    asked: Vec<String>,
    found: &'a Found,
}

impl<'a> Section<'a> {
    pub(super) fn root(table: &'a DeTable<'a>, found: &'a Found) -> Self {
        Self { table: Some(table), prefix: String::new(), at: 0, asked: Vec::new(), found }
    }

    pub(super) fn empty(found: &'a Found) -> Self {
        Self { table: None, prefix: String::new(), at: 0, asked: Vec::new(), found }
    }

    /// The table under `key`.
    pub(crate) fn section(&mut self, key: &str) -> Section<'a> {
        let value = self.value(key);
        let table = value.and_then(|value| self.expect(key, value, "a table", |value| value.as_table()));
        self.below(key, table, value.map_or(self.at, |value| value.span().start))
    }

    /// The tables under `key`, which stands in double brackets. Mistakes name each by its place, counted from 1.
    pub(crate) fn sections(&mut self, key: &str) -> Vec<Section<'a>> {
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
    pub(crate) fn names(&mut self) -> Vec<String> {
        let names = self.table.into_iter().flatten().map(|(key, _)| key.get_ref().to_string());
        names.collect()
    }

    /// Notes a key for the document about all of them.
    fn note(&self, key: &str, usual: impl std::fmt::Display) {
        self.found.asked.borrow_mut().push((format!("{}{key}", self.prefix), usual.to_string()));
    }

    pub(crate) fn number(&mut self, key: &str, usual: u64) -> u64 {
        self.note(key, usual);
        self.integer(key).unwrap_or(usual)
    }

    pub(crate) fn size(&mut self, key: &str, usual: usize) -> usize {
        self.note(key, usual);
        self.integer(key).map_or(usual, |number| usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// A limit that can be switched off, which is written as 0.
    pub(crate) fn limit(&mut self, key: &str, usual: Option<u64>) -> Option<u64> {
        self.note(key, usual.unwrap_or(0));
        self.integer(key).map_or(usual, |number| (number > 0).then_some(number))
    }

    pub(crate) fn milliseconds(&mut self, key: &str, usual: Duration) -> Duration {
        self.note(key, usual.as_millis());
        self.integer(key).map_or(usual, Duration::from_millis)
    }

    pub(crate) fn flag(&mut self, key: &str, usual: bool) -> bool {
        self.note(key, usual);
        let value = self.value(key);
        value
            .and_then(|value| self.expect(key, value, "true or false", |value| value.as_bool()))
            .unwrap_or(usual)
    }

    pub(crate) fn text(&mut self, key: &str, usual: &str) -> String {
        self.note(key, format_args!("\"{usual}\""));
        self.string(key).unwrap_or_else(|| usual.to_owned())
    }

    pub(crate) fn optional_text(&mut self, key: &str) -> Option<String> {
        self.note(key, "");
        self.string(key)
    }

    fn string(&mut self, key: &str) -> Option<String> {
        let value = self.value(key)?;
        self.expect(key, value, "a string", |value| value.as_str().map(str::to_owned))
    }

    /// An array of strings.
    pub(crate) fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        self.note(key, "");
        let value = self.value(key)?;
        let all = |value: &'a DeValue<'a>| {
            let texts = value.as_array()?.iter().map(|element| element.get_ref().as_str().map(str::to_owned));
            texts.collect()
        };
        self.expect(key, value, "an array of strings", all)
    }

    pub(crate) fn address(&mut self, key: &str, usual: SocketAddr) -> SocketAddr {
        self.note(key, format_args!("\"{usual}\""));
        match self.string(key).map(|text| text.parse()) {
            None => usual,
            Some(Ok(address)) => address,
            Some(Err(_)) => {
                self.mistake(key, "an address and a port are needed, such as 127.0.0.1:8545");
                usual
            }
        }
    }

    /// Records what is wrong with the value of `key`, at its line or else at that of the table.
    pub(crate) fn mistake(&mut self, key: &str, what: &str) {
        let at = self.value(key).map_or(self.at, |value| value.span().start);
        self.found.add(at, format!("{}{key}: {what}", self.prefix));
    }

    fn integer(&mut self, key: &str) -> Option<u64> {
        let value = self.value(key)?;
        self.expect(key, value, "a whole number that is not negative", |value| {
            let integer = value.as_integer()?;
            u64::from_str_radix(integer.as_str(), integer.radix()).ok()
        })
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
            self.found.add(value.span().start, format!("{}{key}: {want} is needed", self.prefix));
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
