//! An archive that is open: its file, the snapshots that reads are made on, and the genesis that it was made from.

use crate::{
    chain::ChainSpec,
    copy::{self, CopyProgress, ReceiveError, SendError},
    read::Snapshot,
    store::{
        CODE_CACHE_BYTES, CodeWeight, Disk, ExistingFile, FileKind, META_GENESIS, OpenError, Savepoints,
        SnapshotShared, StoreError, create, lowest_replaceable,
    },
    tables::{ArchiveTables, FORMAT_VERSION, META},
    verify::{self, DamagedRange},
    write,
};
use arc_swap::ArcSwap;
use quick_cache::sync::Cache;
use redb::{Database, ReadableDatabase, StorageBackend, TableError, WriteTransaction};
use std::{
    io::{Read, Write},
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Name of the archive file inside the data directory.
pub const ARCHIVE_FILE: &str = "archive.redb";

/// The format of the archive's file. Its pages may use half a gigabyte of memory.
const ARCHIVE_KIND: FileKind = FileKind { version: FORMAT_VERSION, page_cache_bytes: 512 << 20 };

/// An archive that is open. One process at a time can have it open.
pub struct Archive {
    disk: Disk,
    path: PathBuf,
    shared: Arc<SnapshotShared>,
    snapshot: ArcSwap<Snapshot>,
    /// Held during an import, because each import continues where the last one ended.
    import: Mutex<()>,
    /// The newest finalized block, as set by the code that follows the chain.
    finalized: Mutex<Option<u64>>,
    /// Who is told of each commit.
    listeners: Mutex<Vec<CommitListener>>,
}

type CommitListener = Box<dyn Fn() + Send + Sync>;

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
            create(&path, ExistingFile::Keep, |unfinished| write_genesis(unfinished, &chain, genesis))?;
        }
        let archive = Self::open(data_dir)?;
        match archive.check_genesis(&chain) {
            Ok(()) => Ok(archive),
            Err(OpenError::OtherGenesis { .. } | OpenError::OtherConfig(_))
                if archive.snapshot().head() == 0 =>
            {
                // The old archive stays open, and with it locked, until the new one is in its place.
                create(&path, ExistingFile::Replace, |unfinished| {
                    write_genesis(unfinished, &chain, genesis)
                })?;
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
        verify::check_pages(&data_dir.join(ARCHIVE_FILE), ARCHIVE_KIND).map(|()| head)
    }

    /// Reads all rows of the file of a data directory, and names those that cannot be read.
    pub fn find_damage(
        data_dir: &Path,
        report: &mut dyn FnMut(CopyProgress),
    ) -> Result<Vec<DamagedRange>, OpenError> {
        let path = data_dir.join(ARCHIVE_FILE);
        if !path.exists() {
            return Err(OpenError::Missing(path));
        }
        verify::find_damage::<ArchiveTables>(&path, ARCHIVE_KIND, report)
    }

    /// Sends all rows as of the last commit. Imports go on meanwhile; the pages that they replace are not used again before this
    /// returns, and the file grows by them.
    pub fn send_rows(&self, out: impl Write) -> Result<(), SendError> {
        if self.disk.has_failed() {
            self.reopen();
        }
        let snapshot = self.disk.opened().database.begin_read().map_err(StoreError::from)?;
        copy::send::<ArchiveTables>(&snapshot, FORMAT_VERSION, out)
    }

    /// Makes the archive of a data directory, which must have none, of the rows that another one sends. All of its blocks are final.
    pub fn receive_rows(
        from: impl Read,
        data_dir: &Path,
        report: &mut dyn FnMut(CopyProgress),
    ) -> Result<(), ReceiveError> {
        copy::receive::<ArchiveTables>(from, &data_dir.join(ARCHIVE_FILE), ARCHIVE_KIND, report)
    }

    fn with(disk: Disk, path: PathBuf) -> Result<Self, OpenError> {
        const EXPECTED_CONTRACTS: usize = 4096;
        let code = Cache::with_weighter(EXPECTED_CONTRACTS, CODE_CACHE_BYTES, CodeWeight);
        let opened = disk.opened();
        let chain = ChainSpec::from_json(&read_genesis(&opened.database, &path)?)?;
        let shared = Arc::new(SnapshotShared { chain, code });
        let snapshot = Snapshot::take(&opened.database, Arc::clone(&shared), None)?;
        let snapshot = ArcSwap::from_pointee(snapshot);
        let (import, finalized, listeners) = (Mutex::new(()), Mutex::new(None), Mutex::default());
        Ok(Self { disk, path, shared, snapshot, import, finalized, listeners })
    }

    /// The archive as of the last commit. All reads of one snapshot see the same chain.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        if self.disk.has_failed() {
            self.reopen();
        }
        self.snapshot.load_full()
    }

    /// The same as [`Self::snapshot`], for short reads: it changes no reference count that cores share.
    pub fn current(&self) -> impl Deref<Target = Arc<Snapshot>> {
        if self.disk.has_failed() {
            self.reopen();
        }
        self.snapshot.load()
    }

    fn reopen(&self) {
        let reopened = self.disk.reopen(|database| self.publish_snapshot(database));
        if let Err(cause) = reopened {
            tracing::error!(%cause, "the disk failed, and the archive could not be opened anew");
        }
    }

    pub fn chain(&self) -> &ChainSpec {
        &self.shared.chain
    }

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
        // An import that panicked has left the file as of its last commit.
        self.import.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says which block is the newest one that is finalized, if that is known. Blocks after it stay replaceable, within bounds.
    pub fn set_finalized(&self, number: Option<u64>) {
        *self.finalized.lock().unwrap_or_else(PoisonError::into_inner) = number;
    }

    pub(crate) fn finalized(&self) -> Option<u64> {
        *self.finalized.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lowest block whose successors can be replaced when `head` is the newest, if all of them were followed.
    pub fn lowest_replaceable(&self, head: u64) -> u64 {
        lowest_replaceable(head, self.finalized())
    }

    /// Whether the blocks after this one can be removed or replaced.
    pub fn can_go_back_to(&self, number: u64) -> Result<bool, StoreError> {
        Ok(self.savepoints()?.at_or_below(number).is_some())
    }

    /// The savepoints that the file can be taken back to.
    pub(crate) fn savepoints(&self) -> Result<Savepoints, StoreError> {
        Savepoints::read(&self.disk.opened().database.begin_read()?.open_table(META)?)
    }

    /// Calls this after each commit, on the thread that imports. It must not wait.
    pub fn on_commit(&self, tell: impl Fn() + Send + Sync + 'static) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(tell));
    }

    /// Makes a transaction durable and shows it to the readers that come from now on.
    pub(crate) fn commit(&self, transaction: WriteTransaction) -> Result<(), StoreError> {
        transaction.commit().map_err(StoreError::from)?;
        self.disk.with_current(|database| self.publish_snapshot(database))
    }

    fn publish_snapshot(&self, database: &Database) -> Result<(), StoreError> {
        let before = self.snapshot.load();
        let snapshot = Snapshot::take(database, Arc::clone(&self.shared), Some(&before))?;
        self.snapshot.store(Arc::new(snapshot));
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().for_each(|tell| tell());
        Ok(())
    }
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").field("path", &self.path).finish_non_exhaustive()
    }
}

fn write_genesis(path: &Path, chain: &ChainSpec, genesis: &str) -> Result<(), OpenError> {
    let disk = Disk::create(path, ARCHIVE_KIND)?;
    let transaction = disk.opened().database.begin_write().map_err(StoreError::from)?;
    {
        let mut meta = transaction.open_table(META).map_err(StoreError::from)?;
        meta.insert(META_GENESIS, genesis.as_bytes()).map_err(StoreError::from)?;
    }
    write::store_genesis(&transaction, chain)?;
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

#[cfg(test)]
mod tests;
