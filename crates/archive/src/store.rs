//! The archive's file on disk: opening it, refusing what is not ours, and the snapshots that reads are made on.

mod checked; // compares what is read with its checksum
mod disk; // the database on its file
mod front; // what the file is, and redb's header, twice
mod layout; // where everything stands in the file
mod savepoints; // earlier states that the file can be taken back to

use crate::{
    chain::{ChainSpec, GenesisError},
    logs::IndexError,
    read::Snapshot,
    rows::CorruptRow,
    state::Account,
    tables::{FORMAT_VERSION, META},
};
use alloy_primitives::{Address, B256};
use arc_swap::ArcSwap;
use checked::FileFault;
pub(crate) use disk::{Disk, FileKind};
use quick_cache::{Weighter, sync::Cache};
use redb::{Database, DatabaseError, ReadableDatabase, StorageBackend, TableError, WriteTransaction};
use revm::state::Bytecode;
pub use savepoints::REPLACEABLE_BLOCKS_MIN;
pub(crate) use savepoints::{Savepoint, Savepoints};
use std::{
    fs::{File, TryLockError},
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Name of the archive file inside the data directory.
pub const ARCHIVE_FILE: &str = "archive.redb";

/// What the archive's file is. Its pages may use half a gigabyte of memory.
const ARCHIVE_KIND: FileKind = FileKind { version: FORMAT_VERSION, page_cache_bytes: 512 << 20 };

/// Memory that analysed contract code may use. Analysis costs more than most calls.
pub(crate) const CODE_CACHE_BYTES: u64 = 64 << 20;

/// Accounts as of a block that may be kept in memory, at some 150 bytes each. Calls ask for the same few again and
/// again: the contract, the sender, the one who gets the fees.
pub(crate) const ACCOUNTS_CACHED: usize = 65_536;

pub(crate) const META_GENESIS: &str = "genesis";
pub(crate) const META_HEAD: &str = "head";

/// An archive that is open. One process at a time can have it open.
pub struct Archive {
    disk: Disk,
    path: PathBuf,
    shared: Arc<Shared>,
    snapshot: ArcSwap<Snapshot>,
    /// Held by the import under way: each goes on where the last one has ended.
    import: Mutex<()>,
}

/// What all snapshots of an archive have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) chain: ChainSpec,
    pub(crate) code: CodeCache,
}

/// Accounts as the blocks of one chain left them. After a reorganisation the numbers mean other blocks, so that
/// snapshots share a cache only if one continues the chain of the other.
pub(crate) type AccountCache = Cache<(Address, u64), Option<Account>>;

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

impl Archive {
    /// Opens the archive in a data directory.
    pub fn open(data_dir: &Path) -> Result<Self, OpenError> {
        let path = data_dir.join(ARCHIVE_FILE);
        if !path.exists() {
            return Err(OpenError::Missing(path));
        }
        Self::with(Disk::open(&path, ARCHIVE_KIND)?, path)
    }

    /// Opens the archive in something that behaves like its file, for tests of disks that fail. Nobody holds a lock.
    #[doc(hidden)]
    pub fn open_on(file: Arc<dyn StorageBackend>) -> Result<Self, OpenError> {
        let path = PathBuf::from(ARCHIVE_FILE);
        let disk =
            Disk::open_on(file, ARCHIVE_KIND).map_err(|cause| OpenError::from_database(&path, cause))?;
        Self::with(disk, path)
    }

    /// Opens the archive in a data directory, or makes one that holds the genesis block.
    ///
    /// An archive that is there already must have been made from the same genesis. One that was not, and that has no
    /// block but block 0, is replaced: whoever gave a wrong genesis file can try again with the right one.
    pub fn open_or_create(data_dir: &Path, genesis: &str) -> Result<Self, OpenError> {
        let chain = ChainSpec::from_json(genesis)?;
        let path = data_dir.join(ARCHIVE_FILE);
        std::fs::create_dir_all(data_dir)
            .map_err(|cause| OpenError::Directory { path: data_dir.to_owned(), cause })?;
        if !path.exists() {
            create(&path, Existing::Keep, |unfinished| write_genesis(unfinished, &chain, genesis))?;
        }
        let archive = Self::open(data_dir)?;
        match archive.check_genesis(&chain) {
            Ok(()) => Ok(archive),
            Err(OpenError::OtherGenesis { .. } | OpenError::OtherConfig(_))
                if archive.snapshot().head() == 0 =>
            {
                // The old archive stays open, and with it locked, until the new one is in its place.
                create(&path, Existing::Replace, |unfinished| write_genesis(unfinished, &chain, genesis))?;
                drop(archive);
                Self::open(data_dir)
            }
            Err(cause) => Err(cause),
        }
    }

