//! The sending side, used by `chaingate import`.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use alloy_rlp::Encodable;
use archive::{BlockFile, BlockFileError, ImportObserver, ImportProgress};

use super::{ImportReport, Imported, ImportedHead, SOCKET_FILE, write_frame};

/// A gateway that has the archive open.
#[derive(Debug)]
pub(crate) struct ReceivingGateway {
    path: PathBuf,
    genesis: String,
}

/// Why the outcome of an import is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendFileError {
    #[error("{0}")]
    Refused(String),
    #[error("the connection to the running gateway broke: {0}. Run the same command again to continue")]
    Broken(#[from] io::Error),
}

impl ReceivingGateway {
    /// Finds the gateway that has the archive open; `None` if no process listens on the socket.
    pub(crate) fn find(data_dir: &Path, genesis: &str) -> Option<Self> {
        let path = data_dir.join(SOCKET_FILE);
        UnixStream::connect(&path).ok()?;
        Some(Self { path, genesis: genesis.to_owned() })
    }

    /// Sends the blocks of a file, until the end or until `stop` is set.
    pub(crate) fn import(
        &self,
        file: BlockFile,
        stop: &AtomicBool,
        watch: &mut impl ImportObserver,
    ) -> Result<Imported, SendFileError> {
        let stream = UnixStream::connect(&self.path)?;
        let bytes_read = AtomicU64::new(0);
        thread::scope(|scope| {
            let writing = scope.spawn(|| self.send(file, &stream, stop, &bytes_read));
            let outcome = read_reports(&stream, &bytes_read, watch);
            // Unblocks the thread that still writes, because nobody reads any more.
            let _closed = stream.shutdown(Shutdown::Both);
            let written = writing.join().unwrap_or_else(|_| Err(BlocksNotSent::Gone));
            let mut sent = outcome?;
            if let Err(BlocksNotSent::File(cause)) = written {
                sent.fault = Some(cause.to_string());
            }
            Ok(sent)
        })
    }

    fn send(
        &self,
        mut file: BlockFile,
        stream: &UnixStream,
        stop: &AtomicBool,
        bytes_read: &AtomicU64,
    ) -> Result<(), BlocksNotSent> {
        let mut out = BufWriter::new(stream);
        write_frame(&mut out, self.genesis.as_bytes())?;
        let (mut encoded, mut outcome) = (Vec::new(), Ok(()));
        while !stop.load(Relaxed) {
            match file.next() {
                Some(Ok(found)) => {
                    encoded.clear();
                    found.block.encode(&mut encoded);
                    write_frame(&mut out, &encoded)?;
                    bytes_read.store(file.bytes_read(), Relaxed);
                }
                Some(Err(cause)) => {
                    outcome = Err(BlocksNotSent::File(cause));
                    break;
                }
                None => break,
            }
        }
        write_frame(&mut out, &[])?;
        out.flush()?;
        outcome
    }
}

/// Why not all blocks were sent.
enum BlocksNotSent {
    File(BlockFileError),
    /// The gateway does not read any more; its report has the reason.
    Gone,
}

impl From<io::Error> for BlocksNotSent {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Reads the reports of the gateway until the import has ended.
fn read_reports(
    stream: &UnixStream,
    bytes_read: &AtomicU64,
    watch: &mut impl ImportObserver,
) -> Result<Imported, SendFileError> {
    let with_bytes_read = |done| ImportProgress { bytes_read: bytes_read.load(Relaxed), ..done };
    for line in BufReader::new(stream).lines() {
        match serde_json::from_str(&line?).map_err(io::Error::from)? {
            ImportReport::Progressed(done) => watch.progressed(&with_bytes_read(done)),
            ImportReport::Ended { done, head: number, hash, fault } => {
                let (progress, head) = (Some(with_bytes_read(done)), ImportedHead { number, hash });
                return Ok(Imported { progress, head, fault });
            }
            ImportReport::Refused(reason) => return Err(SendFileError::Refused(reason)),
        }
    }
    Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())
}
