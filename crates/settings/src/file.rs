//! Reads a whole configuration file.

use std::fmt;

use toml::de::{DeTable, DeValue};

use crate::section::{KnownKey, ReadContext, Section};

/// One error in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub line: usize,
    pub message: String,
}

/// All errors in a configuration file, in the order of their lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, ConfigError { line, message }) in self.0.iter().enumerate() {
            let end = if index + 1 == self.0.len() { "" } else { "\n" };
            write!(f, "line {line}: {message}{end}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Reads the text of a configuration file; `read_root` gets the root table.
pub fn read<T>(text: &str, read_root: impl FnOnce(&mut Section<'_>) -> T) -> Result<T, ConfigErrors> {
    let context = ReadContext::new(text);
    let (root, syntax_errors) = DeTable::parse_recoverable(text);
    for error in syntax_errors {
        context.add_error(error.span().map_or(0, |span| span.start), error.message().to_owned());
    }
    let settings = read_root(&mut Section::root(root.get_ref(), &context));
    let errors: Vec<_> =
        context.into_errors().into_iter().map(|(line, message)| ConfigError { line, message }).collect();
    if errors.is_empty() { Ok(settings) } else { Err(ConfigErrors(errors)) }
}

/// The defaults: the settings of an empty file.
pub fn read_empty<T>(read_root: impl FnOnce(&mut Section<'_>) -> T) -> T {
    let context = ReadContext::default();
    let settings = read_root(&mut Section::empty(&context));
    debug_assert!(context.into_errors().is_empty(), "defaults are valid");
    settings
}

/// Every key that `read_root` reads from a file with these sections.
pub fn known_keys<T>(text: &str, read_root: impl FnOnce(&mut Section<'_>) -> T) -> Vec<KnownKey> {
    let context = ReadContext::default();
    let (root, _) = DeTable::parse_recoverable(text);
    drop(read_root(&mut Section::root(root.get_ref(), &context)));
    context.into_known_keys()
}

/// A value that a file sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileValue {
    /// The key with the names of its tables, as in [`KnownKey`].
    pub path: String,
    /// The value as it is written.
    pub text: String,
    pub line: usize,
}

/// Every value that a file sets, in the order of its tables.
pub fn file_values(text: &str) -> Vec<FileValue> {
    let (root, _) = DeTable::parse_recoverable(text);
    let mut values = Vec::new();
    add_values(text, "", root.get_ref(), &mut values);
    values
}

fn add_values(text: &str, prefix: &str, table: &DeTable<'_>, values: &mut Vec<FileValue>) {
    for (key, value) in table {
        let path = format!("{prefix}{}", key.get_ref());
        match value.get_ref() {
            DeValue::Table(table) => add_values(text, &format!("{path}."), table, values),
            DeValue::Array(elements) if elements.iter().any(|element| element.get_ref().is_table()) => {
                let tables = elements.iter().filter_map(|element| element.get_ref().as_table());
                for (table, number) in tables.zip(1..) {
                    add_values(text, &format!("{path} {number}."), table, values);
                }
            }
            _ => {
                let line = text.bytes().take(key.span().start).filter(|&byte| byte == b'\n').count() + 1;
                let written = text.get(value.span()).unwrap_or_default().to_owned();
                values.push(FileValue { path, text: written, line });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cargo sets these variables for tests.
    #[test]
    fn every_kind_of_value_may_be_an_environment_variable() {
        let read_all = |section: &mut Section<'_>| {
            let texts = section.texts("texts");
            (section.number("number", 7), section.optional_flag("flag"), section.text("text", ""), texts)
        };
        let text = "number = \"${CARGO_PKG_VERSION_MINOR}\"\ntext = \"is ${CARGO_PKG_NAME}\"\ntexts = [\"a\", \"${CARGO_PKG_NAME}\"]\n";
        let name = "chaingate-settings";
        let expected = (1, None, format!("is {name}"), Some(vec!["a".to_owned(), name.to_owned()]));
        assert_eq!(read(text, read_all), Ok(expected));
        let text =
            "flag = \"${CARGO_PKG_NAME}\"\nnumber = \"${CARGO_PKG_NAME}\"\ntext = \"${NOBODY_SETS_THIS}\"\n";
        let errors = read(text, read_all).unwrap_err().to_string();
        for line in [
            "line 1: flag: must be true or false",
            "line 2: number: must be a whole number",
            "line 3: text: the environment variable NOBODY_SETS_THIS is not set",
        ] {
            assert!(errors.contains(line), "{errors}");
        }
    }

    #[test]
    fn values_have_the_paths_of_known_keys_and_their_lines() {
        let text = "a = 1\n[t]\nb = \"x\"\nc = { d = true }\n[[k]]\ne = [1, 2]\n[[k]]\ne = []\n";
        let found: Vec<_> =
            file_values(text).into_iter().map(|value| (value.path, value.text, value.line)).collect();
        let value = |path: &str, text: &str, line| (path.to_owned(), text.to_owned(), line);
        let expected = [
            value("a", "1", 1),
            value("k 1.e", "[1, 2]", 6),
            value("k 2.e", "[]", 8),
            value("t.b", "\"x\"", 3),
            value("t.c.d", "true", 4),
        ];
        let mut sorted = found;
        sorted.sort();
        assert_eq!(sorted, expected);
    }
}
