//! What is particular to the network that this deployment serves.

use std::collections::HashMap;

use crate::config::Section;
use crate::methods::{Family, METHODS, MethodId};
use crate::params::Tag;

/// The settings of the network.
#[derive(Clone, Debug)]
pub struct Network {
    /// A label in metrics and in the console.
    pub name: String,
    pub families: Vec<Family>,
    /// The chain that nodes must be of; theirs decide if it is left out.
    pub chain_id: Option<u64>,
    pub unsupported_tags: HashMap<Tag, Vec<&'static str>>,
    /// Methods that a partner may answer during an outage.
    pub failover: Vec<&'static str>,
    /// Whether `eth_call` without `from` is refused. Common clients leave it out, so this is off by default.
    pub eth_call_requires_from: bool,
}

const DEMO: &str = "demo";

/// Largest id of a chain: what signatures can carry (EIP-2294).
const CHAIN_ID_MAX: u64 = (i64::MAX - 36) as u64;

impl Network {
    /// Whether the network has the name of the demo chain, which is also the name of a start without configuration.
    pub fn is_demo(&self) -> bool {
        self.name == DEMO
    }

    pub(crate) fn read(network: &mut Section<'_>, methods: &mut Section<'_>) -> Self {
        let name = network.text("name", DEMO);
        let families = families(network, &name);
        Self {
            families,
            chain_id: network.optional_number("chain_id", CHAIN_ID_MAX),
            unsupported_tags: unsupported_tags(network),
            failover: failover(methods),
            eth_call_requires_from: methods.flag("eth_call_requires_from", false),
            name,
        }
    }
}

fn families(network: &mut Section<'_>, name: &str) -> Vec<Family> {
    match network.optional_text("family").as_deref() {
        // The demo chain is there to try everything.
        None if name == DEMO => vec![Family::Ethereum, Family::Zksync],
        None | Some("ethereum") => vec![Family::Ethereum],
        Some("zksync") => vec![Family::Zksync],
        Some(other) => {
            network.mistake("family", &format!("no family `{other}`; there are ethereum, zksync"));
            Vec::new()
        }
    }
}

fn unsupported_tags(network: &mut Section<'_>) -> HashMap<Tag, Vec<&'static str>> {
    let mut tags = HashMap::new();
    let mut section = network.section("unsupported_tags");
    for name in section.names() {
        let methods = section.texts(&name).unwrap_or_default();
        let rows = rows(&mut section, &name, &methods);
        match Tag::named(&name) {
            Some(tag) => drop(tags.insert(tag, rows)),
            None => section.mistake(&name, "no such tag"),
        }
    }
    tags
}

fn failover(methods: &mut Section<'_>) -> Vec<&'static str> {
    match methods.texts("failover") {
        None => METHODS.iter().filter(|method| method.failover).map(|method| method.name).collect(),
        Some(names) => rows(methods, "failover", &names),
    }
}

/// The names as they stand in the method table; others are mistakes.
fn rows(section: &mut Section<'_>, key: &str, names: &[String]) -> Vec<&'static str> {
    let mut rows = Vec::new();
    for name in names {
        match MethodId::named(name) {
            Some(id) => rows.push(id.row().name),
            None => section.mistake(key, &format!("no method `{name}`")),
        }
    }
    rows
}
