//! The receiving side, in the gateway: one import at a time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_rlp::Decodable;
use archive::{Archive, Block, ImportError, ImportObserver, ImportProgress};
use resources::{DiskHealth, DiskWriter, Supervisor, WhenDown};

use super::{ImportReport, SOCKET_FILE, read_frame};
use crate::private_socket::{PrivateSocket, SILENCE_MAX, ServedCommand, StopAwareStream};

/// The time between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Receives blocks for an archive that is being served. Dropping it ends a running import after the current block; one that
/// panics is undone up to its last commit.
pub(crate) fn start(
    data_dir: &Path,
    archive: Arc<Archive>,
    supervisor: &Supervisor,
    disk: DiskHealth,
) -> io::Result<PrivateSocket> {
    let task = supervisor.task("import socket", WhenDown::Degraded);
    PrivateSocket::start(data_dir, SOCKET_FILE, task, move |stream, served| {
        serve(ImportTarget { archive: &archive, disk: &disk, served }, stream)
    })
}

/// Where the blocks go, and who has to know about it.
#[derive(Clone, Copy)]
struct ImportTarget<'a> {
    archive: &'a Archive,
    disk: &'a DiskHealth,
    served: ServedCommand<'a>,
}

/// Imports the blocks of one sender.
fn serve(target: ImportTarget<'_>, stream: UnixStream) -> io::Result<()> {
    let ImportTarget { archive, disk, served } = target;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let mut frames = BufReader::new(StopAwareStream { stream: stream.try_clone()?, served });
    if frames.fill_buf()?.is_empty() {
        // The connection only checked whether a gateway is running.
        return Ok(());
    }
    let genesis = String::from_utf8_lossy(&read_frame(&mut frames)?).into_owned();
    let mut watch =
        ReportWriter { stream, reported_at: Instant::now(), progress: ImportProgress::default(), served };
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
    let is_stopped = served.is_stopping().then(|| "the gateway was stopped".to_owned());
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

/// Reports the progress of an import to its sender.
struct ReportWriter<'a> {
    stream: UnixStream,
    reported_at: Instant,
    progress: ImportProgress,
    served: ServedCommand<'a>,
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
        self.served.alive();
        self.progress = *progress;
        if self.reported_at.elapsed() >= REPORT_INTERVAL {
            self.reported_at = Instant::now();
            // A sender that is gone is noticed when it is read from.
            let _gone = self.write(&ImportReport::Progressed(*progress));
        }
    }

    fn should_stop(&self) -> bool {
        self.served.is_stopping()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::import_socket::write_frame;

    /// An import that panicked ended the thread: the socket stayed, and the next import waited for ever.
    #[test]
    fn blocks_are_received_after_a_panic() {
        let (folder, supervisor) = (tempfile::tempdir().unwrap(), Supervisor::default());
        let archive = Archive::open_or_create(folder.path(), demo::GENESIS).unwrap();
        let disk = DiskHealth::new(folder.path());
        let socket = start(folder.path(), Arc::new(archive), &supervisor, disk).unwrap();
        let late = Instant::now() + Duration::from_secs(120);
        let wait_until = |is_true: &dyn Fn() -> bool| {
            while !is_true() {
                assert!(Instant::now() < late, "{:?}", supervisor.report());
                thread::sleep(Duration::from_millis(10));
            }
        };
        supervisor.inject_panics("import socket", 1);
        wait_until(&|| supervisor.report()[0].panics == 1);
        let mut sender = UnixStream::connect(socket.path()).unwrap();
        write_frame(&mut sender, b"no genesis").unwrap();
        let mut line = String::new();
        BufReader::new(sender).read_line(&mut line).unwrap();
        assert!(line.contains("refused"), "{line}");
        supervisor.inject_panics("import socket", u32::MAX);
        wait_until(&|| supervisor.first_down(WhenDown::Degraded).is_some());
    }
}
