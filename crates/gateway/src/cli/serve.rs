//! `chaingate serve`: everything from the configuration to the last answer.

use std::io::{IsTerminal, stderr};
use std::sync::{Arc, mpsc};

use tracing_subscriber::EnvFilter;

use super::Settings;
use crate::config::Config;
use crate::edge::Edge;
use crate::listen::Server;
use crate::source;

pub(super) fn run(settings: Settings) -> Result<(), String> {
    let config = settings.load()?;
    start_log();
    let source = source::open(&config)?;
    let edge = Arc::new(Edge::new(&config, source).map_err(|error| error.to_string())?);
    let server = Server::start(&config.listen, edge)
        .map_err(|error| format!("cannot listen on {}: {error}", config.listen.public))?;
    let (public, operator) = (server.public(), server.operator());
    tracing::info!(%public, %operator, network = config.network.name, "serving");
    warn_of_unused(&config);
    wait_for_signal()?;
    tracing::info!("stopping: answers under way are finished first");
    server.drain();
    Ok(())
}

/// `RUST_LOG` decides what is logged; JSON lines unless someone is watching.
fn start_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    if stderr().is_terminal() { log.init() } else { log.json().init() }
}

fn warn_of_unused(config: &Config) {
    let upstream = config.upstream.nodes.len() + config.upstream.partners.len();
    if upstream > 0 {
        tracing::warn!(upstream, "nodes and partners are configured, but only the embedded chain answers");
    }
}

fn wait_for_signal() -> Result<(), String> {
    let (sender, receiver) = mpsc::channel();
    let tell = move || {
        // A second signal while draining finds nobody listening, which is no fault.
        let _told = sender.send(());
    };
    ctrlc::set_handler(tell).map_err(|error| error.to_string())?;
    receiver.recv().map_err(|error| error.to_string())
}
