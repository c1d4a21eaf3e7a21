//! The console of the gateway that `chaingate serve` starts.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use ::console::{
    AddressFile, AnnouncedListener, ClientAddress, ConfigurationSection, ConsoleServer, ConsoleSite,
    GatewayLive, SiteFacts, reachable_address,
};
use callers::FeedHandle;
use gateway::GatewayState;
use http::HeaderMap;
use http_server::{ProxyConfig, bind as bind_address, check_free};

use crate::config::Config;
use crate::docs::method_forms;

/// What the console shows of the gateway that it belongs to.
pub(super) struct ConsoleParts {
    pub(super) gateway: Arc<GatewayState>,
    pub(super) feed: FeedHandle,
    /// The file of the archive, if there is one.
    pub(super) archive_file: Option<PathBuf>,
    pub(super) config_file: Option<PathBuf>,
    pub(super) effective_config: Vec<ConfigurationSection>,
}

/// Opens the listener before anything is served, so that an address that is in use is found at once.
pub(super) fn bind(config: &Config) -> Result<Option<TcpListener>, String> {
    let Some(address) = config.console_address.0 else { return Ok(None) };
    let bound = check_free(address).and_then(|()| bind_address(address));
    bound.map(Some).map_err(|error| {
        format!(
            "the console: {error}; choose another address with --console, or switch it off with --console off"
        )
    })
}

/// Why the address cannot be listened on. Being in use is no reason: the gateway may be running while its configuration is
/// checked.
pub(super) fn unusable_address(config: &Config) -> Option<String> {
    let error = check_free(config.console_address.0?).err()?;
    (error.kind() != std::io::ErrorKind::AddrInUse).then(|| error.to_string())
}

pub(super) fn start(
    config: &Config,
    listener: Option<TcpListener>,
    public: SocketAddr,
    parts: ConsoleParts,
) -> Result<Option<ConsoleServer>, String> {
    let Some(listener) = listener else { return Ok(None) };
    let failed = |error: std::io::Error| format!("cannot start the console: {error}");
    let address = listener.local_addr().map_err(failed)?;
    warn_without_tls(config, address);
    let facts = SiteFacts {
        network: config.network.name.clone(),
        base_url: base_url(config, public),
        example_key: config.serves_demo_chain().then(|| "demo".to_owned()),
        methods: method_forms::method_forms(&config.network.families),
        config_file: parts.config_file.map(|path| path.display().to_string()),
        configuration: parts.effective_config,
    };
    let administration = config.administration().with_feed(parts.feed);
    let live = Arc::new(GatewayLive::new(parts.gateway, parts.archive_file));
    let clients = client_addresses(config.listen.server.proxies.clone());
    let site = ConsoleSite::new(&config.console, address, administration, facts, live, clients);
    ConsoleServer::start(listener, site).map(Some).map_err(failed)
}

/// Tells commands where the console is, until the value is dropped. Without it, their links name the configured address.
pub(super) fn announce(config: &Config, console: SocketAddr) -> Option<AddressFile> {
    let written = AddressFile::write(&config.data_dir, AnnouncedListener::Console, console);
    let logged = written.inspect_err(|error| {
        tracing::warn!(%error, "cannot write console-address; links of commands name the configured address");
    });
    logged.ok()
}

fn warn_without_tls(config: &Config, address: SocketAddr) {
    if !address.ip().is_loopback() && !config.console.is_https() {
        tracing::warn!(
            %address,
            "the console can be reached from other machines without encryption; put a proxy with TLS in front of it and set \
             url in the section [console] to its https address"
        );
    }
}

/// The address of the public listener up to the key.
fn base_url(config: &Config, public: SocketAddr) -> String {
    let scheme = if config.listen.server.tls.is_some() { "https" } else { "http" };
    let listens = || format!("{scheme}://{}", reachable_address(public));
    format!("{}/v3/", config.console.public_url.clone().unwrap_or_else(listens))
}

/// Behind a trusted proxy of the public listener, its header names the person.
fn client_addresses(proxies: ProxyConfig) -> ClientAddress {
    Box::new(move |peer: SocketAddr, headers: &HeaderMap| {
        proxies.caller(peer.ip().to_canonical(), headers.into())
    })
}
