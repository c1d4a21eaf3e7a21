//! The configuration: one TOML file in which every key is optional.
//!
//! Each module reads its own keys with its own defaults; this file composes them. Reading does not stop at the first
//! mistake: all mistakes are collected, each with its line, and a configuration with any mistake is refused.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use answers::Sources;
use callers::administration::Administration;
use callers::usage::UsageSettings;
use callers::{CurrentPlans, FeedConfig, Plans, RedisUrl, StaticKey};
use console::{
    AddressFile, AdminToken, AnnouncedListener, ConsoleAddress, ConsoleSettings, reachable_address,
};
use gateway::{AccessLog, AccessLogConfig, GatewayLimits, GatewayState, ListenConfig, log};
use http_server::overlap;
use methods::{Network, NetworkFamily};
use remote::settings as remote;
use resources::{DiskHealth, Supervisor};
use settings::{ConfigErrors, KnownKey, Section};
use store::{Store, StoreLocation};

/// Everything that can be configured.
#[derive(Debug)]
pub struct Config {
    pub data_dir: PathBuf,
    /// Whether the kernel may write the memory of the process, with keys and secrets in it, to a core dump.
    pub core_dumps: bool,
    /// The filter of the log, unless `RUST_LOG` sets it.
    pub log: String,
    pub network: Network,
    pub listen: ListenConfig,
    /// Where the console listens.
    pub console_address: ConsoleAddress,
    pub console: ConsoleSettings,
    pub keys: Vec<StaticKey>,
    pub plans: CurrentPlans,
    pub limits: GatewayLimits,
    /// `None` if no call is logged.
    pub access_log: Option<AccessLogConfig>,
    pub remote: remote::PoolConfig,
    /// The Redis over which limits are shared; `None` if this instance counts for itself.
    pub redis: Option<RedisUrl>,
    pub usage: UsageSettings,
    /// Where accounts and keys are stored, if not in the data directory.
    pub store: Option<StoreLocation>,
    /// How long accounts and keys are used without the store; `None` is for ever.
    pub copy_age_max: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        settings::read_empty(Self::read)
    }
}

impl Config {
    /// Reads the text of a configuration file.
    pub fn parse(text: &str) -> Result<Self, ConfigErrors> {
        settings::read(text, Self::read)
    }

    /// Every key that a file with these sections could have.
    pub fn keys_of(text: &str) -> Vec<KnownKey> {
        settings::known_keys(text, Self::read)
    }

    /// Whether the demo chain is served, which is the only chain that comes with a key.
    pub fn serves_demo_chain(&self) -> bool {
        self.network.is_demo() && self.remote.nodes.is_empty()
    }

    /// Whether there is a `[[key]]` other than that of the demo chain, which everybody knows.
    pub fn has_own_key(&self) -> bool {
        self.keys.iter().any(|key| !key.is_demo())
    }

    /// The errors of the settings as a whole, after the command line has overridden the file.
    ///
    /// Files that the settings name are read, because a gateway would not start without them.
    pub fn problems(&self) -> Vec<String> {
        let tls = self.listen.server.tls.as_ref().and_then(|tls| tls.check().err());
        self.listen.address_conflict().into_iter().chain(self.console_conflict()).chain(tls).collect()
    }

