//! The configuration in effect, for operators.

use askama::Template;

use super::PageFrame;

/// `GET /configuration`.
#[derive(Template)]
#[template(path = "configuration.html")]
pub(crate) struct ConfigurationPage {
    pub(crate) frame: PageFrame,
    /// The path of the configuration file, if there is one.
    pub(crate) file: Option<String>,
    pub(crate) sections: Vec<ConfigurationSection>,
}

/// A section of the configuration, such as `[listen]`.
#[derive(Clone, Debug)]
pub struct ConfigurationSection {
    /// Without brackets, such as `plans.core`; the empty string is the top of the file.
    pub name: String,
    pub rows: Vec<ConfigurationRow>,
}

/// A key of the configuration.
#[derive(Clone, Debug)]
pub struct ConfigurationRow {
    pub key: String,
    pub value: ConfigurationValue,
    pub source: ConfigurationSource,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigurationValue {
    /// As it would be written in the file.
    Shown(String),
    /// A secret is set.
    Hidden,
    NotSet,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigurationSource {
    Default,
    /// A line of the file.
    File {
        line: u32,
    },
    /// The name of a variable.
    Environment(String),
    /// An option such as `--console`.
    Flag(String),
}
