//! The demo chain: a small chain of our own with something of everything, made on the first start.
//!
//! Every fork from Frontier to the newest has some blocks. There are transactions of every type, uncles, contracts,
//! withdrawals, failures of every kind, logs with 0 to 4 topics and more than 10,000 of them, and raw records.
//! `docs/demo-chain.md` says what is where. It is the same chain on every machine, hash by hash.

pub mod accounts; // who acts
pub mod contracts; // what they call
pub mod facts; // what is where, by name
mod raw; // the records of a layer 2
mod schedule; // which rules when
mod story; // what happens, block by block
mod writer; // how it becomes blocks

#[cfg(test)]
mod tests;

use alloy_primitives::{B256, b256};
use archive::{
    Archive, GenesisError, ImportError, ImportObserver, ImportProgress, OpenError, RawRecordsError,
    StoreError,
};
use chain_builder::{BuildError, BuiltBlock};
use facts::Facts;
use std::path::Path;
use writer::Writer;

pub use schedule::{CHAIN_ID, genesis};

/// Number of the newest block.
pub const HEAD_NUMBER: u64 = story::HEAD;

/// Hash of the newest block. Everything else on the chain follows from it, so it is all that has to be compared.
pub const HEAD_HASH: B256 = b256!("59e710980827cba05123a2c453c7845674b380e9c27257db55b524314012a017");

/// The whole chain in memory.
#[derive(Debug)]
pub struct DemoChain {
    /// Its genesis, in geth's format.
    pub genesis: String,
    /// All blocks but the genesis.
    pub blocks: Vec<BuiltBlock>,
    /// What is where.
    pub facts: Facts,
    /// The raw records, as [`Archive::import_raw_records`] takes them.
    pub raw_records: String,
}

/// Makes the chain, which takes a fraction of a second.
pub fn build() -> Result<DemoChain, DemoError> {
    let mut writer = Writer::new()?;
    story::write(&mut writer)?;
    let (blocks, marks) = writer.finish();
    let facts = Facts::new(&blocks, &marks);
    let raw_records = raw::lines(&blocks, &facts);
    Ok(DemoChain { genesis: genesis_json(), blocks, facts, raw_records })
}

/// The genesis as text, in geth's format.
pub fn genesis_json() -> String {
    serde_json::to_string(&genesis()).expect("a genesis has only string keys, so it is JSON")
}

/// Opens the archive with the demo chain in a data directory. A missing chain is created, an interrupted creation is
/// continued, and a complete chain is opened as it is.
///
/// `progress` gets the number of stored blocks and the number of all blocks, after every block.
pub fn open(data_dir: &Path, progress: impl FnMut(u64, u64)) -> Result<Archive, DemoError> {
    let archive = Archive::open_or_create(data_dir, &genesis_json())?;
    if is_complete(&archive)? {
        return Ok(archive);
    }
    store(&archive, build()?, progress)?;
    Ok(archive)
}

fn store(archive: &Archive, chain: DemoChain, progress: impl FnMut(u64, u64)) -> Result<(), DemoError> {
    let blocks = chain.blocks.into_iter().map(|built| built.block);
    archive.import_blocks(blocks, &mut ProgressCallback(progress))?;
    let found = archive.snapshot().head_hash();
    if found != HEAD_HASH {
        return Err(DemoError::OtherHead { found });
    }
    // The records come last, so that their presence shows that everything is stored.
    archive.import_raw_records(chain.raw_records.as_bytes())?;
    Ok(())
}

/// Whether an archive holds a part of this chain, because its creation was interrupted.
pub fn is_unfinished(archive: &Archive) -> bool {
    archive.chain().chain_id() == CHAIN_ID
        && archive.snapshot().head() <= HEAD_NUMBER
        && !is_complete(archive).unwrap_or(true)
        && is_of_this_chain(archive)
}

/// Whether an archive begins with the genesis block of this chain.
pub fn is_of_this_chain(archive: &Archive) -> bool {
    let genesis = archive::ChainSpec::from_genesis(genesis()).map(|chain| chain.genesis_header().hash_slow());
    archive.snapshot().genesis_hash().ok() == genesis.ok()
}

/// Whether an archive holds the chain up to its head, with its records.
fn is_complete(archive: &Archive) -> Result<bool, StoreError> {
    let snapshot = archive.snapshot();
    Ok(snapshot.head_hash() == HEAD_HASH && snapshot.raw_records(*story::RAW_BLOCKS.end())?.is_some())
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
    /// The genesis is invalid.
    #[error("the demo chain's genesis: {0}")]
    Genesis(#[from] GenesisError),
    /// A block cannot be made.
    #[error("the demo chain cannot be made: {0}")]
    Build(#[from] BuildError),
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