    /// The error if nodes are served as the demo chain, which offers the methods of every family.
    pub fn unnamed_network(&self) -> Option<&'static str> {
        let is_wrong = self.network.is_demo() && !self.remote.nodes.is_empty();
        is_wrong.then_some(
            "network.name: nodes need a name for their network, such as \"mainnet\"; \"demo\", the default, is the chain that comes \
             with Chaingate",
        )
    }

    /// The error if the console would share an address with callers or the operator. Its default gives way to them.
    fn console_conflict(&self) -> Option<String> {
        let ConsoleAddress::Named(console) = self.console_address else { return None };
        let (name, other) = self.listener_at(console)?;
        Some(format!(
            "listen.console ({console}) and listen.{name} ({other}) must not share an address and port"
        ))
    }

    /// The listener for callers or the operator that would share this address, with its name in `[listen]`.
    pub fn listener_at(&self, address: SocketAddr) -> Option<(&'static str, SocketAddr)> {
        let listeners = [("public", self.listen.server.public), ("operator", self.listen.operator.address)];
        listeners.into_iter().find(|(_, other)| overlap(address, *other))
    }

    /// The address under which people reach the console, if there is one. A gateway that runs knows its port.
    pub fn console_url(&self) -> Option<String> {
        let configured = self.console_address.preferred()?;
        if let Some(url) = &self.console.url {
            return Some(url.clone());
        }
        let running = AddressFile::find_running(&self.data_dir, AnnouncedListener::Console).ok().flatten();
        Some(format!("http://{}", running.unwrap_or(configured)))
    }

    /// The URL for callers up to the key, where they are served at `public`.
    pub fn callers_url(&self, public: SocketAddr) -> String {
        let scheme = if self.listen.server.tls.is_some() { "https" } else { "http" };
        let listens = || format!("{scheme}://{}", reachable_address(public));
        format!("{}/v3/", self.console.public_url.clone().unwrap_or_else(listens))
    }

    /// The file with the token of the admin API.
    pub fn admin_token_path(&self) -> PathBuf {
        let configured = self.listen.operator.admin_token_file.clone();
        configured.unwrap_or_else(|| AdminToken::default_path(&self.data_dir))
    }

    /// The rules for changes of accounts and keys, on the store of these settings. The connections to the store belong to the
    /// runtime that makes the first change.
    pub fn administration(&self) -> Administration {
        let administration = Administration::new(Store::new(self.store_location()), self.plans.clone());
        let configured = self.keys.iter().map(|key| key.account.as_str());
        administration.with_usage_settings(self.usage.clone()).with_configured_accounts(configured)
    }

    /// Where accounts, keys and usage are stored.
    pub fn store_location(&self) -> StoreLocation {
        self.store.clone().unwrap_or_else(|| StoreLocation::in_data_dir(&self.data_dir))
    }

    /// The configuration of the feed of accounts and keys.
    ///
    /// A gateway with keys of its own and without `[store]` serves those also if the default store cannot be opened.
    pub fn feed(&self) -> FeedConfig {
        FeedConfig {
            location: self.store_location(),
            data_dir: self.data_dir.clone(),
            plans: self.plans.clone(),
            network: self.network.name.clone(),
            is_required: self.store.is_some() || self.keys.is_empty(),
            copy_age_max: self.copy_age_max,
        }
    }

    /// A gateway with these settings in front of `sources`.
    pub fn gateway(&self, sources: impl Into<Sources>, supervisor: &Supervisor) -> io::Result<GatewayState> {
        let (listen, supervisor) = (&self.listen.server, supervisor.clone());
        let sources: Sources = sources.into();
        let disk = sources.disk().cloned().unwrap_or_else(|| DiskHealth::new(&self.data_dir));
        let access_log =
            self.access_log.as_ref().map(|config| AccessLog::start(config, &supervisor)).transpose()?;
        let gateway =
            GatewayState::new(listen, &self.limits, &self.keys, &self.network, sources, supervisor, disk)?;
        Ok(gateway.with_access_log(access_log))
    }

    fn read(root: &mut Section<'_>) -> Self {
        let plans = Plans::read(&mut root.section("plans"));
        let limits = {
            let mut cache = root.section("cache");
            GatewayLimits::read(&mut root.section("limits"), &mut cache)
        };
        let network = {
            let mut methods = root.section("methods");
            Network::read(&mut root.section("network"), &mut methods)
        };
        let is_ethereum = network.families.as_slice() != [NetworkFamily::Zksync];
        let remote = remote::PoolConfig::read(root, is_ethereum);
        let (store, copy_age_max) = read_store(&mut root.section("store"));
        let mut listen = root.section("listen");
        let mut config = Self {
            data_dir: root.text("data_dir", "chaingate-data").into(),
            core_dumps: root.flag("core_dumps", false),
            log: read_log_filter(root),
            listen: ListenConfig::read(&mut listen),
            console_address: ConsoleAddress::read(&mut listen),
            console: ConsoleSettings::read(&mut root.section("console"), &plans),
            keys: callers::read_keys(root, &plans, &network),
            redis: RedisUrl::read(&mut root.section("shared")),
            store,
            copy_age_max,
            limits,
            access_log: AccessLogConfig::read(&mut root.section("access_log")),
            remote,
            usage: UsageSettings::read(&mut root.section("usage")),
            plans: plans.into(),
            network,
        };
        if config.serves_demo_chain() {
            callers::add_demo_key(&mut config.keys, &config.plans.now());
        }
        config
    }
}

fn read_log_filter(root: &mut Section<'_>) -> String {
    let filter = root.text("log", "info");
    if let Some(reason) = log::invalid_filter_reason(&filter) {
        root.error(
            "log",
            &format!("must be a level, or levels of parts such as `info,gateway=debug`: {reason}"),
        );
    }
    filter
}

/// How long accounts and keys are used without the store.
const COPY_AGE_MAX_S: u64 = 24 * 60 * 60;

/// Reads `[store]`. Errors do not repeat the URL, which can contain a password.
fn read_store(section: &mut Section<'_>) -> (Option<StoreLocation>, Option<Duration>) {
    let url = section.optional_text("url");
    let parsed =
        url.and_then(|url| StoreLocation::parse(&url).map_err(|error| section.error("url", &error)).ok());
    (parsed, section.limit("copy_age_max_s", Some(COPY_AGE_MAX_S)).map(Duration::from_secs))
}

#[cfg(test)]
mod tests;
