//! The side of the gateway: one import after the other.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use alloy_rlp::Decodable;
use archive::{Archive, Block, ImportObserver, ImportProgress};

use super::{Done, SOCKET_FILE, Told, read_frame};

/// A sender that is silent, or does not read, for this long is disconnected.
const SENDER_SILENCE_MAX: Duration = Duration::from_secs(60);

/// How often the sender hears how far it is.
const TOLD_EVERY: Duration = Duration::from_millis(100);

/// How soon a reader that waits sees that the gateway stops.
const STOP_SEEN_WITHIN: Duration = Duration::from_millis(200);

/// The pause after a connection that could not be accepted, for instance because there are too many open files.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The stack of the thread that imports: that of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// Takes blocks for an archive that is being served. Dropping it ends the import under way after the block in hand.
pub(crate) struct ImportSocket {
    path: PathBuf,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ImportSocket {
    pub(crate) fn start(data_dir: &Path, archive: Arc<Archive>) -> io::Result<Self> {
        let path = data_dir.join(SOCKET_FILE);
        // The archive is locked by this process, so that the socket of another one is a remnant.
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        let listener = bind_private(data_dir, &path)?;
        let is_stopping = Arc::new(AtomicBool::new(false));
        let run = {
            let is_stopping = Arc::clone(&is_stopping);
            move || accept(&listener, &archive, &is_stopping)
        };
        let thread =
            thread::Builder::new().name("chaingate-import".to_owned()).stack_size(STACK_BYTES).spawn(run)?;
        Ok(Self { path, is_stopping, thread: Some(thread) })
    }
}

/// A socket that only this user can ever open: it is made in a folder that nobody else can enter, and moved when it has its rights.
fn bind_private(data_dir: &Path, path: &Path) -> io::Result<UnixListener> {
    let folder = data_dir.join(format!(".{}", std::process::id()));
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

impl Drop for ImportSocket {
    fn drop(&mut self) {
        self.is_stopping.store(true, Relaxed);
        // The thread waits for a connection. Where the socket is gone nobody can make one, and the thread ends with the process.
        if UnixStream::connect(&self.path).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _joined = thread.join();
        }
        let _gone = fs::remove_file(&self.path);
    }
}

fn accept(listener: &UnixListener, archive: &Archive, is_stopping: &AtomicBool) {
    for connection in listener.incoming() {
        if is_stopping.load(Relaxed) {
            return;
        }
        match connection {
            Ok(stream) => {
                if let Err(cause) = serve(archive, stream, is_stopping) {
                    tracing::warn!(%cause, "an import through the running gateway was broken off");
                }
            }
            Err(cause) => {
                tracing::warn!(%cause, "the socket for imports cannot accept a connection");
                thread::sleep(PAUSE_AFTER_FAILURE);
            }
        }
    }
}

/// Imports what one sender has.
fn serve(archive: &Archive, stream: UnixStream, is_stopping: &AtomicBool) -> io::Result<()> {
    stream.set_read_timeout(Some(STOP_SEEN_WITHIN))?;
    stream.set_write_timeout(Some(SENDER_SILENCE_MAX))?;
    let mut frames = BufReader::new(PatientReader { stream: stream.try_clone()?, is_stopping });
    if frames.fill_buf()?.is_empty() {
        // Somebody has looked whether a gateway is running.
        return Ok(());
    }
    let genesis = String::from_utf8_lossy(&read_frame(&mut frames)?).into_owned();
    let mut watch = Teller { stream, told: Instant::now(), progress: ImportProgress::default(), is_stopping };
    if let Err(cause) = archive.is_of_genesis(&genesis) {
        return watch.tell(&Told::Refused(cause.to_string()));
    }
    let broken_off = std::sync::OnceLock::new();
    let blocks = std::iter::from_fn(|| match next_block(&mut frames) {
        Ok(block) => block,
        Err(cause) => {
            let _first = broken_off.set(cause);
            None
        }
    });
    let fault = archive.import_blocks(blocks, &mut watch).err().map(|cause| cause.to_string());
    if let Some(cause) = broken_off.into_inner() {
        return Err(cause);
    }
    let is_stopped = is_stopping.load(Relaxed).then(|| "the gateway was stopped".to_owned());
    let head = archive.snapshot();
    let done = Done::from(&watch.progress);
    tracing::info!(
        blocks = done.blocks,
        head = head.head(),
        fault,
        "blocks were imported through the socket"
    );
    watch.tell(&Told::Ended {
        done,
        head: head.head(),
        hash: head.head_hash().to_string(),
        fault: fault.or(is_stopped),
    })
}

fn next_block(frames: &mut impl Read) -> io::Result<Option<Block>> {
    let frame = read_frame(frames)?;
    if frame.is_empty() {
        return Ok(None);
    }
    let wrong = |cause: alloy_rlp::Error| io::Error::new(io::ErrorKind::InvalidData, cause);
    Block::decode(&mut frame.as_slice()).map(Some).map_err(wrong)
}

/// Reads for as long as the sender may be silent, or until the gateway stops.
struct PatientReader<'a> {
    stream: UnixStream,
    is_stopping: &'a AtomicBool,
}

impl Read for PatientReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        loop {
            match self.stream.read(buffer) {
                Err(cause)
                    if cause.kind() == io::ErrorKind::WouldBlock
                        && begun.elapsed() < SENDER_SILENCE_MAX
                        && !self.is_stopping.load(Relaxed) => {}
                read => return read,
            }
        }
    }
}

/// Tells the sender how far its import is.
struct Teller<'a> {
    stream: UnixStream,
    told: Instant,
    progress: ImportProgress,
    is_stopping: &'a AtomicBool,
}

impl Teller<'_> {
    fn tell(&mut self, told: &Told) -> io::Result<()> {
        let mut line = serde_json::to_vec(told)?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }
}

impl ImportObserver for Teller<'_> {
    fn progressed(&mut self, progress: &ImportProgress) {
        self.progress = *progress;
        if self.told.elapsed() >= TOLD_EVERY {
            self.told = Instant::now();
            // A sender that is gone is noticed when it is read from.
            let _gone = self.tell(&Told::Progressed(progress.into()));
        }
    }

    fn should_stop(&self) -> bool {
        self.is_stopping.load(Relaxed)
    }
}
