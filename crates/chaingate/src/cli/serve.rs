//! `chaingate serve`: starts the gateway, and stops it on a signal.

use std::io::{self, IsTerminal, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use ::console::{ConsoleServer, ReloadConfiguration};
use answers::Sources;
use archive::Archive;
use callers::usage::{LedgerConfig, UsageLedger};
use callers::{CallersFeed, InstanceId, KeysOrigin, LimitSharing};
use gateway::{GatewayState, Server, log};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use resources::{DiskHealth, Supervisor, WhenDown};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

use super::console_server::{self, ConsoleParts};
use super::service_manager::ServiceManager;
use super::signals::{self, Signal, StopRequest, StopSignals};
use super::{ConfigOptions, admin_api, banner, certificate, effective_config};
use crate::backup::BackupSource;
use crate::config::Config;
use crate::import_socket;
use crate::private_socket::PrivateSocket;
use crate::reload::{self, ReloadRequest, Reloader};
use crate::source;

pub(super) fn run(settings: ConfigOptions) -> Result<ExitCode, String> {
    let config_file = settings.config.clone();
    let (mut config, text) = settings.clone().load()?;
    let supervisor = Supervisor::default();
    let log = log::start(&supervisor)?;
    let service_manager = ServiceManager::from_environment().map(Arc::new);
    if !config.core_dumps {
        forbid_core_dumps();
    }
    let wanted = config.limits.listen.connections_max;
    config.limits.listen.connections_max = affordable_connections(wanted);
    let sources = open_sources(&config, &supervisor)?;
    let archive = sources.archive();
    let backup_source = BackupSource { archive: archive.clone(), blocks: sources.blocks_file() };
    let state = Arc::new(config.gateway(sources, &supervisor).map_err(|error| error.to_string())?);
    let is_serving = Arc::new(AtomicBool::new(false));
    let (reloads, reload_requests) = mpsc::sync_channel(RELOADS_WAITING_MAX);
    let (sender, events) =
        watch_signals(Arc::clone(&is_serving), reloads.clone(), log.finisher(), &supervisor)
            .map_err(|error| format!("cannot handle signals: {error}"))?;
    let _sharing = share_limits(&config, &state)?;
    let feed =
        CallersFeed::start(config.feed(), Arc::clone(state.callers()), &supervisor, state.disk().clone())?;
    warn_without_keys(&config, &state);
    watch_certificate(&state)?;
    if let Some(why) = config.unnamed_network() {
        tracing::warn!("{why}");
    }
    let head = state.head();
    let usage = start_usage(&config, &state).map_err(|error| format!("cannot count usage: {error}"))?;
    let read_again = Box::new(move || settings.clone().load());
    let reloader = Reloader::new(read_again, &config, text.clone(), Arc::clone(&state), feed.handle());
    let on_request: ReloadConfiguration = Arc::new(move || Box::pin(reload::request(&reloads)));
    let admin = admin_api::open(&config, feed.handle(), on_request)?;
    let has_admin_api = admin.is_some();
    let console_listener = console_server::bind(&config)?;
    let (gateway, disk) = (Arc::clone(&state), state.disk().clone());
    let access_log = state.access_log().cloned();
    is_serving.store(true, Relaxed);
    start_reloading(reloader, reload_requests, &supervisor)
        .map_err(|error| format!("cannot start the thread that reloads: {error}"))?;
    let server = Server::start_with_admin(&config.listen, state, admin).map_err(|error| error.to_string())?;
    let effective_config = effective_config::sections(&config, &text);
    let parts = ConsoleParts { gateway, feed: feed.handle(), config_file, effective_config };
    let console = console_server::start(&config, console_listener, server.public(), parts)?;
    let imports = archive.and_then(|archive| open_import_socket(&config, archive, &supervisor, disk));
    let backups = open_backup_socket(&config, backup_source, &supervisor);
    let sockets: Vec<PrivateSocket> = imports.into_iter().chain(backups).collect();
    let (public, operator) = (server.public(), server.operator());
    let _admin_address = has_admin_api.then(|| admin_api::announce(&config, operator));
    let console_address = console.as_ref().map(|console| console.address());
    let _console_address = console_address.map(|address| console_server::announce(&config, address));
    let shown = console_address.map(|address| address.to_string());
    tracing::info!(%public, %operator, console = shown, network = config.network.name, head, "serving");
    if stdout().is_terminal() {
        banner::show(&config, public, operator, console_address, head);
    }
    if let Some(manager) = &service_manager {
        manager
            .watch(&supervisor)
            .map_err(|error| format!("cannot start the thread of the watchdog: {error}"))?;
        manager.ready();
    }
    let is_interrupted = wait_for_stop(&events);
    if let Some(manager) = &service_manager {
        manager.stopping();
    }
    let drain = move || {
        drain(is_interrupted, server, sockets, usage, console);
        if let Some(access_log) = access_log {
            access_log.finish();
        }
    };
    Ok(until_drained(drain, sender, &events))
}

/// Reloads when SIGHUP or the admin API asks for it.
fn start_reloading(
    mut reloader: Reloader,
    requests: Receiver<ReloadRequest>,
    supervisor: &Supervisor,
) -> io::Result<()> {
    let task = supervisor.task("reload of the configuration", WhenDown::Degraded);
    let run = move || {
        task.run_blocking(|task| {
            loop {
                task.alive();
                match requests.recv_timeout(RELOAD_LOOK_INTERVAL) {
                    Ok(reply) => {
                        let outcome = reloader.reload();
                        // Whoever sends a signal reads the outcome in the log.
                        let _unheard = reply.map(|reply| reply.send(outcome));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
    };
    thread::Builder::new().name("reload".to_owned()).spawn(run).map(drop)
}

/// Begins to count usage before the first call can be made.
fn start_usage(config: &Config, state: &Arc<GatewayState>) -> io::Result<UsageLedger> {
    let ledger = LedgerConfig {
        data_dir: &config.data_dir,
        store: config.store_location(),
        network: &config.network.name,
        instance: InstanceId::random(),
        settings: config.usage.clone(),
        supervisor: state.supervisor(),
        disk: state.disk().clone(),
    };
    let gateway = Arc::clone(state);
    UsageLedger::start(ledger, state.usage(), move |credits| gateway.raise_used(credits))
}

/// Shares the limits with other instances, if the configuration names a Redis. Their parts are returned when it is dropped.
fn share_limits(config: &Config, state: &GatewayState) -> Result<Option<LimitSharing>, String> {
    let Some(redis) = &config.redis else { return Ok(None) };
    if !config.store_location().is_shared() {
        tracing::warn!(
            "this gateway counts credits per day for itself: gateways share them only over a PostgreSQL database in [store] url"
        );
    }
    let sharing = LimitSharing::start(redis.clone(), state.supervisor())
        .map_err(|error| format!("cannot start the thread for shared limits: {error}"))?;
    state.share_limits(sharing.limits());
    Ok(Some(sharing))
}

/// Without any key the gateway is of no use yet, which is no error: keys can be created while it runs.
fn warn_without_keys(config: &Config, state: &GatewayState) {
    let facts = state.callers().feed_status().facts();
    if config.keys.is_empty() && facts.keys == 0 && facts.origin != KeysOrigin::Nothing {
        tracing::warn!(
            "there is no key yet, so every call is refused; create one: chaingate accounts create --name ACCOUNT --plan PLAN, \
             then chaingate keys create --account ACCOUNT --name KEY"
        );
    }
}

fn watch_certificate(state: &GatewayState) -> Result<(), String> {
    let Some(certificate) = state.certificate() else { return Ok(()) };
    certificate::watch(Arc::clone(certificate), state.supervisor())
        .map_err(|error| format!("cannot start the thread that watches the certificate: {error}"))
}

/// Opens the sources, and shows progress while the demo chain is created.
fn open_sources(config: &Config, supervisor: &Supervisor) -> Result<Sources, String> {
    let mut making: Option<ProgressBar> = None;
    let opened = source::open(config, supervisor, |done, all| {
        let bar = making.get_or_insert_with(|| {
            tracing::info!(blocks = all, "creating the demo chain (first start only)");
            let style = ProgressStyle::with_template("creating the demo chain  {bar:30}  {pos}/{len} blocks");
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

/// Without this socket, only `chaingate import` into the running gateway does not work.
fn open_import_socket(
    config: &Config,
    archive: Arc<Archive>,
    supervisor: &Supervisor,
    disk: DiskHealth,
) -> Option<PrivateSocket> {
    let opened = import_socket::start(&config.data_dir, archive, supervisor, disk);
    let logged = opened.inspect_err(|error| {
        tracing::warn!(%error, "cannot open the import socket; stop the gateway to import blocks");
    });
    logged.ok()
}

/// Without this socket, only `chaingate backup` of the running gateway does not work.
fn open_backup_socket(
    config: &Config,
    source: BackupSource,
    supervisor: &Supervisor,
) -> Option<PrivateSocket> {
    if source.is_empty() {
        return None;
    }
    let opened = source.serve(&config.data_dir, supervisor);
    let logged = opened.inspect_err(|error| {
        tracing::warn!(%error, "cannot open the backup socket; stop the gateway to back up its archive");
    });
    logged.ok()
}

/// Keeps the memory of the process, with keys and secrets in it, out of core dumps and away from debuggers of the same user.
fn forbid_core_dumps() {
    let limited = setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) });
    // The limit does not apply where the kernel hands core dumps to a program.
    let forbidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    if let Err(error) = limited.and(forbidden) {
        tracing::warn!(%error, "cannot switch core dumps off; a crash may write keys and secrets to disk");
    }
}

/// File descriptors that are not callers' connections: the archive, listeners, runtimes, connections to nodes and from
/// the operator, and connections that are being refused.
const OTHER_FILES: u64 = 300;

/// How many of the wanted connections are possible, since each needs a file descriptor.
///
/// The soft limit is often a tenth of the hard limit, so it is raised first. Some descriptors are reserved, because callers could
/// otherwise use up all of them, and neither nodes nor the operator could be reached.
fn affordable_connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // With very few descriptors, callers get a quarter of them.
    let affordable = files.saturating_sub(OTHER_FILES).max(files / 4);
    let connections = wanted.min(usize::try_from(affordable).unwrap_or(usize::MAX));
    if connections < wanted {
        let error = raised.err().map(|error| error.to_string());
        tracing::warn!(
            open_files_max = files,
            connections_max = wanted,
            error,
            "the limit of open files is too low for connections_max: accepting at most {connections} connections; \
             raise it (ulimit -n, LimitNOFILE) to at least {}",
            wanted as u64 + OTHER_FILES
        );
    }
    connections
}

/// Why the main thread stops waiting.
#[derive(Debug, PartialEq, Eq)]
enum StopEvent {
    Stop(Signal),
    Drained,
}

/// Waits until a signal says to stop. Returns whether it is Ctrl-C.
fn wait_for_stop(events: &Receiver<StopEvent>) -> bool {
    match events.recv() {
        Ok(StopEvent::Stop(signal)) => {
            tracing::info!(?signal, "stopping; running calls are finished first");
            signal == Signal::Interrupt
        }
        Ok(StopEvent::Drained) | Err(_) => {
            tracing::error!("stopping, because the thread that delivers signals has ended");
            false
        }
    }
}

/// Finishes what is running, and stops.
fn drain(
    is_interrupted: bool,
    server: Server,
    sockets: Vec<PrivateSocket>,
    usage: UsageLedger,
    console: Option<ConsoleServer>,
) {
    // New blocks of the nodes wait for the running import.
    sockets.iter().for_each(PrivateSocket::request_stop);
    // Ctrl-C comes from a person at a terminal: no load balancer has to notice it.
    if is_interrupted {
        server.drain_at_once();
    } else {
        server.drain();
    }
    drop(sockets);
    usage.stop();
    if let Some(console) = console {
        console.stop();
    }
}

/// Drains on a thread of its own. A second signal ends the program at once.
fn until_drained(
    drain: impl FnOnce() + Send + 'static,
    sender: SyncSender<StopEvent>,
    events: &Receiver<StopEvent>,
) -> ExitCode {
    let drain = move || {
        // The program ends after a panic, too.
        let _event = DrainedEvent(sender);
        drain();
    };
    if let Err(error) = thread::Builder::new().name("drain".to_owned()).spawn(drain) {
        tracing::error!(%error, "cannot start the drain; ending at once");
        return ExitCode::FAILURE;
    }
    match events.recv() {
        Ok(StopEvent::Stop(signal)) => {
            tracing::warn!(?signal, "second signal: ending at once");
            ExitCode::from(signal.exit_status())
        }
        Ok(StopEvent::Drained) | Err(_) => ExitCode::SUCCESS,
    }
}

/// Tells the main thread that the drain is over, when it is dropped.
struct DrainedEvent(SyncSender<StopEvent>);

impl Drop for DrainedEvent {
    fn drop(&mut self) {
        // After a second signal nobody receives it.
        let _unheard = self.0.send(StopEvent::Drained);
    }
}

/// Signals that may wait until the main thread receives them: one to stop, one to end at once.
const SIGNALS_WAITING_MAX: usize = 2;

/// Requests to reload that may wait. One more signal changes nothing: those that wait read the same file.
const RELOADS_WAITING_MAX: usize = 4;

const RELOAD_LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Delivers the signals that stop the program, and SIGHUP, which reloads the configuration. While it starts, there is nothing to
/// finish, and the first one to stop ends it; SIGHUP waits until it serves.
fn watch_signals(
    is_serving: Arc<AtomicBool>,
    reloads: SyncSender<ReloadRequest>,
    finish_log: impl Fn() + Send + 'static,
    supervisor: &Supervisor,
) -> io::Result<(SyncSender<StopEvent>, Receiver<StopEvent>)> {
    let (sender, events) = mpsc::sync_channel(SIGNALS_WAITING_MAX);
    let stop = sender.clone();
    let mut stops = StopSignals::default();
    let task = supervisor.task("delivery of signals", WhenDown::Degraded);
    signals::watch(task, move |signal| match signal {
        Signal::Hangup => {
            let _wait_already = reloads.try_send(None);
        }
        Signal::Interrupt | Signal::Terminate if !is_serving.load(Relaxed) => {
            tracing::info!(?signal, "stopped before it served");
            finish_log();
            #[expect(clippy::disallowed_methods, reason = "there is nothing to drain yet")]
            std::process::exit(signal.exit_status().into());
        }
        Signal::Interrupt | Signal::Terminate => match stops.next(Instant::now()) {
            StopRequest::Repeated => {
                tracing::info!(?signal, "already stopping; send the signal again to end at once");
            }
            StopRequest::Finish | StopRequest::EndAtOnce => {
                // If two signals are already queued, this one is not needed.
                let _full = stop.try_send(StopEvent::Stop(signal));
            }
        },
    })?;
    Ok((sender, events))
}
