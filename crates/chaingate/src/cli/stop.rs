//! The end of `chaingate serve`: a signal or a process that takes over, and the drain.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Instant;

use ::console::{AddressFile, ConsoleServer};
use callers::usage::UsageLedger;
use gateway::{AccessLog, Server};
use http_server::ListenerEnd;
use resources::{Supervisor, WhenDown};

use super::signals::{self, Signal, StopRequest, StopSignals};
use crate::handover::{HandOverSocket, Successor, TakeOverRequest};
use crate::private_socket::PrivateSocket;
use crate::reload::ReloadRequest;

/// Why the main thread stops waiting.
#[derive(Debug)]
pub(super) enum StopEvent {
    Stop(Signal),
    TakeOver(Successor),
    Drained,
}

/// How a gateway ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopKind {
    /// Ctrl-C comes from a person at a terminal: no load balancer has to notice it.
    Interrupted,
    Terminated,
    TakenOver(TakeOverRequest),
}

/// Waits until a signal says to stop, or another process takes over. That one waits for the end of this process as long as the second
/// value exists.
pub(super) fn wait_for_stop(events: &Receiver<StopEvent>) -> (StopKind, Option<Successor>) {
    loop {
        match events.recv() {
            Ok(StopEvent::Stop(signal)) => {
                tracing::info!(?signal, "stopping; running calls are finished first");
                let is_interrupted = signal == Signal::Interrupt;
                return (if is_interrupted { StopKind::Interrupted } else { StopKind::Terminated }, None);
            }
            Ok(StopEvent::TakeOver(successor)) => match successor.confirm() {
                Ok(()) => {
                    tracing::info!("another process takes over; running calls are finished first");
                    return (StopKind::TakenOver(successor.request), Some(successor));
                }
                Err(error) => {
                    tracing::warn!(%error, "the process that wanted to take over has ended; serving goes on");
                }
            },
            Ok(StopEvent::Drained) | Err(_) => {
                tracing::error!("stopping, because the thread that delivers signals has ended");
                return (StopKind::Terminated, None);
            }
        }
    }
}

/// Parts of the gateway that run until it ends.
pub(super) struct RunningParts {
    pub(super) server: Server,
    /// The sockets of commands: imports and backups.
    pub(super) commands: Vec<PrivateSocket>,
    pub(super) usage: UsageLedger,
    pub(super) console: Option<ConsoleServer>,
    pub(super) hand_over: Option<HandOverSocket>,
    pub(super) addresses: Vec<AddressFile>,
    pub(super) access_log: Option<AccessLog>,
}

impl RunningParts {
    /// Finishes what is running, and stops.
    pub(super) fn drain(self, kind: StopKind) {
        let Self { server, commands, usage, mut console, hand_over, addresses, access_log } = self;
        // New blocks of the nodes wait for the running import.
        commands.iter().for_each(PrivateSocket::request_stop);
        match kind {
            StopKind::Interrupted | StopKind::Terminated => drop(hand_over),
            StopKind::TakenOver(_) => {
                // The other process writes the same files.
                drop(addresses);
                if let Some(hand_over) = hand_over {
                    hand_over.leave();
                }
                stop_console(console.take());
            }
        }
        match kind {
            StopKind::Interrupted => server.drain_at_once(),
            StopKind::Terminated => server.drain(),
            StopKind::TakenOver(TakeOverRequest::AfterTheEnd) => server.hand_over(ListenerEnd::LeftOpen),
            StopKind::TakenOver(TakeOverRequest::Now) => server.hand_over(ListenerEnd::TakenOver),
        }
        drop(commands);
        usage.stop();
        stop_console(console);
        if let Some(access_log) = access_log {
            access_log.finish();
        }
    }
}

fn stop_console(console: Option<ConsoleServer>) {
    if let Some(console) = console {
        console.stop();
    }
}

/// Drains on a thread of its own. A second signal ends the program at once.
pub(super) fn until_drained(
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
    loop {
        match events.recv() {
            Ok(StopEvent::Stop(signal)) => {
                tracing::warn!(?signal, "second signal: ending at once");
                return ExitCode::from(signal.exit_status());
            }
            // Nobody takes over a gateway that stops already.
            Ok(StopEvent::TakeOver(_)) => {}
            Ok(StopEvent::Drained) | Err(_) => return ExitCode::SUCCESS,
        }
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

/// Events that may wait until the main thread receives them: a signal to stop, one to end at once, and a process that takes over.
const EVENTS_WAITING_MAX: usize = 3;

/// Delivers the signals that stop the program, and SIGHUP, which reloads the configuration. While it starts, there is nothing to
/// finish, and the first one to stop ends it; SIGHUP waits until it serves.
pub(super) fn watch_signals(
    is_serving: Arc<AtomicBool>,
    reloads: SyncSender<ReloadRequest>,
    finish_log: impl Fn() + Send + 'static,
    supervisor: &Supervisor,
) -> io::Result<(SyncSender<StopEvent>, Receiver<StopEvent>)> {
    let (sender, events) = mpsc::sync_channel(EVENTS_WAITING_MAX);
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
