//! Builds the demo chain: a small chain of our own with something of everything. The product imports it from the files that
//! [`DemoChain::write`] makes; tests find its blocks and transactions in [`DemoChain::facts`].
//!
//! Every fork from Frontier to the newest has some blocks. There are transactions of every type, uncles, contracts,
//! withdrawals, failures of every kind, logs with 0 to 4 topics and more than 10,000 of them, and raw records.
//! `docs/demo-chain.md` lists them. The chain is the same on every machine, hash by hash.

pub mod accounts; // the people
pub mod contracts; // the contracts that they call
pub mod facts; // the blocks and transactions worth looking at, by name
mod raw; // the records of a layer 2
mod schedule; // which rules when
mod story; // the events, block by block
mod writer; // makes blocks of the events

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use archive::GenesisError;
use chain_builder::{BuildError, BuiltBlock, write_blocks};
use facts::Facts;
use flate2::Compression;
use flate2::write::GzEncoder;
use writer::Writer;

pub use schedule::genesis;

/// The whole chain in memory.
#[derive(Debug)]
pub struct DemoChain {
    /// Its genesis, in geth's format.
    pub genesis: String,
    /// All blocks but the genesis.
    pub blocks: Vec<BuiltBlock>,
    /// The blocks and transactions worth looking at.
    pub facts: Facts,
    /// The raw records, as `archive::Archive::import_raw_records` takes them.
    pub raw_records: String,
}

/// Builds the chain, which takes a fraction of a second.
pub fn build() -> Result<DemoChain, DemoChainError> {
    let mut writer = Writer::new()?;
    story::write(&mut writer)?;
    let (blocks, marks) = writer.finish();
    let facts = Facts::new(&blocks, &marks);
    let raw_records = raw::lines(&blocks, &facts);
    let genesis = serde_json::to_string(&genesis()).expect("a genesis has only string keys, so it is JSON");
    Ok(DemoChain { genesis, blocks, facts, raw_records })
}

impl DemoChain {
    /// Writes the files from which the product imports the chain.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::write(folder.join("genesis.json"), &self.genesis)?;
        let mut blocks = Vec::new();
        write_blocks(&self.blocks, &mut blocks)?;
        write_gzip(&folder.join("blocks.rlp.gz"), &blocks)?;
        write_gzip(&folder.join("raw_records.jsonl.gz"), self.raw_records.as_bytes())
    }
}

fn write_gzip(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut encoder = GzEncoder::new(File::create(path)?, Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish().map(drop)
}

/// Why the demo chain cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum DemoChainError {
    /// The genesis is invalid.
    #[error("the demo chain's genesis: {0}")]
    Genesis(#[from] GenesisError),
    /// A block cannot be made.
    #[error("the demo chain cannot be made: {0}")]
    Build(#[from] BuildError),
}
