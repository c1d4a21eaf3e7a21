//! The configuration: one TOML file, every key optional.
//!
//! Each module reads the keys that it owns, with its own defaults; this file composes them. Reading never stops at the
//! first mistake: all are gathered, each with its line, and a configuration with any mistake is none.

mod section; // one table of the file, read key by key

use std::fmt;
use std::path::PathBuf;

use crate::answer::remote::settings as remote;
use crate::callers::{self, Plans, StaticKey};
use crate::limits::Limits;
use crate::listen;
use crate::methods::Family;
use crate::network::Network;

pub(crate) use section::{KnownKey, Section, ZeroMeaning};

/// Everything that can be configured.
#[derive(Debug)]
pub struct Config {
    pub data_dir: PathBuf,
    pub network: Network,
    pub listen: listen::Config,
    pub keys: Vec<StaticKey>,
    pub plans: Plans,
    pub limits: Limits,
    pub remote: remote::Config,
}

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

impl Default for Config {
    fn default() -> Self {
        let found = section::Found::default();
        let config = Self::read(&mut Section::empty(&found));
        debug_assert!(found.into_mistakes().is_empty(), "the defaults are right");
        config
    }
}

impl Config {
    /// Reads the text of a configuration file.
    pub fn parse(text: &str) -> Result<Self, Mistakes> {
        let found = section::Found::in_text(text);
        let (root, errors) = toml::de::DeTable::parse_recoverable(text);
        for error in errors {
            found.add(error.span().map_or(0, |span| span.start), error.message().to_owned());
        }
        let config = Self::read(&mut Section::root(root.get_ref(), &found));
        let mistakes = found.into_mistakes();
        if mistakes.is_empty() { Ok(config) } else { Err(Mistakes(mistakes)) }
    }

    /// Every key that a file with these sections could have.
    pub(crate) fn keys_of(text: &str) -> Vec<KnownKey> {
        let found = section::Found::default();
        let (root, _) = toml::de::DeTable::parse_recoverable(text);
        let _config = Self::read(&mut Section::root(root.get_ref(), &found));
        found.into_asked()
    }

    /// Whether the demo chain is served, which is the only chain that comes with a key.
    pub fn serves_demo_chain(&self) -> bool {
        self.network.is_demo() && self.remote.nodes.is_empty()
    }

    /// What is wrong with the settings as a whole, after the command line has overridden the file.
    ///
    /// Files that the settings name are read, because a gateway would not start without them.
    pub fn problems(&self) -> Vec<String> {
        let tls = self.listen.tls.as_ref().and_then(|tls| tls.check().err());
        self.listen.address_conflict().into_iter().chain(tls).collect()
    }

    fn read(root: &mut Section<'_>) -> Self {
        root.refuse("store", "not available yet; accounts and keys come from this file, so leave it out");
        root.refuse("shared", "not available yet; each gateway counts limits for itself, so leave it out");
        let plans = Plans::read(&mut root.section("plans"));
        let limits = {
            let mut cache = root.section("cache");
            Limits::read(&mut root.section("limits"), &mut cache)
        };
        let network = {
            let mut methods = root.section("methods");
            Network::read(&mut root.section("network"), &mut methods)
        };
        let is_ethereum = network.families.as_slice() != [Family::Zksync];
        let remote = remote::Config::read(root, is_ethereum);
        let mut config = Self {
            data_dir: root.text("data_dir", "chaingate-data").into(),
            listen: listen::Config::read(&mut root.section("listen")),
            keys: callers::read_keys(root, &plans, &network),
            limits,
            remote,
            plans,
            network,
        };
        if config.serves_demo_chain() {
            callers::add_demo_key(&mut config.keys, &config.plans);
        }
        if config.keys.is_empty() {
            root.mistake("key", NO_KEY);
        }
        config
    }
}

/// What is wrong with a configuration in which nobody may call.
const NO_KEY: &str =
    "only the demo chain has a key by itself; add one: [[key]] with key = \"a long random text\"";

#[cfg(test)]
mod tests;
