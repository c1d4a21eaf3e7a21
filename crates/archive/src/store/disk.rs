//! The database on its file, held against other processes, and opened anew when the disk failed.
//!
//! redb takes one failed read or write for the end: whatever is not in its cache is refused from then on. For a
//! file of terabytes, one bad sector that nobody can repair must not be that. So the database is opened again, on
//! the same file, and only reads of that sector and reads that were running at the time fail. Where
//! opening fails, the old database stays, with what is in its cache, until the next attempt.

use super::{
    OpenError, StoreError,
    checksummed_file::{ChecksummedFile, FileHealth},
};
use arc_swap::ArcSwap;
use redb::{Database, DatabaseError, StorageBackend, backends::FileBackend};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::Path,
    sync::{self, Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Time between two attempts to reopen the database. Meanwhile its cache still answers.
const PAUSE: Duration = Duration::from_secs(1);

/// The format and the cache size of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileKind {
    /// The version of its tables and rows. A file of another version is refused.
    pub(crate) version: u32,
    /// Memory that the store may use for pages, read and written ones together.
    pub(crate) page_cache_bytes: usize,
}

/// A file that is open, and the database in it.
#[derive(Debug)]
pub(crate) struct Disk {
    kind: FileKind,
    // Fields drop in this order: the database still writes when it is dropped, so the lock goes last.
    current: ArcSwap<OpenDatabase>,
    file: Arc<dyn StorageBackend>,
    /// When opening failed.
    reopening: Mutex<Option<Instant>>,
    _lock: Option<FileLock>,
}

/// The database, from one failure of the disk to the next.
#[derive(Debug)]
pub(crate) struct OpenDatabase {
    pub(crate) database: Database,
    health: Arc<FileHealth>,
}

impl Disk {
    /// Opens the database in a file.
    pub(crate) fn open(path: &Path, kind: FileKind) -> Result<Self, OpenError> {
        let (lock, file) = FileLock::take(path, File::options().read(true).write(true))?;
        Self::with(file, kind, Some(lock), ChecksummedFile::open)
            .map_err(|cause| OpenError::from_database(path, cause))
    }

    /// Opens the database in something that behaves like a file.
    pub(crate) fn open_on(file: Arc<dyn StorageBackend>, kind: FileKind) -> Result<Self, DatabaseError> {
        Self::with(file, kind, None, ChecksummedFile::open)
    }

    /// Makes a new file.
    pub(crate) fn create(path: &Path, kind: FileKind) -> Result<Self, OpenError> {
        let (lock, file) = FileLock::take(path, File::options().read(true).write(true).create_new(true))?;
        Self::with(file, kind, Some(lock), ChecksummedFile::create)
            .map_err(|cause| OpenError::from_database(path, cause))
    }

    fn with(
        file: Arc<dyn StorageBackend>,
        kind: FileKind,
        lock: Option<FileLock>,
        checked: fn(Arc<dyn StorageBackend>, u32) -> ChecksummedFile,
    ) -> Result<Self, DatabaseError> {
        let opened = OpenDatabase::new(checked(Arc::clone(&file), kind.version), kind)?;
        let current = ArcSwap::from_pointee(opened);
        Ok(Self { kind, current, file, reopening: Mutex::default(), _lock: lock })
    }

    /// The database as it is open now.
    pub(crate) fn opened(&self) -> Arc<OpenDatabase> {
        self.current.load_full()
    }

    /// Reads everything that is in use and compares it with its checksums; false if something had to be repaired.
    pub(crate) fn check(self) -> Result<bool, DatabaseError> {
        let opened = Arc::into_inner(self.current.into_inner());
        opened
            .map_or(Err(DatabaseError::TransactionInProgress), |mut opened| opened.database.check_integrity())
    }

    /// Passes the database to `work`, which publishes what it reads from it, and does not open another one meanwhile.
    pub(crate) fn with_current<T>(&self, work: impl FnOnce(&Database) -> T) -> T {
        let _no_reopening = self.reopening.lock().unwrap_or_else(PoisonError::into_inner);
        work(&self.opened().database)
    }

    /// Whether reading or writing failed since the database was opened.
    pub(crate) fn has_failed(&self) -> bool {
        self.current.load().health.has_failed()
    }

    /// Opens the database anew after a failure, and passes it to `check` before anything else uses it. While another thread does
    /// that, nothing is done, and what is in the cache of the old one can still be read.
    pub(crate) fn reopen(
        &self,
        check: impl FnOnce(&Database) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut failed = match self.reopening.try_lock() {
            Ok(failed) => failed,
            Err(sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(sync::TryLockError::WouldBlock) => return Ok(()),
        };
        if !self.has_failed() || failed.is_some_and(|at| at.elapsed() < PAUSE) {
            return Ok(());
        }
        self.current.load().health.retire();
        let reopened =
            OpenDatabase::new(ChecksummedFile::open(Arc::clone(&self.file), self.kind.version), self.kind)
                .map_err(StoreError::from)
                .and_then(|opened| check(&opened.database).map(|()| opened));
        *failed = reopened.is_err().then(Instant::now);
        reopened.map(|opened| self.current.store(Arc::new(opened)))
    }
}

impl OpenDatabase {
    fn new(checked: ChecksummedFile, kind: FileKind) -> Result<Self, DatabaseError> {
        let health = checked.health();
        let database =
            Database::builder().set_cache_size(kind.page_cache_bytes).create_with_backend(checked)?;
        Ok(Self { database, health })
    }
}

/// Keeps other processes away from a file. Snapshots may live longer than the archive, and keep its file open; the
/// lock goes with the archive.
#[derive(Debug)]
struct FileLock(File);

impl FileLock {
    fn take(path: &Path, options: &OpenOptions) -> Result<(Self, Arc<dyn StorageBackend>), OpenError> {
        let failed = |cause: io::Error| OpenError::Store(StoreError::from(redb::Error::Io(cause)));
        let file = options.open(path).map_err(failed)?;
        file.try_lock().map_err(|cause| match cause {
            TryLockError::WouldBlock => OpenError::InUse(path.to_owned()),
            TryLockError::Error(cause) => failed(cause),
        })?;
        let lock = Self(file.try_clone().map_err(failed)?);
        let file = FileBackend::new(file).map_err(|cause| OpenError::from_database(path, cause))?;
        Ok((lock, Arc::new(file)))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file releases the lock too, only later.
        let _ = self.0.unlock();
    }
}