    /// Whether this archive was made from the genesis of a file.
    pub fn is_of_genesis(&self, genesis: &str) -> Result<(), OpenError> {
        self.check_genesis(&ChainSpec::from_json(genesis)?)
    }

    /// Whether this archive was made from the same genesis.
    fn check_genesis(&self, chain: &ChainSpec) -> Result<(), OpenError> {
        let path = || self.path.clone();
        let (found, given) = (self.snapshot().genesis_hash()?, chain.genesis_header().hash_slow());
        if found != given {
            return Err(OpenError::OtherGenesis { path: path(), found, given });
        }
        if self.chain().genesis().config != chain.genesis().config {
            return Err(OpenError::OtherConfig(path()));
        }
        Ok(())
    }

    /// Reads all that is in use of the file of a data directory, and compares every sector and every page with its
    /// checksum.
    ///
    /// Gives the number of the newest block.
    pub fn verify(data_dir: &Path) -> Result<u64, OpenError> {
        let head = Self::open(data_dir)?.snapshot().head();
        check_pages(&data_dir.join(ARCHIVE_FILE)).map(|()| head)
    }

    fn with(disk: Disk, path: PathBuf) -> Result<Self, OpenError> {
        const EXPECTED_CONTRACTS: usize = 4096;
        let code = Cache::with_weighter(EXPECTED_CONTRACTS, CODE_CACHE_BYTES, CodeWeight);
        let opened = disk.opened();
        let chain = ChainSpec::from_json(&read_genesis(&opened.database, &path)?)?;
        let shared = Arc::new(Shared { chain, code });
        let snapshot = Snapshot::take(&opened.database, Arc::clone(&shared), None)?;
        let snapshot = ArcSwap::from_pointee(snapshot);
        Ok(Self { disk, path, shared, snapshot, import: Mutex::new(()) })
    }

    /// The archive as of the last commit. All reads of one snapshot see the same chain.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        if self.disk.has_failed() {
            self.reopen();
        }
        self.snapshot.load_full()
    }

    /// The same, for a read that is over soon: nothing is counted that other cores count too.
    pub fn current(&self) -> impl Deref<Target = Arc<Snapshot>> {
        if self.disk.has_failed() {
            self.reopen();
        }
        self.snapshot.load()
    }

    fn reopen(&self) {
        let reopened = self.disk.reopen(|database| self.show(database));
        if let Err(cause) = reopened {
            tracing::error!(%cause, "the disk failed, and the archive could not be opened anew");
        }
    }

    /// The rules of the chain.
    pub fn chain(&self) -> &ChainSpec {
        &self.shared.chain
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn begin_write(&self) -> Result<WriteTransaction, StoreError> {
        let mut transaction = self.disk.opened().database.begin_write().map_err(StoreError::from)?;
        // Recovery after a crash is then a matter of milliseconds, whatever the size of the file.
        transaction.set_quick_repair(true);
        Ok(transaction)
    }

    /// Waits until no other import is under way.
    pub(crate) fn begin_import(&self) -> MutexGuard<'_, ()> {
        // One that panicked has left what its last commit left.
        self.import.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The savepoints that the file can be taken back to.
    pub(crate) fn savepoints(&self) -> Result<Savepoints, StoreError> {
        Savepoints::read(&self.disk.opened().database.begin_read()?.open_table(META)?)
    }

    /// Makes a transaction durable and shows it to the readers that come from now on.
    pub(crate) fn commit(&self, transaction: WriteTransaction) -> Result<(), StoreError> {
        transaction.commit().map_err(StoreError::from)?;
        self.show(&self.disk.opened().database)
    }

    fn show(&self, database: &Database) -> Result<(), StoreError> {
        let before = self.snapshot.load();
        let snapshot = Snapshot::take(database, Arc::clone(&self.shared), Some(&before))?;
        self.snapshot.store(Arc::new(snapshot));
        Ok(())
    }
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Compares everything in use with its checksums.
fn check_pages(path: &Path) -> Result<(), OpenError> {
    match Disk::open(path, ARCHIVE_KIND)?.check() {
        Ok(true) => Ok(()),
        Ok(false) | Err(DatabaseError::Storage(redb::StorageError::Corrupted(_))) => {
            Err(OpenError::Damaged(path.to_owned()))
        }
        Err(cause) => Err(OpenError::from_database(path, cause)),
    }
}

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Keep,
    Replace,
}

