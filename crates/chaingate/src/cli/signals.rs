//! The signals of the process, delivered on a separate thread.

use std::time::{Duration, Instant};
use std::{io, thread};

use resources::SupervisedTask;
use tokio::runtime;
use tokio::signal::unix::{Signal as UnixSignal, SignalKind, signal};
use tokio::sync::Mutex;

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

/// The meaning of a signal to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopRequest {
    /// Finish what is running, then stop.
    Finish,
    /// The same signal a second time; it changes nothing.
    Repeated,
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

/// Calls `handle` for every signal from now on. SIGUSR1 and SIGUSR2, with which people make other programs reopen their log,
/// would end the process, and are ignored.
pub(super) fn watch(task: SupervisedTask, handle: impl FnMut(Signal) + Send + 'static) -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let listening = SignalListener {
        hangup: signal(SignalKind::hangup())?,
        interrupt: signal(SignalKind::interrupt())?,
        terminate: signal(SignalKind::terminate())?,
        user1: signal(SignalKind::user_defined1())?,
        user2: signal(SignalKind::user_defined2())?,
        handle,
    };
    drop(entered);
    // It outlives a panic, so that no signal is lost meanwhile.
    let listening = Mutex::new(listening);
    let deliver = async move { task.run(|| async { listening.lock().await.deliver().await }).await };
    thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(deliver))?;
    Ok(())
}

struct SignalListener<H> {
    hangup: UnixSignal,
    interrupt: UnixSignal,
    terminate: UnixSignal,
    user1: UnixSignal,
    user2: UnixSignal,
    handle: H,
}

impl<H: FnMut(Signal)> SignalListener<H> {
    async fn deliver(&mut self) {
        loop {
            let signal = tokio::select! {
                Some(()) = self.hangup.recv() => Signal::Hangup,
                Some(()) = self.interrupt.recv() => Signal::Interrupt,
                Some(()) = self.terminate.recv() => Signal::Terminate,
                Some(()) = self.user1.recv() => {
                    tracing::warn!("SIGUSR1 ignored");
                    continue;
                }
                Some(()) = self.user2.recv() => {
                    tracing::warn!("SIGUSR2 ignored");
                    continue;
                }
                else => return,
            };
            (self.handle)(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use resources::{Supervisor, WhenDown};
    use rustix::process::{Signal as SystemSignal, getpid, kill_process};

    use super::*;

    /// A panic ended the thread, and with it the program, because nobody could stop it in order any more.
    #[test]
    fn signals_are_delivered_after_a_panic() {
        let (supervisor, (sender, received)) = (Supervisor::default(), sync_channel(1));
        let mut has_panicked = false;
        let handle = move |signal| {
            assert!(std::mem::replace(&mut has_panicked, true), "the first signal is too much");
            let _unheard = sender.send(signal);
        };
        watch(supervisor.task("delivery of signals", WhenDown::Degraded), handle).unwrap();
        kill_process(getpid(), SystemSignal::HUP).unwrap();
        let late = Instant::now() + Duration::from_secs(60);
        while supervisor.report()[0].panics == 0 {
            assert!(Instant::now() < late, "it panics");
            thread::sleep(Duration::from_millis(10));
        }
        kill_process(getpid(), SystemSignal::HUP).unwrap();
        assert_eq!(received.recv_timeout(Duration::from_secs(60)), Ok(Signal::Hangup));
        supervisor.inject_panics("delivery of signals", u32::MAX);
        while supervisor.first_down(WhenDown::Degraded).is_none() {
            assert!(Instant::now() < late + Duration::from_secs(60), "it is down");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
