//! The settings of the network that this deployment serves.

use std::collections::HashMap;
use std::path::PathBuf;

use alloy_primitives::B256;

use settings::Section;

use crate::method::NetworkFamily;
use crate::params::Tag;
use crate::table::{METHODS, MethodId};

/// The settings of the network.
#[derive(Clone, Debug)]
pub struct Network {
    /// A label in metrics and in the console.
    pub name: String,
    pub families: Vec<NetworkFamily>,
    /// The expected chain id; if it is not set, a quorum of the nodes decides.
    pub chain_id: Option<u64>,
    /// The expected hash of block 0; if it is not set, a quorum of the nodes decides.
    pub genesis_hash: Option<B256>,
    /// A block that the chain must have.
    pub checkpoint: Option<Checkpoint>,
    /// The genesis file with the fork rules for calls on proven state.
    pub genesis: Option<PathBuf>,
    /// Methods that refuse a tag, by tag.
    pub unsupported_tags: HashMap<Tag, Vec<&'static str>>,
    /// Methods that a partner may answer during an outage.
    pub failover: Vec<&'static str>,
    /// Whether `eth_call` without `from` is refused. Off by default, because common clients omit `from`.
    pub eth_call_requires_from: bool,
}

/// The hash that the block with this number must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub number: u64,
    pub hash: B256,
}

const DEMO: &str = "demo";

/// The largest chain id that signatures can carry (EIP-2294).
const CHAIN_ID_MAX: u64 = (i64::MAX - 36) as u64;

impl Network {
    /// Whether this is the demo chain, which is the default without a configuration.
    pub fn is_demo(&self) -> bool {
        self.name == DEMO
    }

    pub fn read(network: &mut Section<'_>, methods: &mut Section<'_>) -> Self {
        let name = network.text("name", DEMO);
        let families = families(network, &name);
        Self {
            families,
            chain_id: network.optional_number("chain_id", CHAIN_ID_MAX),
            genesis_hash: hash(network, "genesis_hash"),
            checkpoint: checkpoint(network),
            genesis: network.optional_text("genesis").map(PathBuf::from),
            unsupported_tags: unsupported_tags(network),
            failover: failover(methods),
            eth_call_requires_from: methods.flag("eth_call_requires_from", false),
            name,
        }
    }
}

fn hash(section: &mut Section<'_>, key: &str) -> Option<B256> {
    let text = section.optional_text(key)?;
    let hash =
        text.strip_prefix("0x").filter(|digits| digits.len() == 64).and_then(|digits| digits.parse().ok());
    if hash.is_none() {
        section.error(key, "must be a hash: 0x and 64 hexadecimal digits");
    }
    hash
}

/// More blocks than any chain will have.
const BLOCK_NUMBER_MAX: u64 = 1 << 53;

fn checkpoint(network: &mut Section<'_>) -> Option<Checkpoint> {
    let mut section = network.section("checkpoint");
    match (section.optional_number("number", BLOCK_NUMBER_MAX), hash(&mut section, "hash")) {
        (Some(number), Some(hash)) => Some(Checkpoint { number, hash }),
        (None, None) => None,
        (Some(_), None) => {
            section.error("hash", "a checkpoint needs a number and a hash");
            None
        }
        (None, Some(_)) => {
            section.error("number", "a checkpoint needs a number and a hash");
            None
        }
    }
}

fn families(network: &mut Section<'_>, name: &str) -> Vec<NetworkFamily> {
    match network.optional_text("family").as_deref() {
        // The demo chain offers the methods of all families, so that they can be tried.
        None if name == DEMO => vec![NetworkFamily::Ethereum, NetworkFamily::Zksync],
        None | Some("ethereum") => vec![NetworkFamily::Ethereum],
        Some("zksync") => vec![NetworkFamily::Zksync],
        Some(other) => {
            network.error("family", &format!("unknown family `{other}`; must be ethereum or zksync"));
            Vec::new()
        }
    }
}

fn unsupported_tags(network: &mut Section<'_>) -> HashMap<Tag, Vec<&'static str>> {
    let mut tags = HashMap::new();
    let mut section = network.section("unsupported_tags");
    for name in section.keys() {
        let methods = section.texts(&name).unwrap_or_default();
        let methods = known_methods(&mut section, &name, &methods);
        match Tag::named(&name) {
            Some(tag) => drop(tags.insert(tag, methods)),
            None => {
                section
                    .error(&name, "unknown tag; must be one of latest, earliest, pending, safe, finalized");
            }
        }
    }
    tags
}

fn failover(methods: &mut Section<'_>) -> Vec<&'static str> {
    match methods.texts("failover") {
        None => METHODS.iter().filter(|method| method.rules.failover).map(|method| method.name).collect(),
        Some(names) => known_methods(methods, "failover", &names),
    }
}

/// The names that the method table has; each other name is reported as an error.
fn known_methods(section: &mut Section<'_>, key: &str, names: &[String]) -> Vec<&'static str> {
    let mut known = Vec::new();
    for name in names {
        match MethodId::named(name) {
            Some(id) => known.push(id.row().name),
            None => section.error(key, &format!("unknown method `{name}`")),
        }
    }
    known
}
