//! `[[node]]`, `[[partner]]`, `[pool]`, `[integrity]` and `[follow]` of the configuration.

mod follow; // which blocks are stored
mod state_mode; // how far nodes are believed about the state

use std::fmt;
use std::time::Duration;

use methods::MethodId;
use nodes::{Endpoint, REPLY_MEMORY_BYTES};
use settings::Section;

pub use follow::{FollowMode, FollowSettings};
pub use state_mode::StateMode;

/// The nodes and partners that are asked, and how far they are trusted.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    pub nodes: Vec<NodeEndpoint>,
    pub partners: Vec<PartnerConfig>,
    pub integrity: Integrity,
    pub follow: FollowSettings,
    /// How far nodes are believed about the state.
    pub state: StateMode,
    /// How long what a quorum has confirmed is taken for true.
    pub confirmed_for: Duration,
    /// Nodes that must have a block before it is the head; a majority by default.
    pub quorum: Option<u64>,
    /// How long a call may take over all nodes that are asked, unless its method has a limit of its own.
    pub call_timeout: Duration,
    /// How long the head may stand still before it is a fault; ten blocks by default.
    /// How long the head may stay unchanged; zero for ever.
    pub head_stall: Option<Duration>,
    /// How long a quorum must stay at an older block until it is followed.
    pub rollback_after: Option<Duration>,
    /// Time between two polls of a node's head; by default it follows the time between blocks.
    pub poll_interval: Option<Duration>,
    /// Bytes of nodes' replies that may be in memory at once, inflated, until their answers go to callers.
    pub reply_memory_bytes: usize,
}

/// One endpoint. It is shown without its address, which may carry credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeEndpoint {
    pub name: Option<String>,
    pub url: String,
    /// Where new heads are pushed.
    pub ws_url: Option<String>,
    pub headers: Vec<(String, String)>,
    pub http2: bool,
}

impl fmt::Debug for NodeEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeEndpoint").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A foreign provider, and how much may be asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartnerConfig {
    pub remote: NodeEndpoint,
    /// Methods that it may be asked; by default all that may fail over.
    pub methods: Option<Vec<&'static str>>,
    pub calls_per_second: u64,
    pub calls_per_day: u64,
}

/// How answers about blocks are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Integrity {
    /// From blocks that are proven here.
    #[default]
    Prove,
    /// They are passed on from a node.
    Off,
}

const CALL_TIMEOUT: Duration = Duration::from_secs(8);

/// Less is refused: ordinary blocks would not fit.
const REPLY_MEMORY_BYTES_MIN: usize = 1 << 20;

/// Partners are for outages: what a small application needs, and no surprise on the bill.
const PARTNER_CALLS_PER_SECOND: u64 = 50;
const PARTNER_CALLS_PER_DAY: u64 = 100_000;

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            partners: Vec::new(),
            integrity: Integrity::default(),
            follow: FollowSettings::default(),
            state: StateMode::default_for(0),
            confirmed_for: nodes::CONFIRMED_FOR,
            quorum: None,
            call_timeout: CALL_TIMEOUT,
            head_stall: None,
            rollback_after: None,
            poll_interval: None,
            reply_memory_bytes: REPLY_MEMORY_BYTES,
        }
    }
}

impl PoolConfig {
    /// Headers of networks that are not `is_ethereum` cannot be computed.
    pub fn read(root: &mut Section<'_>, is_ethereum: bool) -> Self {
        let nodes = read_nodes(root);
        let partners = read_partners(root);
        if nodes.is_empty() && !partners.is_empty() {
            root.error(
                "partner",
                "needs at least one [[node]]: partners are asked only when no node can answer",
            );
        }
        if nodes.len() > nodes::NODES_MAX {
            root.error("node", &format!("must be at most {} nodes", nodes::NODES_MAX));
        }
        let mut section = root.section("integrity");
        let (integrity, state) = (Integrity::read(&mut section), StateMode::read(&mut section, nodes.len()));
        let confirmed_for = section.milliseconds("confirmed_for_ms", nodes::CONFIRMED_FOR);
        let proves_blocks = is_ethereum && integrity == Integrity::Prove;
        let follow = FollowSettings::read(&mut root.section("follow"), proves_blocks);
        let mut pool = root.section("pool");
        let quorum = pool.optional_number("quorum", u64::from(u32::MAX));
        if quorum.is_some_and(|quorum| quorum > nodes.len() as u64) {
            pool.error("quorum", "must be at most the number of nodes, or no block would ever be the head");
        }
        let call_timeout = pool.milliseconds("call_timeout_ms", CALL_TIMEOUT);
        let reply_memory_bytes = pool.size("reply_memory_bytes", REPLY_MEMORY_BYTES);
        if reply_memory_bytes < REPLY_MEMORY_BYTES_MIN {
            let what = format!(
                "must be at least {REPLY_MEMORY_BYTES_MIN} (1 MiB), or ordinary blocks would not fit"
            );
            pool.error("reply_memory_bytes", &what);
        }
        Self {
            nodes,
            partners,
            integrity,
            follow,
            state,
            confirmed_for,
            quorum,
            call_timeout,
            head_stall: pool.optional_milliseconds_or_never("head_stall_ms"),
            rollback_after: pool.optional_milliseconds("rollback_after_ms"),
            poll_interval: pool.optional_milliseconds("poll_interval_ms"),
            reply_memory_bytes,
        }
    }
}

