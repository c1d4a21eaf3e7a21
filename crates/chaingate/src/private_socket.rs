//! Sockets in the data directory that only the gateway's user can open, for commands that need what the gateway has open: one
//! connection at a time, on a thread that ends with the gateway.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use resources::SupervisedTask;

/// A command that is silent, or does not read, for this long is disconnected.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How often it is checked whether the gateway stops, and whether there is a new connection.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The pause after a connection that could not be accepted, for instance because there are too many open files.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The stack of the thread: that of a main thread, because blocks are executed on it.
const STACK_BYTES: usize = 8 << 20;

/// How long the end of the gateway waits for the command that is served. A longer one is left as by a kill, which loses nothing.
const END_MAX: Duration = Duration::from_secs(5);

/// How often that is checked.
const END_CHECK: Duration = Duration::from_millis(10);

/// A socket and its thread. Dropping it ends the command that is served.
#[derive(Debug)]
pub(crate) struct PrivateSocket {
    path: PathBuf,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PrivateSocket {
    /// Serves connections, one after the other. The process must hold the lock of what it serves: a socket that exists is
    /// taken for one that an earlier process has left.
    pub(crate) fn start(
        data_dir: &Path,
        name: &'static str,
        task: SupervisedTask,
        mut serve: impl FnMut(UnixStream, ServedCommand<'_>) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let path = data_dir.join(name);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        let listener = bind_private(data_dir, &path)?;
        listener.set_nonblocking(true)?;
        let is_stopping = Arc::new(AtomicBool::new(false));
        let run = {
            let is_stopping = Arc::clone(&is_stopping);
            // The command that is served when it panics sees the end of the connection.
            move || {
                task.run_blocking(|task| {
                    let served = ServedCommand { socket: name, is_stopping: &is_stopping, task };
                    accept(&listener, served, &mut serve);
                });
            }
        };
        let thread_name = format!("chaingate-{}", name.trim_end_matches(".sock"));
        let thread = thread::Builder::new().name(thread_name).stack_size(STACK_BYTES).spawn(run)?;
        Ok(Self { path, is_stopping, thread: Some(thread) })
    }

    /// Ends what is being done for a command, without waiting for it.
    pub(crate) fn request_stop(&self) {
        self.is_stopping.store(true, Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        self.request_stop();
        if let Some(thread) = self.thread.take() {
            // It may wait for something else, such as an import for blocks that are being fetched from nodes.
            let begun = Instant::now();
            while !thread.is_finished() && begun.elapsed() < END_MAX {
                thread::sleep(END_CHECK);
            }
        }
        let _gone = fs::remove_file(&self.path);
    }
}

/// Binds a socket that only this user can ever open: it is created in a private directory, and moved once its permissions are set.
pub(crate) fn bind_private(data_dir: &Path, path: &Path) -> io::Result<UnixListener> {
    let folder = data_dir.join(format!(".{}", std::process::id()));
    // One of a killed process with the same id, which is usual in containers.
    match fs::remove_dir_all(&folder) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        _ => {}
    }
    DirBuilder::new().mode(0o700).create(&folder)?;
    let made = folder.join("s");
    let bound = UnixListener::bind(&made).and_then(|listener| {
        fs::set_permissions(&made, Permissions::from_mode(0o600))?;
        fs::rename(&made, path)?;
        Ok(listener)
    });
    fs::remove_dir_all(&folder)?;
    bound
}

fn accept(
    listener: &UnixListener,
    served: ServedCommand<'_>,
    serve: &mut impl FnMut(UnixStream, ServedCommand<'_>) -> io::Result<()>,
) {
    while !served.is_stopping() {
        served.alive();
        match listener.accept() {
            Ok((stream, _)) => {
                let prepared = stream
                    .set_nonblocking(false)
                    .and_then(|()| stream.set_read_timeout(Some(STOP_CHECK_INTERVAL)))
                    .and_then(|()| stream.set_write_timeout(Some(STOP_CHECK_INTERVAL)));
                if let Err(cause) = prepared.and_then(|()| serve(stream, served)) {
                    tracing::warn!(%cause, socket = served.socket, "a command was interrupted");
                }
            }
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => thread::sleep(STOP_CHECK_INTERVAL),
            Err(cause) => {
                tracing::warn!(%cause, socket = served.socket, "the connection of a command cannot be accepted");
                thread::sleep(PAUSE_AFTER_FAILURE);
            }
        }
    }
}

/// The gateway, as far as whoever serves a command has to know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedCommand<'a> {
    socket: &'static str,
    is_stopping: &'a AtomicBool,
    task: &'a SupervisedTask,
}

impl ServedCommand<'_> {
    /// Whether the gateway stops.
    pub(crate) fn is_stopping(self) -> bool {
        self.is_stopping.load(Relaxed)
    }

    /// Shows that the thread is alive.
    pub(crate) fn alive(self) {
        self.task.alive();
    }
}

/// Reads and writes until the command has been silent for [`SILENCE_MAX`], or the gateway stops.
#[derive(Debug)]
pub(crate) struct StopAwareStream<'a> {
    pub(crate) stream: UnixStream,
    pub(crate) served: ServedCommand<'a>,
}

impl StopAwareStream<'_> {
    fn wait(&mut self, mut access: impl FnMut(&mut UnixStream) -> io::Result<usize>) -> io::Result<usize> {
        let begun = Instant::now();
        loop {
            self.served.alive();
            match access(&mut self.stream) {
                Err(cause)
                    if cause.kind() == io::ErrorKind::WouldBlock
                        && begun.elapsed() < SILENCE_MAX
                        && !self.served.is_stopping() => {}
                // The process was stopped and goes on.
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                accessed => return accessed,
            }
        }
    }
}

impl Read for StopAwareStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait(|stream| stream.read(buffer))
    }
}

impl Write for StopAwareStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
