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
use archive::{Archive, Block, ImportError, ImportObserver, ImportProgress};
use resources::{DiskHealth, DiskWriter, SupervisedTask, Supervisor, WhenDown};

use super::{ImportReport, SOCKET_FILE, read_frame};

/// A sender that is silent, or does not read, for this long is disconnected.
const SENDER_SILENCE_MAX: Duration = Duration::from_secs(60);

/// The time between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// How often it is checked whether the gateway stops, and whether there is a new connection.
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
    pub(crate) fn start(
        data_dir: &Path,
        archive: Arc<Archive>,
        supervisor: &Supervisor,
        disk: DiskHealth,
    ) -> io::Result<Self> {
        let path = data_dir.join(SOCKET_FILE);
        // This process holds the lock of the archive, so an existing socket is left over from an earlier one.
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        let listener = bind_private(data_dir, &path)?;
        let is_stopping = Arc::new(AtomicBool::new(false));
        listener.set_nonblocking(true)?;
        let task = supervisor.task("import socket", WhenDown::Degraded);
        let run = {
            let is_stopping = Arc::clone(&is_stopping);
            // An import that panics is undone up to its last commit, and its sender sees the end of the connection.
            move || {
                task.run_blocking(|task| {
                    let target =
                        ImportTarget { archive: &archive, disk: &disk, is_stopping: &is_stopping, task };
                    accept(&listener, target);
                });
            }
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
        if let Some(thread) = self.thread.take() {
            // The import may wait for blocks that are being fetched from nodes.
            let begun = Instant::now();
            while !thread.is_finished() && begun.elapsed() < IMPORT_END_MAX {
                thread::sleep(IMPORT_END_CHECK);
            }
        }
        let _gone = fs::remove_file(&self.path);
    }
}

/// Where the blocks go, and who has to know about it.
#[derive(Clone, Copy)]
struct ImportTarget<'a> {
    archive: &'a Archive,
    disk: &'a DiskHealth,
    is_stopping: &'a AtomicBool,
    task: &'a SupervisedTask,
}

fn accept(listener: &UnixListener, target: ImportTarget<'_>) {
    while !target.is_stopping.load(Relaxed) {
        target.task.alive();
        match listener.accept() {
            Ok((stream, _)) => {
                if let Err(cause) = serve(target, stream) {
                    tracing::warn!(%cause, "an import through the import socket was interrupted");
                }
            }
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => thread::sleep(STOP_CHECK_INTERVAL),
            Err(cause) => {
                tracing::warn!(%cause, "the import socket cannot accept a connection");
                thread::sleep(PAUSE_AFTER_FAILURE);
            }
        }
    }
}

/// Imports the blocks of one sender.
fn serve(target: ImportTarget<'_>, stream: UnixStream) -> io::Result<()> {
    let ImportTarget { archive, disk, is_stopping, task } = target;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(STOP_CHECK_INTERVAL))?;
    stream.set_write_timeout(Some(SENDER_SILENCE_MAX))?;
    let mut frames = BufReader::new(StopAwareReader { stream: stream.try_clone()?, is_stopping, task });
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
        task,
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
    let imported = archive.import_blocks(blocks, &mut watch);
    // A block that is wrong says nothing about the disk.
    if matches!(imported, Ok(_) | Err(ImportError::Store(_))) {
        disk.record(DiskWriter::Archive, &imported);
    }
    let fault = imported.err().map(|cause| cause.to_string());
    if let Some(cause) = interrupted.into_inner() {
        return Err(cause);
    }
    let is_stopped = is_stopping.load(Relaxed).then(|| "the gateway was stopped".to_owned());
    let head = archive.snapshot();
    let done = watch.progress;
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
    task: &'a SupervisedTask,
}

impl Read for StopAwareReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        loop {
            self.task.alive();
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
    task: &'a SupervisedTask,
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
        self.task.alive();
        self.progress = *progress;
        if self.reported_at.elapsed() >= REPORT_INTERVAL {
            self.reported_at = Instant::now();
            // A sender that is gone is noticed when it is read from.
            let _gone = self.write(&ImportReport::Progressed(*progress));
        }
    }

    fn should_stop(&self) -> bool {
        self.is_stopping.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import_socket::write_frame;

    /// An import that panicked ended the thread: the socket stayed, and the next import waited for ever.
    #[test]
    fn blocks_are_received_after_a_panic() {
        let (folder, supervisor) = (tempfile::tempdir().unwrap(), Supervisor::default());
        let archive = Archive::open_or_create(folder.path(), demo::GENESIS).unwrap();
        let socket = ImportSocket::start(
            folder.path(),
            Arc::new(archive),
            &supervisor,
            DiskHealth::new(folder.path()),
        )
        .unwrap();
        let late = Instant::now() + Duration::from_secs(120);
        let wait_until = |is_true: &dyn Fn() -> bool| {
            while !is_true() {
                assert!(Instant::now() < late, "{:?}", supervisor.report());
                thread::sleep(Duration::from_millis(10));
            }
        };
        supervisor.inject_panics("import socket", 1);
        wait_until(&|| supervisor.report()[0].panics == 1);
        let mut sender = UnixStream::connect(&socket.path).unwrap();
        write_frame(&mut sender, b"no genesis").unwrap();
        let mut line = String::new();
        BufReader::new(sender).read_line(&mut line).unwrap();
        assert!(line.contains("refused"), "{line}");
        supervisor.inject_panics("import socket", u32::MAX);
        wait_until(&|| supervisor.first_down(WhenDown::Degraded).is_some());
    }
}
