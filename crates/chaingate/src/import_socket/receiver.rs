//! The receiving side, in the gateway: one import at a time.

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

use super::{ImportCounts, ImportReport, SOCKET_FILE, read_frame};

/// A sender that is silent, or does not read, for this long is disconnected.
const SENDER_SILENCE_MAX: Duration = Duration::from_secs(60);

/// The time between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// How often a waiting reader checks whether the gateway stops.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The pause after a connection that could not be accepted, for instance because there are too many open files.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The stack of the thread that imports: that of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// How long the end of the gateway waits for a running import. A longer one is left as by a kill, which loses nothing.
const IMPORT_END_MAX: Duration = Duration::from_secs(5);

/// How often that is checked.
const IMPORT_END_CHECK: Duration = Duration::from_millis(10);

/// Receives blocks for an archive that is being served. Dropping it ends a running import after the current block.
pub(crate) struct ImportSocket {
    path: PathBuf,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ImportSocket {
    pub(crate) fn start(data_dir: &Path, archive: Arc<Archive>) -> io::Result<Self> {
        let path = data_dir.join(SOCKET_FILE);
        // This process holds the lock of the archive, so an existing socket is left over from an earlier one.
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

    /// Ends a running import after the current block, without waiting for it.
    pub(crate) fn request_stop(&self) {
        self.is_stopping.store(true, Relaxed);
    }
}

/// Binds a socket that only this user can ever open: it is created in a private directory, and moved once its permissions are set.
fn bind_private(data_dir: &Path, path: &Path) -> io::Result<UnixListener> {
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

impl Drop for ImportSocket {
    fn drop(&mut self) {
        self.request_stop();
        // A connection wakes the thread. If the socket is gone, the thread ends with the process.
        if UnixStream::connect(&self.path).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // The import may wait for blocks that are being fetched from nodes.
            let begun = Instant::now();
            while !thread.is_finished() && begun.elapsed() < IMPORT_END_MAX {
                thread::sleep(IMPORT_END_CHECK);
            }
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
                    tracing::warn!(%cause, "an import through the import socket was interrupted");
                }
            }
            Err(cause) => {
                tracing::warn!(%cause, "the import socket cannot accept a connection");
                thread::sleep(PAUSE_AFTER_FAILURE);
            }
        }
    }
}

/// Imports the blocks of one sender.
fn serve(archive: &Archive, stream: UnixStream, is_stopping: &AtomicBool) -> io::Result<()> {
    stream.set_read_timeout(Some(STOP_CHECK_INTERVAL))?;
    stream.set_write_timeout(Some(SENDER_SILENCE_MAX))?;
    let mut frames = BufReader::new(StopAwareReader { stream: stream.try_clone()?, is_stopping });
    if frames.fill_buf()?.is_empty() {
        // The connection only checked whether a gateway is running.
        return Ok(());
    }
    let genesis = String::from_utf8_lossy(&read_frame(&mut frames)?).into_owned();
    let mut watch = ReportWriter {
        stream,
        reported_at: Instant::now(),
        progress: ImportProgress::default(),
        is_stopping,
    };
    if let Err(cause) = archive.is_of_genesis(&genesis) {
        return watch.write(&ImportReport::Refused(cause.to_string()));
    }
    let interrupted = std::sync::OnceLock::new();
    let blocks = std::iter::from_fn(|| match next_block(&mut frames) {
        Ok(block) => block,
        Err(cause) => {
            let _first = interrupted.set(cause);
            None
        }
    });
    let fault = archive.import_blocks(blocks, &mut watch).err().map(|cause| cause.to_string());
    if let Some(cause) = interrupted.into_inner() {
        return Err(cause);
    }
    let is_stopped = is_stopping.load(Relaxed).then(|| "the gateway was stopped".to_owned());
    let head = archive.snapshot();
    let done = ImportCounts::from(&watch.progress);
    tracing::info!(
        blocks = done.blocks,
        head = head.head(),
        fault,
        "imported blocks through the import socket"
    );
    watch.write(&ImportReport::Ended {
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

/// Reads until the sender has been silent for [`SENDER_SILENCE_MAX`], or the gateway stops.
struct StopAwareReader<'a> {
    stream: UnixStream,
    is_stopping: &'a AtomicBool,
}

impl Read for StopAwareReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        loop {
            match self.stream.read(buffer) {
                Err(cause)
                    if cause.kind() == io::ErrorKind::WouldBlock
                        && begun.elapsed() < SENDER_SILENCE_MAX
                        && !self.is_stopping.load(Relaxed) => {}
                // The process was stopped and goes on.
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

/// Reports the progress of an import to its sender.
struct ReportWriter<'a> {
    stream: UnixStream,
    reported_at: Instant,
    progress: ImportProgress,
    is_stopping: &'a AtomicBool,
}

impl ReportWriter<'_> {
    fn write(&mut self, report: &ImportReport) -> io::Result<()> {
        let mut line = serde_json::to_vec(report)?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }
}

impl ImportObserver for ReportWriter<'_> {
    fn progressed(&mut self, progress: &ImportProgress) {
        self.progress = *progress;
        if self.reported_at.elapsed() >= REPORT_INTERVAL {
            self.reported_at = Instant::now();
            // A sender that is gone is noticed when it is read from.
            let _gone = self.write(&ImportReport::Progressed(progress.into()));
        }
    }

    fn should_stop(&self) -> bool {
        self.is_stopping.load(Relaxed)
    }
}
