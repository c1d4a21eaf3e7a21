//! `chaingate serve`: starts the gateway, alone or in the place of a running one.

use std::io::{self, IsTerminal, stdout};
use std::net::SocketAddr;
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
use clap::Args;
use gateway::{GatewayState, Server, log};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use resources::{DiskHealth, Supervisor, WhenDown};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

use super::console_server::{self, ConsoleParts};
use super::service_manager::ServiceManager;
use super::stop::{RunningParts, StopEvent, StopKind, until_drained, wait_for_stop, watch_signals};
use super::{ConfigOptions, admin_api, banner, certificate, effective_config};
use crate::backup::BackupSource;
use crate::config::Config;
use crate::handover::{HandOverSocket, Predecessor, Successor};
use crate::import_socket;
use crate::listening_sockets::{InheritedSockets, ListeningSockets};
use crate::private_socket::PrivateSocket;
use crate::reload::{self, ReadConfig, ReloadRequest, ReloadTarget, Reloader};
use crate::source;

/// Options of `chaingate serve`.
#[derive(Debug, Args)]
pub(super) struct ServeOptions {
    #[command(flatten)]
    pub(super) settings: ConfigOptions,
    /// Take over the gateway that runs with the same data directory, without losing a call: it passes its listening sockets on,
    /// finishes its calls and ends. If none runs, this starts as usual
    #[arg(long)]
    pub(super) take_over: bool,
}

pub(super) fn run(ServeOptions { settings, take_over }: ServeOptions) -> Result<ExitCode, String> {
    let config_file = settings.config.clone();
    let (mut config, text) = settings.clone().load()?;
    let mut inherited = InheritedSockets::from_service_manager(&config)?;
    let supervisor = Supervisor::default();
    let log = log::start(&supervisor, &config.log)?;
    let service_manager = ServiceManager::from_environment().map(Arc::new);
    if !config.core_dumps {
        forbid_core_dumps();
    }
    limit_connections(&mut config);
    let mut predecessor = if take_over { find_predecessor(&config, &mut inherited)? } else { None };
    inherited.raise_workers(&mut config);
    let sources = open_sources(&config, &supervisor, &mut predecessor)?;
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
    warn_without_name(&config);
    watch_certificate(&state)?;
    let head = state.head();
    let usage = start_usage(&config, &state).map_err(|error| format!("cannot count usage: {error}"))?;
    let target = ReloadTarget { gateway: Arc::clone(&state), feed: feed.handle(), log: log.filter().clone() };
    let reloader = Reloader::new(read_again(settings), &config, text.clone(), target);
    let on_request: ReloadConfiguration = Arc::new(move || Box::pin(reload::request(&reloads)));
    let admin = admin_api::open(&config, feed.handle(), on_request)?;
    let has_admin_api = admin.is_some();
    let has_inherited = !inherited.is_empty();
    let console_listener = console_server::bind(&config, inherited.console(&config))?;
    let (gateway, disk) = (Arc::clone(&state), state.disk().clone());
    let access_log = state.access_log().cloned();
    is_serving.store(true, Relaxed);
    start_reloading(reloader, reload_requests, &supervisor)
        .map_err(|error| format!("cannot start the thread that reloads: {error}"))?;
    let sockets = inherited.complete(&config).map_err(|error| error.to_string())?;
    if has_inherited {
        wait_until_ready(&state);
    }
    let server = Server::start_with_admin(&config.listen, &sockets, state, admin)
        .map_err(|error| error.to_string())?;
    let sockets =
        ListeningSockets::new(sockets, console_listener.as_ref()).map_err(|error| error.to_string())?;
    let effective_config = effective_config::sections(&config, &text);
    let parts = ConsoleParts { gateway, feed: feed.handle(), config_file, effective_config };
    let console = console_server::start(&config, console_listener, server.public(), parts)?;
    if let Some(predecessor) = predecessor {
        predecessor.replace().map_err(|error| error.to_string())?;
    }
    let imports = archive.and_then(|archive| open_import_socket(&config, archive, &supervisor, disk));
    let backups = open_backup_socket(&config, backup_source, &supervisor);
    let commands = imports.into_iter().chain(backups).collect();
    let (public, operator) = (server.public(), server.operator());
    let hand_over = open_hand_over_socket(&config, sockets, &supervisor, sender.clone());
    let admin_address = has_admin_api.then(|| admin_api::announce(&config, operator)).flatten();
    let console_address = console.as_ref().map(ConsoleServer::address);
    let console_announced = console_address.and_then(|address| console_server::announce(&config, address));
    announce(&config, [public, operator], console_address, head);
    let (kind, _successor) = serve_until_stop(service_manager.as_ref(), &supervisor, &events)?;
    let addresses = admin_address.into_iter().chain(console_announced).collect();
    let parts = RunningParts { server, commands, usage, console, hand_over, addresses, access_log };
    Ok(until_drained(move || parts.drain(kind), sender, &events))
}

