//! The side of the process that takes over.

use std::fs::{File, TryLockError};
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{
    ALL_SENT, ALL_SENT_SHARED, CONFIRMED, SOCKET_FILE, TakeOverRequest, is_same_user, receive, send,
};
use crate::listening_sockets::{InheritedSockets, ListenerPurpose};

/// A running gateway sends its sockets, and confirms a request, at once.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the running gateway may take to end: far longer than the drains that operators configure.
const END_WAIT_MAX: Duration = Duration::from_secs(600);

/// How long the files of an ended process may stay locked: the kernel closes its connection and its files one after the other.
const FILES_WAIT_MAX: Duration = Duration::from_secs(10);

/// How often these files are tried.
const FILES_CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Sockets that are taken: those of as many workers as there may be, and some.
const SOCKETS_MAX: usize = resources::THREADS_MAX + 8;

/// Why a running gateway could not be taken over.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PredecessorError {
    #[error("cannot take over the running gateway: {0}")]
    Connection(#[from] io::Error),
    #[error("cannot take over the running gateway: it belongs to another user")]
    OtherUser,
    #[error(
        "cannot take over the running gateway: it sends something unknown, as another version of this program would; stop it and start"
    )]
    Unknown,
    #[error("cannot take over the running gateway: {0}")]
    Socket(String),
    #[error("the running gateway has ended without a hand-over; start again")]
    Ended,
    #[error("{} is still in use after the running gateway has ended", .0.display())]
    InUse(PathBuf),
}

/// The running gateway, which is taken over.
#[derive(Debug)]
pub(crate) struct Predecessor {
    stream: UnixStream,
}

impl Predecessor {
    /// The gateway that runs with this data directory, and its sockets; `None` if none runs.
    pub(crate) fn find(data_dir: &Path) -> Result<Option<(Self, InheritedSockets)>, PredecessorError> {
        let stream = match UnixStream::connect(data_dir.join(SOCKET_FILE)) {
            Ok(stream) => stream,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !is_same_user(&stream)? {
            return Err(PredecessorError::OtherUser);
        }
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        let sockets = receive_sockets(&stream)?;
        Ok(Some((Self { stream }, sockets)))
    }

    /// Makes the running gateway end, and waits for it, and for the files that only one process can open.
    pub(crate) fn end_and_wait(&self, files: impl Iterator<Item = PathBuf>) -> Result<(), PredecessorError> {
        self.request(TakeOverRequest::AfterTheEnd)?;
        let begun = Instant::now();
        self.stream.set_read_timeout(Some(END_WAIT_MAX))?;
        // Nothing more comes but the end.
        while receive(&self.stream)?.is_some() {}
        for file in files {
            wait_until_free(file, Instant::now() + FILES_WAIT_MAX)?;
        }
        tracing::info!(waited_ms = begun.elapsed().as_millis(), "the gateway before this one has ended");
        Ok(())
    }

    /// Makes the running gateway end, now that this one accepts connections.
    pub(crate) fn replace(self) -> Result<(), PredecessorError> {
        self.request(TakeOverRequest::Now)
    }

    fn request(&self, request: TakeOverRequest) -> Result<(), PredecessorError> {
        send(&self.stream, request.byte(), None::<&TcpListener>)?;
        match receive(&self.stream)? {
            Some((CONFIRMED, _)) => Ok(()),
            Some(_) => Err(PredecessorError::Unknown),
            None => Err(PredecessorError::Ended),
        }
    }
}

/// Whether nobody listens there.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn receive_sockets(stream: &UnixStream) -> Result<InheritedSockets, PredecessorError> {
    let mut sockets = InheritedSockets::default();
    for _ in 0..SOCKETS_MAX {
        let Some((byte, file)) = receive(stream)? else { return Err(PredecessorError::Ended) };
        match (byte, ListenerPurpose::of_byte(byte), file) {
            (_, Some(purpose), Some(file)) => {
                sockets.add(purpose, TcpListener::from(file)).map_err(PredecessorError::Socket)?;
            }
            (ALL_SENT | ALL_SENT_SHARED, None, None) => {
                sockets.are_shared = byte == ALL_SENT_SHARED;
                return Ok(sockets);
            }
            _ => break,
        }
    }
    Err(PredecessorError::Unknown)
}

/// Waits until no process has a lock on the file.
fn wait_until_free(path: PathBuf, deadline: Instant) -> Result<(), PredecessorError> {
    let file = File::open(&path)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error.into()),
            Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                return Err(PredecessorError::InUse(path));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(FILES_CHECK_INTERVAL),
        }
    }
}