/// One node under two entries would have two votes on what the head is.
fn read_nodes(root: &mut Section<'_>) -> Vec<NodeEndpoint> {
    let mut nodes: Vec<NodeEndpoint> = Vec::new();
    for mut section in root.sections("node") {
        let Some(node) = NodeEndpoint::read(&mut section) else { continue };
        if nodes.iter().any(|other| other.url == node.url && other.headers == node.headers) {
            section.error("url", "duplicate node");
        } else if nodes.iter().any(|other| other.is_shown_as(&node)) {
            section.error("name", "another node has the same name; give each node its own name");
        }
        nodes.push(node);
    }
    nodes
}

/// Metrics tell partners apart by their names.
fn read_partners(root: &mut Section<'_>) -> Vec<PartnerConfig> {
    let mut partners: Vec<PartnerConfig> = Vec::new();
    for mut section in root.sections("partner") {
        let Some(partner) = PartnerConfig::read(&mut section) else { continue };
        if partners.iter().any(|other| other.remote.is_shown_as(&partner.remote)) {
            section.error("name", "another partner has the same name; give each partner its own name");
        }
        partners.push(partner);
    }
    partners
}

impl NodeEndpoint {
    fn read(section: &mut Section<'_>) -> Option<Self> {
        let node = Self::read_endpoint(section);
        let ws_url = ws_url(section);
        node.map(|node| Self { ws_url, ..node })
    }

    fn read_endpoint(section: &mut Section<'_>) -> Option<Self> {
        let url = section.required_text("url", "the address for JSON-RPC, such as http://10.0.0.11:8545");
        let is_wrong = url.as_ref().is_some_and(|url| !has_scheme(url, ["http://", "https://"]));
        if is_wrong {
            section.error("url", "must be a URL that begins with http:// or https://");
        }
        let node = Self {
            name: section.optional_text("name"),
            ws_url: None,
            headers: headers(section),
            http2: section.flag("http2", false),
            url: url.filter(|_| !is_wrong)?,
        };
        node.check(section);
        Some(node)
    }

    /// Whether both have the same name in the log and in metrics, where their addresses stand for names that are not set.
    fn is_shown_as(&self, other: &Self) -> bool {
        self.shown_name().is_some_and(|own| other.shown_name() == Some(own))
    }

    /// The name in the log and in metrics, where the address stands for a name that is not set.
    pub(super) fn shown_name(&self) -> Option<String> {
        let address = || Endpoint::parse(&self.url).ok().map(|endpoint| endpoint.to_string());
        self.name.clone().or_else(address)
    }

    /// Finds what cannot be used before anything is started with it. What is wrong is not repeated: it may be secret.
    fn check(&self, section: &mut Section<'_>) {
        let endpoint = match Endpoint::parse(&self.url) {
            Ok(endpoint) => endpoint,
            Err(error) => return section.error("url", &error.to_string()),
        };
        for (name, value) in &self.headers {
            if let Err(error) = endpoint.clone().with_header(name, value) {
                section.error("headers", &error.to_string());
            }
        }
    }
}

fn ws_url(section: &mut Section<'_>) -> Option<String> {
    let url = section.optional_text("ws_url")?;
    if let Err(error) = Endpoint::parse_websocket(&url) {
        section.error("ws_url", &error.to_string());
    }
    Some(url)
}

fn has_scheme(url: &str, schemes: [&str; 2]) -> bool {
    schemes.iter().any(|scheme| url.starts_with(scheme))
}

/// `headers = ["Name: value"]`.
fn headers(section: &mut Section<'_>) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for line in section.texts("headers").unwrap_or_default() {
        match line.split_once(':') {
            Some((name, value)) => headers.push((name.trim().to_owned(), value.trim().to_owned())),
            // The value may be a secret, so it is not repeated.
            None => section.error("headers", "must be of the form \"Name: value\""),
        }
    }
    headers
}

impl PartnerConfig {
    fn read(section: &mut Section<'_>) -> Option<Self> {
        let methods = section.texts("methods").map(|names| {
            let row = |name: &String| match MethodId::named(name) {
                Some(id) => Some(id.row().name),
                None => {
                    section.error("methods", &format!("unknown method `{name}`"));
                    None
                }
            };
            names.iter().filter_map(row).collect()
        });
        let calls_per_second = section.number("calls_per_second", PARTNER_CALLS_PER_SECOND);
        let calls_per_day = section.number("calls_per_day", PARTNER_CALLS_PER_DAY);
        Some(Self { remote: NodeEndpoint::read_endpoint(section)?, methods, calls_per_second, calls_per_day })
    }
}

impl Integrity {
    fn read(section: &mut Section<'_>) -> Self {
        match &*section.text("mode", "prove") {
            "prove" => Self::Prove,
            "off" => Self::Off,
            other => {
                section.error("mode", &format!("unknown mode `{other}`; must be prove or off"));
                Self::default()
            }
        }
    }
}
