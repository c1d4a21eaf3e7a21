//! The signals of the process, delivered on a separate thread.

use std::time::{Duration, Instant};
use std::{io, thread};

use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

/// A signal that the program handles itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Hangup,
    Interrupt,
    Terminate,
}

impl Signal {
    /// The exit status of a program that this signal ended, as shells report it: 128 and the number of the signal.
    pub(super) fn exit_status(self) -> u8 {
        match self {
            Self::Hangup => 128 + 1,
            Self::Interrupt => 128 + 2,
            Self::Terminate => 128 + 15,
        }
    }
}

/// Time within which a second signal counts as the same one. `timeout` and some supervisors send each signal to the process
/// and to its group, so it arrives twice.
const SAME_SIGNAL_TIME: Duration = Duration::from_secs(1);

/// What a signal to stop requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopRequest {
    /// Finish what is running, then stop.
    Finish,
    /// The same signal a second time; it changes nothing.
    Repeated,
    /// End at once.
    EndAtOnce,
}

/// Distinguishes a second signal to stop from one that was delivered twice.
#[derive(Debug, Default)]
pub(super) struct StopSignals {
    first_at: Option<Instant>,
}

impl StopSignals {
    pub(super) fn next(&mut self, now: Instant) -> StopRequest {
        match self.first_at {
            None => {
                self.first_at = Some(now);
                StopRequest::Finish
            }
            Some(at) if now.saturating_duration_since(at) < SAME_SIGNAL_TIME => StopRequest::Repeated,
            Some(_) => StopRequest::EndAtOnce,
        }
    }
}

/// Calls `handle` for every signal from now on.
pub(super) fn watch(mut handle: impl FnMut(Signal) + Send + 'static) -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    let entered = runtime.enter();
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    drop(entered);
    let deliver = async move {
        loop {
            let (signal, received) = tokio::select! {
                received = hangup.recv() => (Signal::Hangup, received),
                received = interrupt.recv() => (Signal::Interrupt, received),
                received = terminate.recv() => (Signal::Terminate, received),
            };
            if received.is_none() {
                return;
            }
            handle(signal);
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(deliver))?;
    Ok(())
}
