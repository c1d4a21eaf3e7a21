//! Files on disk: opening them, refusing what is not ours, and what snapshots of one file share.

mod checksummed_file; // a checksum per sector, compared on every read
mod disk; // the database on its file
mod layout; // where everything stands in the file
mod savepoints; // earlier states that the file can be taken back to

use crate::{
    chain::{ChainSpec, GenesisError},
    logs::IndexError,
    rows::CorruptRow,
    state::AccountState,
    tables::FORMAT_VERSION,
};
use alloy_primitives::{Address, B256};
use checksummed_file::FileFault;
pub(crate) use disk::{Disk, FileKind};
use quick_cache::{Weighter, sync::Cache};
use redb::DatabaseError;
use revm::state::Bytecode;
pub use savepoints::REPLACEABLE_BLOCKS_MIN;
pub(crate) use savepoints::lowest_replaceable;
pub(crate) use savepoints::{Savepoint, Savepoints};
use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Memory that analysed contract code may use. Analysis costs more than most calls.
pub(crate) const CODE_CACHE_BYTES: u64 = 64 << 20;

/// Accounts as of a block that may be cached, at some 150 bytes each. Calls ask for the same few again and
/// again: the contract, the sender, the one who gets the fees.
pub(crate) const ACCOUNTS_CACHED: usize = 65_536;

pub(crate) const META_GENESIS: &str = "genesis";
pub(crate) const META_HEAD: &str = "head";

/// The parts that all snapshots of an archive share.
#[derive(Debug)]
pub(crate) struct SnapshotShared {
    pub(crate) chain: ChainSpec,
    pub(crate) code: CodeCache,
}

/// Accounts as the blocks of one chain left them. After a reorganisation the numbers mean other blocks, so that
/// snapshots share a cache only if one continues the chain of the other.
pub(crate) type AccountCache = Cache<(Address, u64), Option<AccountState>>;

pub(crate) type CodeCache = Cache<B256, Bytecode, CodeWeight>;

/// Weighs analysed code by its bytes; the jump table is an eighth of them.
#[derive(Debug, Clone)]
pub(crate) struct CodeWeight;

impl Weighter<B256, Bytecode> for CodeWeight {
    fn weight(&self, _hash: &B256, code: &Bytecode) -> u64 {
        const OVERHEAD_BYTES: u64 = 128;
        let bytes = code.len() as u64;
        OVERHEAD_BYTES + bytes + bytes / 8
    }
}

/// The fate of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExistingFile {
    Keep,
    Replace,
}

/// Writes a new file under another name and moves it into place, so that a half-made one is never seen.
///
/// Of several processes that do so at once, one gets the lock and makes it; nobody moves a file that another one
/// is still writing, nor puts a new file over one that has been made meanwhile.
pub(crate) fn create(
    path: &Path,
    existing: ExistingFile,
    write: impl FnOnce(&Path) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let (lock, unfinished) = (path.with_extension("lock"), path.with_extension("new"));
    let cannot_write = |path: &Path| {
        let path = path.to_owned();
        move |cause| OpenError::Directory { path, cause }
    };
    let held = File::create(&lock).map_err(cannot_write(&lock))?;
    held.try_lock().map_err(|cause| match cause {
        TryLockError::WouldBlock => OpenError::InUse(path.to_owned()),
        TryLockError::Error(cause) => cannot_write(&lock)(cause),
    })?;
    if existing == ExistingFile::Replace || !path.exists() {
        if unfinished.exists() {
            std::fs::remove_file(&unfinished).map_err(cannot_write(&unfinished))?;
        }
        write(&unfinished)?;
        std::fs::rename(&unfinished, path).map_err(cannot_write(path))?;
        sync_directory(path).map_err(cannot_write(path))?;
    }
    // From here on the file is there, and nobody needs the lock. Where this fails, the file does no harm.
    let _ = std::fs::remove_file(&lock);
    Ok(())
}

/// Makes the new name of a file durable: names are stored in the directory, which has a sync of its own.
pub(crate) fn sync_directory(path: &Path) -> std::io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Why an archive cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("there is no archive at {}; make one with `chaingate import`", .0.display())]
    Missing(PathBuf),
    #[error("the archive {} is in use by another process; stop that one first", .0.display())]
    InUse(PathBuf),
    #[error(
        "the archive {} has format version {found}, this program reads version {FORMAT_VERSION}; \
         use the program that made it, or import again into another data directory",
        path.display()
    )]
    Format { path: PathBuf, found: u32 },
    #[error(
        "the archive {} holds the chain with genesis {found}, but the genesis file given makes {given}; \
         use another data directory for another chain",
        path.display()
    )]
    OtherGenesis { path: PathBuf, found: B256, given: B256 },
    /// It holds this chain, but was made by other rules.
    #[error(
        "the archive {} was made with another `config` than this genesis file has; \
         use the genesis file that it was made with, or import again into another data directory",
        .0.display()
    )]
    OtherConfig(PathBuf),
    #[error("the archive {} is damaged; restore a backup, or import again", .0.display())]
    Damaged(PathBuf),
    #[error("{} is not an archive of this program", .0.display())]
    Foreign(PathBuf),
    #[error("genesis: {0}")]
    Genesis(#[from] GenesisError),
    #[error("cannot write {}: {cause}", path.display())]
    Directory { path: PathBuf, cause: std::io::Error },
    #[error("the archive cannot be read: {0}")]
    Store(#[from] StoreError),
}

impl OpenError {
    pub(crate) fn from_database(path: &Path, cause: DatabaseError) -> Self {
        match cause {
            DatabaseError::Storage(redb::StorageError::Io(cause)) => match FileFault::from_io(&cause) {
                Some(FileFault::Foreign) => Self::Foreign(path.to_owned()),
                Some(FileFault::Format(found)) => Self::Format { path: path.to_owned(), found },
                Some(_) => Self::Damaged(path.to_owned()),
                None => Self::Store(StoreError::from(redb::Error::Io(cause))),
            },
            other => Self::Store(StoreError::from(other)),
        }
    }

    /// Tells damage from other failures of a read.
    pub(crate) fn from_read(path: &Path, cause: StoreError) -> Self {
        match &cause {
            StoreError::Storage(storage) => match &**storage {
                redb::Error::Io(io) if FileFault::from_io(io).is_some() => Self::Damaged(path.to_owned()),
                redb::Error::Corrupted(_) => Self::Damaged(path.to_owned()),
                _ => Self::Store(cause),
            },
            _ => Self::Store(cause),
        }
    }
}

/// Reading or writing the file failed; never the caller's fault.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    #[error("storage: {0}")]
    Storage(Arc<redb::Error>),
    /// A row cannot be decoded.
    #[error(transparent)]
    Corrupt(#[from] CorruptRow),
    #[error("damaged: {0} is missing")]
    MissingRow(&'static str),
    #[error("log index: {0}")]
    Index(String),
    #[error("state trie: {0}")]
    Trie(String),
}

impl<E: Into<redb::Error>> From<E> for StoreError {
    fn from(cause: E) -> Self {
        Self::Storage(Arc::new(cause.into()))
    }
}

impl From<IndexError> for StoreError {
    fn from(cause: IndexError) -> Self {
        match cause {
            IndexError::Store(cause) => cause.into(),
            other => Self::Index(other.to_string()),
        }
    }
}

impl revm::context::DBErrorMarker for StoreError {}
