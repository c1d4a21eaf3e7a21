//! Reads a whole configuration file.

use std::fmt;

use toml::de::DeTable;

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
