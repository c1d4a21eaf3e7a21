//! Parts that the stories share: a chain through all forks, and archives that hold some of it.

use archive::{Archive, Block, BlockFile, ImportError, ImportProgress};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use testkit::{
    chain::{Size, random_chain},
    truth::Truth,
};

pub(super) const SMALL: Size = Size { blocks_per_fork: 3, transactions_per_block: 8 };

/// A chain of 59 blocks through all forks, with transactions, storage, logs and self-destructs.
pub(super) fn small_chain() -> Truth {
    Truth::new(random_chain(1, SMALL))
}

/// Another chain from the same genesis.
pub(super) fn other_chain() -> Truth {
    Truth::new(random_chain(2, SMALL))
}

/// An archive in a directory of its own.
pub(super) struct Fresh {
    pub(super) directory: TempDir,
    pub(super) archive: Archive,
}

/// An archive that holds the genesis of a chain.
pub(super) fn archive_of(truth: &Truth) -> Fresh {
    let directory = tempfile::tempdir().unwrap();
    let archive = Archive::open_or_create(directory.path(), &truth.model.genesis_json()).unwrap();
    Fresh { directory, archive }
}

impl Fresh {
    pub(super) fn import(
        &self,
        blocks: impl IntoIterator<Item = Block>,
    ) -> Result<ImportProgress, ImportError> {
        let blocks: Vec<Block> = blocks.into_iter().collect();
        self.archive.import_blocks(blocks, &mut archive::NoProgress)
    }

    pub(super) fn import_file(&self, bytes: &[u8]) -> Result<ImportProgress, ImportError> {
        let path = write(self.directory.path(), "blocks.rlp", bytes);
        self.archive.import(BlockFile::open(path).unwrap(), &mut archive::NoProgress)
    }

    pub(super) fn head(&self) -> u64 {
        self.archive.snapshot().head()
    }

    /// Everything that the archive answers is true, here and in some more blocks.
    pub(super) fn assert_true(&self, truth: &Truth, more: impl IntoIterator<Item = u64>) {
        truth.check_sample(&self.archive.snapshot(), more).unwrap();
    }
}

pub(super) fn write(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The blocks with these numbers.
pub(super) fn blocks(truth: &Truth, numbers: impl IntoIterator<Item = u64>) -> Vec<Block> {
    numbers.into_iter().map(|number| truth.model.block(number).unwrap().block.clone()).collect()
}