/// Reads the configuration as at the start.
fn read_again(settings: ConfigOptions) -> ReadConfig {
    Box::new(move || {
        let (mut config, text) = settings.clone().load()?;
        limit_connections(&mut config);
        Ok((config, text))
    })
}

fn warn_without_name(config: &Config) {
    if let Some(why) = config.unnamed_network() {
        tracing::warn!("{why}");
    }
}

/// Waits until the gateway is to stop, and tells the service manager meanwhile how it is.
fn serve_until_stop(
    manager: Option<&Arc<ServiceManager>>,
    supervisor: &Supervisor,
    events: &Receiver<StopEvent>,
) -> Result<(StopKind, Option<Successor>), String> {
    let Some(manager) = manager else { return Ok(wait_for_stop(events)) };
    let watched = manager.watch(supervisor);
    watched.map_err(|error| format!("cannot start the thread of the watchdog: {error}"))?;
    manager.ready();
    let stop = wait_for_stop(events);
    manager.stopping();
    Ok(stop)
}

/// Tells that the gateway serves, and where.
fn announce(
    config: &Config,
    [public, operator]: [SocketAddr; 2],
    console: Option<SocketAddr>,
    head: Option<u64>,
) {
    let shown = console.map(|address| address.to_string());
    tracing::info!(%public, %operator, console = shown, network = config.network.name, head, "serving");
    if stdout().is_terminal() {
        banner::show(config, public, operator, console, head);
    }
}

/// The running gateway, whose sockets replace those of a service manager.
fn find_predecessor(
    config: &Config,
    inherited: &mut InheritedSockets,
) -> Result<Option<Predecessor>, String> {
    let found = Predecessor::find(&config.data_dir).map_err(|error| error.to_string())?;
    let Some((predecessor, sockets)) = found else {
        tracing::info!("no gateway runs with this data directory, so there is nothing to take over");
        return Ok(None);
    };
    *inherited = sockets;
    Ok(Some(predecessor))
}

/// Callers wait in the queue of an inherited socket meanwhile, instead of getting errors.
fn wait_until_ready(state: &GatewayState) {
    let begun = Instant::now();
    while !state.is_ready() && begun.elapsed() < READY_WAIT_MAX {
        thread::sleep(READY_CHECK_INTERVAL);
    }
    if !state.is_ready() {
        tracing::warn!("not ready after {} s; serving all the same", READY_WAIT_MAX.as_secs());
    }
}

/// How long a gateway with inherited sockets waits until it is ready, and until its nodes have shown their head. Nodes that run show it
/// within a second.
const READY_WAIT_MAX: Duration = Duration::from_secs(10);

const READY_CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// Without this socket, only `--take-over` does not work.
fn open_hand_over_socket(
    config: &Config,
    sockets: ListeningSockets,
    supervisor: &Supervisor,
    sender: SyncSender<StopEvent>,
) -> Option<HandOverSocket> {
    let take_over = move |successor| {
        // One that comes while this one stops is told so by the end of its connection.
        let _stopping = sender.try_send(StopEvent::TakeOver(successor));
    };
    let opened = HandOverSocket::start(&config.data_dir, sockets, supervisor, take_over);
    let logged = opened.inspect_err(|error| {
        tracing::warn!(%error, "cannot open the hand-over socket; stop this gateway before the next one starts");
    });
    logged.ok()
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

/// Opens the sources, and shows progress while the demo chain is created. A running gateway ends before its files are opened.
fn open_sources(
    config: &Config,
    supervisor: &Supervisor,
    predecessor: &mut Option<Predecessor>,
) -> Result<Sources, String> {
    let ended = predecessor.take_if(|_| source::has_exclusive_files(config));
    let before_files = |awaits_head: &dyn Fn() -> bool| {
        let Some(predecessor) = ended else { return Ok(()) };
        let begun = Instant::now();
        while awaits_head() && begun.elapsed() < READY_WAIT_MAX {
            thread::sleep(READY_CHECK_INTERVAL);
        }
        predecessor.end_and_wait(source::exclusive_files(config)).map_err(|error| error.to_string())
    };
    let mut making: Option<ProgressBar> = None;
    let opened = source::open_after(config, supervisor, before_files, |done, all| {
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

/// Leaves only as many connections as are possible.
fn limit_connections(config: &mut Config) {
    let connections_max = &mut config.limits.listen.connections_max;
    *connections_max = affordable_connections(*connections_max);
}

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

/// Requests to reload that may wait. One more signal changes nothing: those that wait read the same file.
const RELOADS_WAITING_MAX: usize = 4;

const RELOAD_LOOK_INTERVAL: Duration = Duration::from_secs(1);
