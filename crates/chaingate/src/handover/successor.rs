//! The side of the running gateway: it waits for a process that takes over.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use resources::{SupervisedTask, Supervisor, WhenDown};

use super::{
    ALL_SENT, ALL_SENT_SHARED, CONFIRMED, SOCKET_FILE, TakeOverRequest, is_same_user, receive, send,
};
use crate::listening_sockets::ListeningSockets;
use crate::private_socket::bind_private;

/// How often it is checked whether a process wants to take over, or has decided to.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The pause after a connection that could not be accepted, for instance because there are too many open files.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// How long a process that has the sockets may prepare itself. Nodes that it cannot reach take it longest.
const PREPARATION_MAX: Duration = Duration::from_secs(120);

/// How long it may take to receive the sockets.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The process that takes over. While this value exists, it waits for the end of this one.
#[derive(Debug)]
pub(crate) struct Successor {
    stream: UnixStream,
    pub(crate) request: TakeOverRequest,
}

impl Successor {
    /// Tells it that this process ends now. An error means that it is gone, and nobody takes over.
    pub(crate) fn confirm(&self) -> io::Result<()> {
        send(&self.stream, CONFIRMED, None::<&TcpListener>)
    }
}

/// Waits for a process that takes over, until this value is dropped.
#[derive(Debug)]
pub(crate) struct HandOverSocket {
    /// `None` once another process has the name.
    path: Option<PathBuf>,
    /// Taken when this process stops: their last owner closes them.
    sockets: Arc<Mutex<Option<ListeningSockets>>>,
}

impl HandOverSocket {
    /// Passes each process that wants to take over to `take_over`.
    pub(crate) fn start(
        data_dir: &Path,
        sockets: ListeningSockets,
        supervisor: &Supervisor,
        take_over: impl Fn(Successor) + Send + 'static,
    ) -> io::Result<Self> {
        let path = data_dir.join(SOCKET_FILE);
        let listener = bind_private(data_dir, &path)?;
        listener.set_nonblocking(true)?;
        let sockets = Arc::new(Mutex::new(Some(sockets)));
        let task = supervisor.task("hand-over socket", WhenDown::Degraded);
        let served = Arc::clone(&sockets);
        let run = move || task.run_blocking(|task| accept(&listener, &served, &take_over, task));
        thread::Builder::new().name("hand-over".to_owned()).spawn(run)?;
        Ok(Self { path: Some(path), sockets })
    }

    /// Stops, and leaves the name of the socket to the process that takes over.
    pub(crate) fn leave(mut self) {
        self.path = None;
    }
}

impl Drop for HandOverSocket {
    fn drop(&mut self) {
        self.sockets.lock().take();
        let _gone = self.path.as_ref().map(fs::remove_file);
    }
}

fn accept(
    listener: &UnixListener,
    sockets: &Mutex<Option<ListeningSockets>>,
    take_over: &dyn Fn(Successor),
    task: &SupervisedTask,
) {
    while sockets.lock().is_some() {
        task.alive();
        match listener.accept() {
            Ok((stream, _)) => match serve(stream, sockets, task) {
                Ok(Some(successor)) => take_over(successor),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "a process that wanted to take over has failed; serving goes on");
                }
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(CHECK_INTERVAL),
            Err(error) => {
                tracing::warn!(%error, "the hand-over socket cannot accept a connection");
                thread::sleep(PAUSE_AFTER_FAILURE);
            }
        }
    }
}

/// Sends the sockets, and waits until the process takes over. `None` if this one stops first.
fn serve(
    stream: UnixStream,
    sockets: &Mutex<Option<ListeningSockets>>,
    task: &SupervisedTask,
) -> io::Result<Option<Successor>> {
    stream.set_nonblocking(false)?;
    if !is_same_user(&stream)? {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    stream.set_read_timeout(Some(CHECK_INTERVAL))?;
    {
        let sockets = sockets.lock();
        let Some(sockets) = &*sockets else { return Ok(None) };
        for (purpose, socket) in sockets.each() {
            send(&stream, purpose.byte(), Some(socket))?;
        }
        let last = if sockets.gateway.are_shared { ALL_SENT_SHARED } else { ALL_SENT };
        send(&stream, last, None::<&TcpListener>)?;
    }
    tracing::info!("another process prepares itself to take over");
    let begun = Instant::now();
    while begun.elapsed() < PREPARATION_MAX && sockets.lock().is_some() {
        task.alive();
        match receive(&stream) {
            Ok(Some((byte, _))) => {
                let request = TakeOverRequest::of_byte(byte).ok_or(io::ErrorKind::InvalidData)?;
                return Ok(Some(Successor { stream, request }));
            }
            Ok(None) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended")),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    match sockets.lock().is_some() {
        true => Err(io::Error::new(io::ErrorKind::TimedOut, "it takes too long to prepare itself")),
        false => Ok(None),
    }
}
