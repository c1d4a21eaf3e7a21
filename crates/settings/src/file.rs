//! A configuration file as a whole.

use std::fmt;

use toml::de::DeTable;

use crate::section::{Found, KnownKey, Section};

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub line: usize,
    pub what: String,
}

/// All that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mistake { line, what }) in self.0.iter().enumerate() {
            let end = if index + 1 == self.0.len() { "" } else { "\n" };
            write!(f, "line {line}: {what}{end}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Reads the text of a configuration file with `read_root`, which is handed the root table.
pub fn read<T>(text: &str, read_root: impl FnOnce(&mut Section<'_>) -> T) -> Result<T, Mistakes> {
    let found = Found::in_text(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        found.add(error.span().map_or(0, |span| span.start), error.message().to_owned());
    }
    let settings = read_root(&mut Section::root(root.get_ref(), &found));
    let mistakes = mistakes(found);
    if mistakes.is_empty() { Ok(settings) } else { Err(Mistakes(mistakes)) }
}

/// What an empty file gives: the defaults.
pub fn read_empty<T>(read_root: impl FnOnce(&mut Section<'_>) -> T) -> T {
    let found = Found::default();
    let settings = read_root(&mut Section::empty(&found));
    debug_assert!(found.into_mistakes().is_empty(), "the defaults are right");
    settings
}

/// Every key that `read_root` would find in a file with these sections.
pub fn known_keys<T>(text: &str, read_root: impl FnOnce(&mut Section<'_>) -> T) -> Vec<KnownKey> {
    let found = Found::default();
    let (root, _) = DeTable::parse_recoverable(text);
    drop(read_root(&mut Section::root(root.get_ref(), &found)));
    found.into_asked()
}

fn mistakes(found: Found) -> Vec<Mistake> {
    found.into_mistakes().into_iter().map(|(line, what)| Mistake { line, what }).collect()
}
