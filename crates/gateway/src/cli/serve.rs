//! `chaingate serve`: everything from the configuration to the last answer.

use std::io::{IsTerminal, stderr, stdout};
use std::sync::{Arc, mpsc};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing_subscriber::EnvFilter;

use super::{Settings, banner};
use crate::answer::Sources;
use crate::config::Config;
use crate::edge::Edge;
use crate::listen::Server;
use crate::source;

pub(super) fn run(settings: Settings) -> Result<(), String> {
    let config = settings.load()?;
    start_log();
    allow_open_files(config.limits.listen.connections_max);
    let sources = open_sources(&config)?;
    let edge = Arc::new(Edge::new(&config, sources).map_err(|error| error.to_string())?);
    let head = edge.head();
    let server = Server::start(&config.listen, edge).map_err(|error| format!("cannot listen on {error}"))?;
    let (public, operator) = (server.public(), server.operator());
    tracing::info!(%public, %operator, network = config.network.name, head, "serving");
    if stdout().is_terminal() {
        banner::show(&config, public, operator, head);
    }
    wait_for_signal()?;
    tracing::info!("stopping: answers under way are finished first");
    server.drain();
    Ok(())
}

/// Opens what answers, and says what is going on while the demo chain is made.
fn open_sources(config: &Config) -> Result<Sources, String> {
    let mut making: Option<ProgressBar> = None;
    let opened = source::open(config, |done, all| {
        let bar = making.get_or_insert_with(|| {
            tracing::info!(blocks = all, "making the demo chain, which happens once");
            let style = ProgressStyle::with_template("making the demo chain  {bar:30}  {pos}/{len} blocks");
            let bar = ProgressBar::with_draw_target(Some(all), ProgressDrawTarget::stderr());
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_position(done);
    });
    if let Some(bar) = making {
        bar.finish_and_clear();
    }
    opened
}

/// `RUST_LOG` decides what is logged; JSON lines unless someone is watching.
///
/// The HTTP/2 library would tell of paths that it cannot read, and paths have keys in them; it is kept from that.
fn start_log() {
    let mut filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    if let Ok(quiet) = "h2=info".parse() {
        filter = filter.add_directive(quiet);
    }
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    if stderr().is_terminal() { log.init() } else { log.json().init() }
}

/// Descriptors that are not connections: the archive, listeners, runtimes, the log.
const OTHER_FILES: u64 = 200;

/// Every connection takes a file descriptor, and what a shell grants at first is often a tenth of what it allows.
fn allow_open_files(connections_max: usize) {
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let wanted = connections_max as u64 + OTHER_FILES;
    if allowed < wanted {
        let error = raised.err().map(|error| error.to_string());
        tracing::warn!(allowed, wanted, error, "fewer files may be open than connections_max takes");
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
