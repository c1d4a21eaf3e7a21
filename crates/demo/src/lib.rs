//! The demo chain: a small chain of our own with something of everything, imported on the first start.
//!
//! Its files are in `chain/`; `crates/demo_builder` writes them, and has the tests. `docs/demo-chain.md` says what is where.
//!
//! `chaingate` serves it where the network is named `demo`:
//!
//! ```no_run
//! let archive = demo::open("/var/lib/chaingate".as_ref(), |done, all| println!("{done} of {all} blocks"));
//! assert_eq!(archive.unwrap().snapshot().head_hash(), demo::HEAD_HASH);
//! ```

use std::io::{self, BufReader, Read as _};
use std::path::Path;

use alloy_primitives::{Address, B256, address, b256};
use alloy_rlp::Decodable as _;
use archive::{
    Archive, Block, ImportError, ImportObserver, ImportProgress, OpenError, RawRecordsError, StoreError,
};
use flate2::read::GzDecoder;

/// No public network has this number.
pub const CHAIN_ID: u64 = 1_337_255;

/// Number of the newest block.
pub const HEAD_NUMBER: u64 = 255;

/// Hash of the newest block. Everything else on the chain follows from it, so it is all that has to be compared.
pub const HEAD_HASH: B256 = b256!("59e710980827cba05123a2c453c7845674b380e9c27257db55b524314012a017");

/// Hash of block 0.
const GENESIS_HASH: B256 = b256!("3671059a076220d299f1b3629b4812cff6e1b7d7543f4a1d2317d355a05ac6e3");

/// Number of the newest block with raw records.
const RAW_BLOCK_LAST: u64 = 247;

/// The contract Tour, whose storage slot 0 has the value 1234.
pub const TOUR: Address = address!("A7918D253764E42d60C3ce2010a34d5a1e7C1398");

/// The genesis, in geth's format.
pub const GENESIS: &str = include_str!("../chain/genesis.json");

/// All blocks but the genesis, as `geth export` writes them.
const BLOCKS_GZ: &[u8] = include_bytes!("../chain/blocks.rlp.gz");

/// The raw records, as [`Archive::import_raw_records`] takes them.
const RAW_RECORDS_GZ: &[u8] = include_bytes!("../chain/raw_records.jsonl.gz");

/// Opens the archive with the demo chain in a data directory. A missing chain is imported, an interrupted import is
/// continued, and a complete chain is opened as it is.
///
/// `progress` gets the number of stored blocks and the number of all blocks, after every block.
pub fn open(data_dir: &Path, progress: impl FnMut(u64, u64)) -> Result<Archive, DemoError> {
    let archive = Archive::open_or_create(data_dir, GENESIS)?;
    if is_complete(&archive)? {
        return Ok(archive);
    }
    archive.import_blocks(blocks()?, &mut ProgressCallback(progress))?;
    let found = archive.snapshot().head_hash();
    if found != HEAD_HASH {
        return Err(DemoError::OtherHead { found });
    }
    // The records come last, so that their presence shows that everything is stored.
    archive.import_raw_records(BufReader::new(GzDecoder::new(RAW_RECORDS_GZ)))?;
    Ok(archive)
}

/// Whether an archive holds a part of this chain, because its import was interrupted.
pub fn is_unfinished(archive: &Archive) -> bool {
    is_of_this_chain(archive)
        && archive.snapshot().head() <= HEAD_NUMBER
        && !is_complete(archive).unwrap_or(true)
}

/// Whether an archive begins with the genesis block of this chain.
pub fn is_of_this_chain(archive: &Archive) -> bool {
    archive.snapshot().genesis_hash().is_ok_and(|hash| hash == GENESIS_HASH)
}

/// Whether an archive holds the chain up to its head, with its records.
fn is_complete(archive: &Archive) -> Result<bool, StoreError> {
    let snapshot = archive.snapshot();
    Ok(snapshot.head_hash() == HEAD_HASH && snapshot.raw_records(RAW_BLOCK_LAST)?.is_some())
}

fn blocks() -> Result<Vec<Block>, DemoError> {
    let mut bytes = Vec::new();
    GzDecoder::new(BLOCKS_GZ).read_to_end(&mut bytes)?;
    let mut rest = bytes.as_slice();
    let mut blocks = Vec::new();
    while !rest.is_empty() {
        blocks.push(Block::decode(&mut rest)?);
    }
    Ok(blocks)
}

/// Forwards the progress of an import to a function.
struct ProgressCallback<F>(F);

impl<F: FnMut(u64, u64)> ImportObserver for ProgressCallback<F> {
    fn progressed(&mut self, progress: &ImportProgress) {
        (self.0)(progress.head, HEAD_NUMBER);
    }
}

/// Why there is no demo chain.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The archive cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The archive cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of the chain cannot be unpacked.
    #[error("a file of the demo chain is damaged: {0}")]
    Unpack(#[from] io::Error),
    /// A block of the chain cannot be decoded.
    #[error("a block of the demo chain is damaged: {0}")]
    Decode(#[from] alloy_rlp::Error),
    /// A block does not go into the archive.
    #[error("the demo chain cannot be stored: {0}")]
    Import(#[from] ImportError),
    /// The raw records do not go into the archive.
    #[error("the demo chain's raw records cannot be stored: {0}")]
    Records(#[from] RawRecordsError),
    /// The chain is not the one that this program knows.
    #[error(
        "the archive's head is {found}, but the demo chain's is {HEAD_HASH}; use an empty data directory"
    )]
    OtherHead {
        /// The head of the archive.
        found: B256,
    },
}
