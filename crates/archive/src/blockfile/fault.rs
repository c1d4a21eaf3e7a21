//! Why reading a block file stopped. Every message says what to do.

use super::parts::BadPart;
use alloy_primitives::Bytes;
use std::{fmt, io, path::PathBuf};

#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct BlockFileError {
    pub path: PathBuf,
    pub fault: BlockFileFault,
}

/// Why a block file cannot be read.
///
/// `offset` is where the block or record in question begins, `last` the number of the last good block before
/// it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are named above and in the texts")]
pub enum BlockFileFault {
    #[error("there is no such file; check the path")]
    NotFound,
    #[error("not a regular file; name the block files one by one")]
    NotAFile,
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("the file is empty; fetch or export it again")]
    Empty,
    #[error("the file is packed with gzip; unpack it first, for example with gunzip")]
    Gzip,
    /// Consensus blocks, which hold no complete execution blocks.
    #[error("an era file of the beacon chain; export the execution blocks as RLP, or use era1 files")]
    BeaconEra,
    #[error("neither RLP blocks nor an era1 file: it begins with {first}; export the blocks as RLP")]
    Unknown { first: Bytes },
    #[error(
        "the file ends at byte {end}, in the middle of the {item} that begins at byte {offset}, {}; fetch it again",
        AfterBlock(*last)
    )]
    Truncated { item: &'static str, offset: u64, end: u64, last: Option<u64> },
    #[error(
        "the {item} at byte {offset}, {}, has at least {bytes} bytes, and at most {max} are accepted; the file is \
         likely damaged, fetch it again",
        AfterBlock(*last)
    )]
    TooLarge { item: &'static str, offset: u64, last: Option<u64>, bytes: u64, max: u64 },
    #[error(
        "the {item} at byte {offset}, {}, cannot be decoded: {reason}; the file is likely damaged, fetch it again",
        AfterBlock(*last)
    )]
    Undecodable { item: &'static str, offset: u64, last: Option<u64>, reason: String },
    #[error(
        "the {item} at byte {offset}, {}: {part} cannot be decoded: {reason}; the file is intact, but the block \
         does not follow the rules that this version knows",
        AfterBlock(*last)
    )]
    Malformed { item: &'static str, offset: u64, last: Option<u64>, part: String, reason: String },
    #[error(
        "from byte {offset}, {}, to its end at byte {end} the file holds no block; cut that part off or fetch the \
         file again",
        AfterBlock(*last)
    )]
    Trailing { offset: u64, end: u64, last: Option<u64> },
    /// An era1 file that ends between two records.
    #[error(
        "the file ends at byte {end}, {}, without the block index with which every era1 file ends; fetch it again",
        AfterBlock(*last)
    )]
    NoIndex { end: u64, last: Option<u64> },
}

impl BlockFileFault {
    pub(super) fn undecodable(
        item: &'static str,
        offset: u64,
        last: Option<u64>,
        reason: impl fmt::Display,
    ) -> Self {
        Self::Undecodable { item, offset, last, reason: reason.to_string() }
    }
}

impl BlockFileFault {
    /// A block or a record that cannot be decoded, with the part of it that is to blame, if that is known.
    pub(super) fn bad_part(
        item: &'static str,
        offset: u64,
        last: Option<u64>,
        reason: alloy_rlp::Error,
        found: Option<BadPart>,
    ) -> Self {
        match found {
            Some(BadPart { part, reason, committed: true }) => {
                Self::Malformed { item, offset, last, part, reason: reason.to_string() }
            }
            Some(BadPart { part, reason, committed: false }) => {
                Self::undecodable(item, offset, last, format!("{part}: {reason}"))
            }
            None => Self::undecodable(item, offset, last, reason),
        }
    }
}

/// Prints the block after which a fault is.
struct AfterBlock(Option<u64>);

impl fmt::Display for AfterBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(f, "after block {number}"),
            None => write!(f, "before any block"),
        }
    }
}
