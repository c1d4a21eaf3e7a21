//! Copies of the archive and of the stored blocks: from the gateway that has them open, or from the files if none runs.
//!
//! The command sends one byte that names the file. The gateway answers with a byte that says whether it has that file open, and
//! with the rows.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use archive::{
    ARCHIVE_FILE, Archive, BLOCKS_FILE, BlocksFile, BlocksFileLimits, CopyProgress, ReceiveError, SendError,
};
use resources::{Supervisor, lower_priority};

use crate::private_socket::{PrivateSocket, SILENCE_MAX, StopAwareStream};

/// The socket, beside the archive.
const SOCKET_FILE: &str = "backup.sock";

/// How long the command waits for the first byte: the gateway serves one backup at a time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

const HAS_IT_OPEN: u8 = b'+';
const HAS_IT_NOT_OPEN: u8 = b'-';

/// A file that is copied row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowFile {
    Archive,
    Blocks,
}

impl RowFile {
    pub(super) const ALL: [Self; 2] = [Self::Archive, Self::Blocks];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Archive => ARCHIVE_FILE,
            Self::Blocks => BLOCKS_FILE,
        }
    }

    fn request(self) -> u8 {
        match self {
            Self::Archive => b'a',
            Self::Blocks => b'b',
        }
    }

    fn receive(
        self,
        from: impl Read,
        folder: &Path,
        report: &mut dyn FnMut(CopyProgress),
    ) -> Result<(), ReceiveError> {
        match self {
            Self::Archive => Archive::receive_rows(from, folder, report),
            Self::Blocks => BlocksFile::receive_rows(from, folder, report),
        }
    }

    /// Copies the file of a data directory into a folder.
    pub(super) fn copy(
        self,
        data_dir: &Path,
        folder: &Path,
        report: &mut dyn FnMut(CopyProgress),
    ) -> Result<(), String> {
        let failed = |why: String| format!("cannot copy {}: {why}", data_dir.join(self.name()).display());
        let not_received = |cause| match cause {
            ReceiveError::Write(cause) => {
                format!("cannot write {}: {cause}", folder.join(self.name()).display())
            }
            other => failed(other.to_string()),
        };
        if let Some(stream) = self.ask_gateway(data_dir).map_err(failed)? {
            return self.receive(stream, folder, report).map_err(not_received);
        }
        let source = BackupSource::open(self, data_dir).map_err(failed)?;
        let (sender, receiver) = UnixStream::pair().map_err(|cause| failed(cause.to_string()))?;
        thread::scope(|scope| {
            // A failure here is sent to the receiver, too.
            scope.spawn(move || source.send(self, sender).map_or_else(drop, drop));
            self.receive(receiver, folder, report).map_err(not_received)
        })
    }

    /// The rows from the gateway that has the file open; `None` if none has.
    fn ask_gateway(self, data_dir: &Path) -> Result<Option<UnixStream>, String> {
        // Without a gateway there is no socket, or one that a killed gateway has left.
        let Ok(mut stream) = UnixStream::connect(data_dir.join(SOCKET_FILE)) else { return Ok(None) };
        let mut answer = [0];
        let asked = stream
            .set_read_timeout(Some(ANSWER_TIMEOUT))
            .and_then(|()| stream.write_all(&[self.request()]))
            .and_then(|()| stream.read_exact(&mut answer))
            .and_then(|()| stream.set_read_timeout(Some(SILENCE_MAX)));
        match asked {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err("the running gateway does not answer; it serves one backup at a time".to_owned());
            }
            Err(error) => return Err(format!("the running gateway does not answer: {error}")),
            Ok(()) => {}
        }
        Ok((answer == [HAS_IT_OPEN]).then_some(stream))
    }
}

/// The files that a process has open.
#[derive(Debug, Default)]
pub(crate) struct BackupSource {
    pub(crate) archive: Option<Arc<Archive>>,
    pub(crate) blocks: Option<Arc<BlocksFile>>,
}

impl BackupSource {
    fn open(file: RowFile, data_dir: &Path) -> Result<Self, String> {
        match file {
            RowFile::Archive => {
                let archive = Archive::open(data_dir).map_err(|cause| cause.to_string())?;
                Ok(Self { archive: Some(Arc::new(archive)), ..Self::default() })
            }
            RowFile::Blocks => {
                let blocks = BlocksFile::open_or_create(data_dir, BlocksFileLimits::default());
                let blocks = blocks.map_err(|cause| cause.to_string())?;
                Ok(Self { blocks: Some(Arc::new(blocks)), ..Self::default() })
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.archive.is_none() && self.blocks.is_none()
    }

    fn has(&self, file: RowFile) -> bool {
        match file {
            RowFile::Archive => self.archive.is_some(),
            RowFile::Blocks => self.blocks.is_some(),
        }
    }

    fn send(&self, file: RowFile, out: impl Write) -> Result<(), SendError> {
        match file {
            RowFile::Archive => self.archive.as_ref().map_or(Ok(()), |archive| archive.send_rows(out)),
            RowFile::Blocks => self.blocks.as_ref().map_or(Ok(()), |blocks| blocks.send_rows(out)),
        }
    }

    /// Serves the files to `chaingate backup`. Calls go first: the thread has a low priority.
    pub(crate) fn serve(self, data_dir: &Path, supervisor: &Supervisor) -> io::Result<PrivateSocket> {
        let task = supervisor.low_priority_task("backup socket");
        let folder = data_dir.to_owned();
        let mut has_low_priority = false;
        PrivateSocket::start(data_dir, SOCKET_FILE, task, move |stream, served| {
            if !std::mem::replace(&mut has_low_priority, true) {
                lower_priority();
            }
            self.answer(&folder, StopAwareStream { stream, served })
        })
    }

    fn answer(&self, data_dir: &Path, mut stream: StopAwareStream<'_>) -> io::Result<()> {
        let mut request = [0];
        if stream.read(&mut request)? == 0 {
            return Ok(());
        }
        let Some(file) = RowFile::ALL.into_iter().find(|file| request == [file.request()]) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no such file"));
        };
        if !self.has(file) {
            return stream.write_all(&[HAS_IT_NOT_OPEN]);
        }
        let file_bytes = || fs::metadata(data_dir.join(file.name())).map_or(0, |file| file.len());
        let (started, bytes_before) = (Instant::now(), file_bytes());
        stream.write_all(&[HAS_IT_OPEN])?;
        let sent = self.send(file, stream);
        let (seconds, grown_bytes) =
            (started.elapsed().as_secs_f64(), file_bytes().saturating_sub(bytes_before));
        match sent {
            Ok(()) => {
                tracing::info!(file = file.name(), seconds, grown_bytes, "a backup has read the file");
                Ok(())
            }
            Err(SendError::Stream(error)) => Err(error),
            Err(SendError::Store(error)) => {
                tracing::error!(file = file.name(), %error, "a backup cannot read the file");
                Ok(())
            }
        }
    }
}
