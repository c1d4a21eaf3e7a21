//! Files of blocks, read one block at a time.
//!
//! Two kinds are understood, told apart by their first bytes and never by their names: concatenated RLP
//! blocks, as `geth export` writes them, and era1 files, which hold the blocks of proof of work in compressed
//! records. Era1 is read by hand here: the only crate for it, `e2store`, belongs to the archived project
//! Trin, loads whole files into memory, and panics on damaged ones.
//!
//! Memory is bounded by the largest block that is accepted, whatever a file claims. Only the form of blocks
//! is checked; whether they make a chain is checked by [`check`](crate::check).

mod era1; // records of compressed headers and bodies
mod fault; // errors
mod parts; // which part of a block cannot be decoded
mod rlp; // block after block
mod offset_reader; // bytes with an offset

#[cfg(test)]
mod tests;

use crate::chain::Block;
use era1::Era1;
pub use fault::{BlockFileError, BlockFileFault};
use offset_reader::OffsetReader;
use rlp::RlpBlocks;
use std::{
    fs::File,
    io::{self, BufReader, Read, Seek},
    path::{Path, PathBuf},
};

/// No block may be larger than this, packed or unpacked. The largest that a gas limit of 200 million could
/// pay for has 50 MB; real ones have had up to 10.
pub const BLOCK_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Large enough that reading costs few system calls.
const READ_BUFFER_BYTES: usize = 256 * 1024;

/// A file of blocks. Iterate over it to get them; after the first error it gives nothing more.
#[derive(Debug)]
pub struct BlockFile<R = BufReader<File>> {
    path: PathBuf,
    source: OffsetReader<R>,
    format: BlockFileFormat,
    /// Number of the last block that was given.
    last: Option<u64>,
    ended: bool,
}

/// A block and its offset in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockAt {
    pub block: Block,
    pub offset: u64,
}

#[derive(Debug)]
enum BlockFileFormat {
    Rlp(RlpBlocks),
    Era1(Era1),
}

impl BlockFile {
    /// Opens a file and detects its format.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, BlockFileError> {
        let path = path.as_ref();
        let with_path = |fault| BlockFileError { path: path.to_owned(), fault };
        let file = File::open(path).map_err(|error| with_path(cannot_open(error)))?;
        let metadata = file.metadata().map_err(|error| with_path(error.into()))?;
        if !metadata.is_file() {
            return Err(with_path(BlockFileFault::NotAFile));
        }
        let reader = BufReader::with_capacity(READ_BUFFER_BYTES, file);
        Self::new(path.to_owned(), reader, metadata.len())
    }
}

fn cannot_open(error: io::Error) -> BlockFileFault {
    match error.kind() {
        io::ErrorKind::NotFound => BlockFileFault::NotFound,
        _ => BlockFileFault::Io(error),
    }
}

impl<R: Read + Seek> BlockFile<R> {
    fn new(path: PathBuf, reader: R, bytes_total: u64) -> Result<Self, BlockFileError> {
        let mut source = OffsetReader::new(reader, bytes_total);
        match detect(&mut source) {
            Ok(format) => Ok(Self { path, source, format, last: None, ended: false }),
            Err(fault) => Err(BlockFileError { path, fault }),
        }
    }

    pub fn bytes_total(&self) -> u64 {
        self.source.bytes_total()
    }

    /// Bytes that were read, up to the end of the last block.
    pub fn bytes_read(&self) -> u64 {
        self.source.offset()
    }
}

impl<R: Read + Seek> Iterator for BlockFile<R> {
    type Item = Result<BlockAt, BlockFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = match &mut self.format {
            BlockFileFormat::Rlp(blocks) => blocks.next(&mut self.source, self.last),
            BlockFileFormat::Era1(blocks) => blocks.next(&mut self.source, self.last),
        };
        match &next {
            Ok(Some(found)) => self.last = Some(found.block.header.number),
            _ => self.ended = true,
        }
        next.map_err(|fault| BlockFileError { path: self.path.clone(), fault }).transpose()
    }
}

/// Detects the format of a file by its first bytes.
fn detect<R: Read + Seek>(source: &mut OffsetReader<R>) -> Result<BlockFileFormat, BlockFileFault> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    const { assert!(era1::VERSION_RECORD.len() >= rlp::BEGINNING_BYTES) };
    let first = source.peek(era1::VERSION_RECORD.len())?;
    match first {
        [] => Err(BlockFileFault::Empty),
        _ if rlp::begins_block(first) => Ok(BlockFileFormat::Rlp(RlpBlocks)),
        _ if first == era1::VERSION_RECORD => Ok(BlockFileFormat::Era1(Era1::default())),
        _ if first.starts_with(&GZIP) => Err(BlockFileFault::Gzip),
        _ => Err(BlockFileFault::Unknown { first: first.to_vec().into() }),
    }
}
