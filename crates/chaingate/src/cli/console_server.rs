//! The console of the gateway that `chaingate serve` starts.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use ::console::{
    AddressFile, AnnouncedListener, ClientAddress, ConfigurationSection, ConsoleAddress, ConsoleServer,
    ConsoleSite, LiveSource, SiteFacts,
};
use answers::ChainChanges;
use callers::FeedHandle;
use futures_util::{StreamExt, stream};
use gateway::GatewayState;
use http::HeaderMap;
use http_server::{ProxyConfig, bind as bind_address, check_free};

use super::method_forms;
use crate::config::Config;

/// The parts of a gateway that its console shows.
pub(super) struct ConsoleParts {
    pub(super) gateway: Arc<GatewayState>,
    pub(super) feed: FeedHandle,
    pub(super) config_file: Option<PathBuf>,
    pub(super) effective_config: Vec<ConfigurationSection>,
}

/// Opens the listener before anything is served, so that an address that is in use is found at once. One that was inherited is used.
pub(super) fn bind(config: &Config, inherited: Option<TcpListener>) -> Result<Option<TcpListener>, String> {
    if inherited.is_some() {
        return Ok(inherited);
    }
    let address = match config.console_address {
        ConsoleAddress::Off => return Ok(None),
        ConsoleAddress::Default => {
            config.console_address.preferred().map(|default| default_or_free_port(config, default))
        }
        ConsoleAddress::Named(address) => Some(address),
    };
    let Some(address) = address else { return Ok(None) };
    let bound = check_free(address).and_then(|()| bind_address(address));
    bound.map(Some).map_err(|error| {
        format!(
            "the console: {error}; choose another address with --console, or switch it off with --console off"
        )
    })
}

/// The default address if nobody listens there and this gateway does not either, else the same with a port that the system
/// chooses.
fn default_or_free_port(config: &Config, default: SocketAddr) -> SocketAddr {
    let is_in_use = || matches!(check_free(default), Err(error) if error.kind() == ErrorKind::AddrInUse);
    if config.listener_at(default).is_none() && !is_in_use() {
        return default;
    }
    tracing::warn!(
        in_use = %default,
        "the default address of the console is in use, so it takes a free port; name one with --console or console in [listen]"
    );
    SocketAddr::new(default.ip(), 0)
}

/// Why the address cannot be listened on. Being in use is no reason: the gateway may be running while its configuration is
/// checked.
pub(super) fn unusable_address(config: &Config) -> Option<String> {
    let error = check_free(config.console_address.preferred()?).err()?;
    (error.kind() != ErrorKind::AddrInUse).then(|| error.to_string())
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
        base_url: config.callers_url(public),
        example_key: config.serves_demo_chain().then(|| "demo".to_owned()),
        methods: method_forms::method_forms(&config.network.families),
        config_file: parts.config_file.map(|path| path.display().to_string()),
        configuration: parts.effective_config,
    };
    let administration = config.administration().with_feed(parts.feed);
    let supervisor = parts.gateway.supervisor().clone();
    let live = live_source(parts.gateway);
    let clients = client_addresses(config.listen.server.proxies.clone());
    let site = ConsoleSite::new(&config.console, address, administration, facts, live, clients, supervisor);
    ConsoleServer::start(listener, site).map(Some).map_err(failed)
}

fn live_source(gateway: Arc<GatewayState>) -> LiveSource {
    let watched = Arc::clone(&gateway);
    let changes = move || {
        let next = |mut changes: ChainChanges| async {
            let _event = changes.next().await;
            Some(((), changes))
        };
        stream::unfold(watched.chain_changes(), next).boxed()
    };
    LiveSource { snapshot: Box::new(move || gateway.snapshot()), changes: Box::new(changes) }
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

/// Behind a trusted proxy of the public listener, its header names the person.
fn client_addresses(proxies: ProxyConfig) -> ClientAddress {
    Box::new(move |peer: SocketAddr, headers: &HeaderMap| {
        proxies.caller(peer.ip().to_canonical(), headers.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second gateway on one machine did not start, because nobody had thought of its console.
    #[test]
    fn the_console_takes_a_free_port_where_its_default_is_in_use() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let in_use = other.local_addr().unwrap();
        let free_port = SocketAddr::from(([127, 0, 0, 1], 0));
        assert_eq!(default_or_free_port(&Config::default(), in_use), free_port);
        // Callers are served there, and nobody has named the address of the console.
        let config = Config::parse("[listen]\npublic = \"127.0.0.1:1\"\n").unwrap();
        assert_eq!(default_or_free_port(&config, config.listen.server.public), free_port);
    }

    #[test]
    fn an_address_that_was_named_is_taken_or_refused() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let named = |address: SocketAddr| Config {
            console_address: ConsoleAddress::Named(address),
            ..Config::default()
        };
        let error = bind(&named(other.local_addr().unwrap()), None).unwrap_err();
        assert!(error.contains("--console off"), "{error}");
        assert!(bind(&named(SocketAddr::from(([127, 0, 0, 1], 0))), None).unwrap().is_some());
    }
}