/// Writes a new file under another name and moves it into place, so that a half-made one is never seen.
///
/// Of several processes that do so at once, one gets the lock and makes it; nobody moves a file that another one
/// is still writing, nor puts a new file over one that has been made meanwhile.
pub(crate) fn create(
    path: &Path,
    existing: Existing,
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
    if existing == Existing::Replace || !path.exists() {
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
fn sync_directory(path: &Path) -> std::io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn write_genesis(path: &Path, chain: &ChainSpec, genesis: &str) -> Result<(), OpenError> {
    let disk = Disk::create(path, ARCHIVE_KIND)?;
    let transaction = disk.opened().database.begin_write().map_err(StoreError::from)?;
    {
        let mut meta = transaction.open_table(META).map_err(StoreError::from)?;
        meta.insert(META_GENESIS, genesis.as_bytes()).map_err(StoreError::from)?;
    }
    crate::import::store_genesis(&transaction, chain)?;
    Ok(transaction.commit().map_err(StoreError::from)?)
}

/// The genesis file that an archive was made from.
fn read_genesis(database: &Database, path: &Path) -> Result<String, OpenError> {
    let foreign = || OpenError::Foreign(path.to_owned());
    let transaction = database.begin_read().map_err(StoreError::from)?;
    let meta = transaction.open_table(META).map_err(|cause| match cause {
        TableError::Storage(cause) => OpenError::Store(cause.into()),
        _ => foreign(),
    })?;
    let genesis = meta.get(META_GENESIS).map_err(StoreError::from)?.ok_or_else(foreign)?;
    std::str::from_utf8(genesis.value()).map(str::to_owned).map_err(|_| foreign())
}

/// Why an archive cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none.
    #[error("there is no archive at {}; make one with `chaingate import`", .0.display())]
    Missing(PathBuf),
    /// Another process has it open.
    #[error("the archive {} is in use by another process; stop that one first", .0.display())]
    InUse(PathBuf),
    /// It was written by another version.
    #[error(
        "the archive {} has format version {found}, this program reads version {FORMAT_VERSION}; \
         use the program that made it, or import again into another data directory",
        path.display()
    )]
    Format {
        /// Where it is.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// It holds another chain.
    #[error(
        "the archive {} holds the chain with genesis {found}, but the genesis file given makes {given}; \
         use another data directory for another chain",
        path.display()
    )]
    OtherGenesis {
        /// Where it is.
        path: PathBuf,
        /// Hash of its genesis block.
        found: B256,
        /// Hash of the genesis block that was given.
        given: B256,
    },
    /// It holds this chain, but was made by other rules.
    #[error(
        "the archive {} was made with another `config` than this genesis file has; \
         use the genesis file that it was made with, or import again into another data directory",
        .0.display()
    )]
    OtherConfig(PathBuf),
    /// Pages of it are not what was written.
    #[error("the archive {} is damaged; import again", .0.display())]
    Damaged(PathBuf),
    /// The file is something else.
    #[error("{} is not an archive of this program", .0.display())]
    Foreign(PathBuf),
    /// The genesis file is no use.
    #[error("genesis: {0}")]
    Genesis(#[from] GenesisError),
    /// A directory or file cannot be made.
    #[error("cannot write {}: {cause}", path.display())]
    Directory {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// Reading or writing failed.
    #[error("the archive cannot be read: {0}")]
    Store(#[from] StoreError),
}

impl OpenError {
    pub(crate) fn from_database(path: &Path, cause: DatabaseError) -> Self {
        match cause {
            DatabaseError::Storage(redb::StorageError::Io(cause)) => match FileFault::behind(&cause) {
                Some(FileFault::Foreign) => Self::Foreign(path.to_owned()),
                Some(FileFault::Format(found)) => Self::Format { path: path.to_owned(), found },
                Some(_) => Self::Damaged(path.to_owned()),
                None => Self::Store(StoreError::from(redb::Error::Io(cause))),
            },
            other => Self::Store(StoreError::from(other)),
        }
    }
}

/// Reading or writing the file failed; never the caller's fault.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The key-value store reports this.
    #[error("storage: {0}")]
    Storage(Arc<redb::Error>),
    /// A row does not read.
    #[error(transparent)]
    Corrupt(#[from] CorruptRow),
    /// Something that other rows refer to is not there.
    #[error("damaged: {0} is missing")]
    MissingRow(&'static str),
    /// The log index is damaged or full.
    #[error("log index: {0}")]
    Index(String),
    /// The state tries are damaged.
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

#[cfg(test)]
mod tests;
