//! The log of the process: lines on standard error, as text if it is a terminal, else as JSON.
//!
//! Logging never blocks and never fails a call. Lines wait in a bounded queue for the one thread that writes them; lines
//! that do not fit, or that cannot be written, are dropped and counted.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, stderr};
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::thread;

use resources::Supervisor;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{EnvFilter, FilterExt, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, registry, reload};

use crate::background_writer::WriterName;
use crate::policy::LOG_FINISH_TIMEOUT;

pub use crate::background_writer::BackgroundWriter;

/// A process has one log.
static LINES_DROPPED: LazyLock<Arc<AtomicU64>> = LazyLock::new(Arc::default);

/// Lines of the log that were dropped because its reader was too slow or gone.
pub(crate) fn lines_dropped() -> u64 {
    LINES_DROPPED.load(Relaxed)
}

impl BackgroundWriter {
    pub fn to_stderr(supervisor: &Supervisor) -> io::Result<Self> {
        Self::start(WriterName::LOG, stderr(), Arc::clone(&LINES_DROPPED), supervisor)
    }
}

/// The filter of the log, which can be changed while the process runs. `None` if `RUST_LOG` has set it.
#[derive(Clone, Debug)]
pub struct LogFilterHandle(Option<reload::Handle<EnvFilter, Registry>>);

impl LogFilterHandle {
    /// Changes what is logged, unless `RUST_LOG` has chosen it. A filter that [`invalid_filter_reason`] refuses changes nothing.
    pub fn change(&self, filter: &str) {
        let Some((handle, filter)) = self.0.as_ref().zip(EnvFilter::try_new(filter).ok()) else { return };
        if let Err(error) = handle.reload(filter) {
            tracing::error!(%error, "what is logged cannot be changed");
        }
    }
}

/// Why a text cannot choose what is logged, if so.
pub fn invalid_filter_reason(filter: &str) -> Option<String> {
    EnvFilter::try_new(filter).err().map(|error| error.to_string())
}

/// Writes the last lines when it is dropped, for at most a second.
#[derive(Debug)]
pub struct LogGuard {
    writer: BackgroundWriter,
    filter: LogFilterHandle,
}

impl LogGuard {
    /// A function that writes the last lines where the program ends without dropping this.
    pub fn finisher(&self) -> impl Fn() + Send + use<> {
        let writer = self.writer.clone();
        move || writer.finish(LOG_FINISH_TIMEOUT)
    }

    pub fn filter(&self) -> &LogFilterHandle {
        &self.filter
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.writer.finish(LOG_FINISH_TIMEOUT);
    }
}

/// Starts the log. `RUST_LOG`, or else `configured`, chooses what is logged, within the limit of [`may_be_logged`].
pub fn start(supervisor: &Supervisor, configured: &str) -> Result<LogGuard, String> {
    let writer =
        BackgroundWriter::to_stderr(supervisor).map_err(|error| format!("cannot start the log: {error}"))?;
    let (chosen, mistake) = chosen_filter(configured);
    let is_configured = std::env::var_os(EnvFilter::DEFAULT_ENV).is_none();
    let (chosen, handle) = reload::Layer::new(chosen);
    let allowed = filter_fn(may_be_logged).with_max_level_hint(LevelFilter::TRACE);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer.clone());
    let lines = if stderr().is_terminal() { lines.boxed() } else { lines.json().boxed() };
    registry()
        .with(lines.with_filter(chosen.and(allowed)))
        .try_init()
        .map_err(|error| format!("cannot start the log: {error}"))?;
    log_panics();
    if let Some(mistake) = mistake {
        tracing::warn!(mistake, "RUST_LOG is invalid; logging what the configuration says");
    }
    let filter = LogFilterHandle(is_configured.then_some(handle));
    Ok(LogGuard { writer, filter })
}

/// The filter in `RUST_LOG`, and why it cannot be used.
fn chosen_filter(configured: &str) -> (EnvFilter, Option<String>) {
    let usual = || EnvFilter::new(configured);
    match std::env::var(EnvFilter::DEFAULT_ENV) {
        Err(_) => (usual(), None),
        Ok(text) => match EnvFilter::try_new(text) {
            Ok(filter) => (filter, None),
            Err(mistake) => (usual(), Some(mistake.to_string())),
        },
    }
}

/// Crates whose debug and trace lines contain no key, header or URL.
const CRATES_WITHOUT_SECRETS: [&str; 17] = [
    "answers",
    "archive",
    "callers",
    "chaingate",
    "console",
    "demo",
    "gateway",
    "http1_framing",
    "http_server",
    "jsonrpc",
    "methods",
    "nodes",
    "remote",
    "resources",
    "settings",
    "sources",
    "store",
];

/// Whether a line may be logged, whatever `RUST_LOG` says.
///
/// Below the level info, libraries log paths and headers, which contain the keys of callers and the credentials of nodes.
fn may_be_logged(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let name = target.split_once("::").map_or(target, |(name, _)| name);
    *metadata.level() <= Level::INFO || CRATES_WITHOUT_SECRETS.contains(&name)
}

/// Logs panics like everything else: the standard hook writes to standard error itself, and would wait for its reader.
fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let thread = thread::current();
        let backtrace = Backtrace::capture();
        let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
        tracing::error!(thread = thread.name(), backtrace, "{panic}");
    }));
}
