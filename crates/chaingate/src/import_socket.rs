//! Imports into an archive that a gateway has open: `chaingate import` sends its blocks to the gateway through a socket in the data
//! directory that only the gateway's user can open.
//!
//! The sender writes frames with a length prefix: the genesis file, then blocks in RLP, then an empty frame. The gateway writes
//! lines of JSON: the progress, and at the end the outcome. Each block file has its own connection.

mod receiver;
mod sender;

use std::io::{self, Read, Write};

use archive::{BLOCK_BYTES_MAX, ImportProgress};
use serde::{Deserialize, Serialize};

pub(crate) use receiver::start;
pub(crate) use sender::{ReceivingGateway, SendFileError};

/// The socket, beside the archive.
const SOCKET_FILE: &str = "import.sock";

/// The newest block of an archive.
#[derive(Debug, Default)]
pub(crate) struct ImportedHead {
    pub(crate) number: u64,
    pub(crate) hash: String,
}

/// The result of importing a file.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) progress: Option<ImportProgress>,
    pub(crate) head: ImportedHead,
    /// Why it ended before the last block.
    pub(crate) fault: Option<String>,
}

/// A line that the gateway writes about an import.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ImportReport {
    Progressed(ImportProgress),
    Ended {
        done: ImportProgress,
        head: u64,
        hash: String,
        /// Why it ended before the last block.
        fault: Option<String>,
    },
    /// Nothing was imported.
    Refused(String),
}

fn write_frame(out: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    // A frame is as long as a block in a file may be.
    let length = u32::try_from(frame.len()).ok().filter(|length| u64::from(*length) <= BLOCK_BYTES_MAX);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the frame is too long"))?;
    out.write_all(&length.to_be_bytes())?;
    out.write_all(frame)
}

fn read_frame(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if u64::from(length) > BLOCK_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the frame is too long"));
    }
    let mut frame = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut frame)?;
    match frame.len() == length as usize {
        true => Ok(frame),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
