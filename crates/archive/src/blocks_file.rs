//! Blocks that were proven elsewhere, stored in a file of their own: `blocks.redb`.
//!
//! Nothing here is executed. A block is stored with its receipts under its number; the caller has proven it and knows that it
//! is final. Beside whole blocks there are bare headers, which lead from block to block and
//! say by their blooms which blocks have no logs of some kind.
//!
//! The file lies on the same checked storage as the archive: a damaged sector is an error, never an answer.

mod ranges; // which numbers are there
mod rows; // every row of the file
mod snapshot; // reads
mod tables; // every table of the file
mod writer; // one transaction
mod repair; // a new file without the damaged blocks

pub use repair::RemovedDamage;
pub use rows::{BlockParts, EncodedBlock, StoredBody, StoredHeader};
pub use snapshot::{BlocksFileSnapshot, StoredChainId};

use crate::copy::{self, CopyProgress, ReceiveError, SendError};
use crate::store::{Disk, ExistingFile, FileKind, OpenError, StoreError, create};
use crate::verify::{self, DamagedRange};
use arc_swap::ArcSwap;
use redb::{Database, ReadableDatabase, StorageBackend};
use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tables::{BlocksFileTables, FORMAT_VERSION};
use writer::BlocksFileWriter;

/// Name of the file of stored blocks inside the data directory.
pub const BLOCKS_FILE: &str = "blocks.redb";

/// Its pages may use 64 MiB of memory: what is asked often is cached in decoded form elsewhere.
const BLOCKS_KIND: FileKind = FileKind { version: FORMAT_VERSION, page_cache_bytes: 64 << 20 };

/// Blocks that one transaction may drop in addition to as many as were added, so that a lowered limit is reached in short
/// steps.
const PRUNED_AT_ONCE_MAX: usize = 1_024;

/// How many blocks the file may have; the newest ones stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlocksFileLimits {
    /// Whole blocks.
    pub blocks_max: Option<u64>,
    /// Headers, those of whole blocks among them.
    pub headers_max: Option<u64>,
}

/// The open file. Only one process at a time can open it.
pub struct BlocksFile {
    disk: Disk,
    path: PathBuf,
    limits: BlocksFileLimits,
    snapshot: ArcSwap<BlocksFileSnapshot>,
    /// Held during a transaction, because only one may run at a time.
    writing: Mutex<()>,
}

impl std::fmt::Debug for BlocksFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlocksFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl BlocksFile {
    /// Opens the file in a data directory, and makes directory and file where they are not there.
    pub fn open_or_create(data_dir: &Path, limits: BlocksFileLimits) -> Result<Self, BlocksFileOpenError> {
        let path = data_dir.join(BLOCKS_FILE);
        std::fs::create_dir_all(data_dir)
            .map_err(|cause| BlocksFileOpenError::Write { path: data_dir.to_owned(), cause })?;
        if !path.exists() {
            create(&path, ExistingFile::Keep, write_empty)
                .map_err(|cause| BlocksFileOpenError::at(&path, cause))?;
        }
        let disk = Disk::open(&path, BLOCKS_KIND).map_err(|cause| BlocksFileOpenError::at(&path, cause))?;
        Self::with(disk, path, limits)
    }

    /// Opens the file in something that behaves like one, for tests of disks that fail. Nobody holds a lock.
    #[doc(hidden)]
    pub fn open_on(
        file: Arc<dyn StorageBackend>,
        limits: BlocksFileLimits,
    ) -> Result<Self, BlocksFileOpenError> {
        let path = PathBuf::from(BLOCKS_FILE);
        let disk = Disk::open_on(file, BLOCKS_KIND)
            .map_err(|cause| BlocksFileOpenError::at(&path, OpenError::from_database(&path, cause)))?;
        Self::with(disk, path, limits)
    }

    fn with(disk: Disk, path: PathBuf, limits: BlocksFileLimits) -> Result<Self, BlocksFileOpenError> {
        let snapshot = BlocksFileSnapshot::take(&disk.opened().database)
            .map_err(|cause| BlocksFileOpenError::Read { path: path.clone(), cause })?;
        Ok(Self { disk, path, limits, snapshot: ArcSwap::from_pointee(snapshot), writing: Mutex::default() })
    }

    /// The file as of the last commit.
    pub fn snapshot(&self) -> Arc<BlocksFileSnapshot> {
        if self.disk.has_failed() {
            self.reopen();
        }
        self.snapshot.load_full()
    }

    fn reopen(&self) {
        let reopened = self.disk.reopen(|database| self.publish_snapshot(database));
        if let Err(cause) = reopened {
            tracing::error!(path = %self.path.display(), %cause, "the disk failed, and the file could not be opened anew");
        }
    }

    /// Compares everything that is in use in the file of a data directory with its checksums.
    pub fn verify(data_dir: &Path) -> Result<(), BlocksFileOpenError> {
        let path = data_dir.join(BLOCKS_FILE);
        verify::check_pages(&path, BLOCKS_KIND).map_err(|cause| BlocksFileOpenError::at(&path, cause))
    }

    /// Reads all rows of the file of a data directory, and names those that cannot be read.
    pub fn find_damage(
        data_dir: &Path,
        report: &mut dyn FnMut(CopyProgress),
    ) -> Result<Vec<DamagedRange>, BlocksFileOpenError> {
        let path = data_dir.join(BLOCKS_FILE);
        verify::find_damage::<BlocksFileTables>(&path, BLOCKS_KIND, report)
            .map_err(|cause| BlocksFileOpenError::at(&path, cause))
    }

    /// Sends all rows as of the last commit. Blocks can be stored meanwhile; the file grows by the pages that are replaced.
    pub fn send_rows(&self, out: impl Write) -> Result<(), SendError> {
        if self.disk.has_failed() {
            self.reopen();
        }
        let snapshot = self.disk.opened().database.begin_read().map_err(StoreError::from)?;
        copy::send::<BlocksFileTables>(&snapshot, FORMAT_VERSION, out)
    }

    /// Makes the file of a data directory, which must have none, of the rows that another one sends.
    pub fn receive_rows(
        from: impl Read,
        data_dir: &Path,
        report: &mut dyn FnMut(CopyProgress),
    ) -> Result<(), ReceiveError> {
        copy::receive::<BlocksFileTables>(from, &data_dir.join(BLOCKS_FILE), BLOCKS_KIND, report)
    }

    pub fn limits(&self) -> BlocksFileLimits {
        self.limits
    }

    pub fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |file| file.len())
    }

    /// Writes down which chain the blocks are of.
    pub fn set_chain(&self, chain: StoredChainId) -> Result<(), StoreError> {
        self.write(|writing| writing.set_chain(chain))
    }

    /// Stores whole blocks, all or none of them. They are durable when this returns. The lowest ones make room.
    pub fn put_blocks(&self, blocks: &[EncodedBlock]) -> Result<(), StoreError> {
        self.write(|writing| blocks.iter().try_for_each(|block| writing.put_block(block)))?;
        self.prune(blocks.len());
        Ok(())
    }

    /// Stores headers, all or none of them. Those of blocks that are stored whole stay as they are.
    pub fn put_headers(&self, headers: &[StoredHeader]) -> Result<(), StoreError> {
        self.write(|writing| headers.iter().try_for_each(|header| writing.put_header(header)))?;
        self.prune(headers.len());
        Ok(())
    }

    /// Removes all blocks and headers above a number, because the chain has gone back to that block.
    pub fn remove_above(&self, number: u64) -> Result<(), StoreError> {
        self.write(|writing| writing.remove_above(number))
    }

    /// Drops what is over the limits, in a transaction of its own: an old block that cannot be read must not keep new ones out.
    fn prune(&self, added: usize) {
        if !self.snapshot().is_over(self.limits) {
            return;
        }
        let pruned = self.write(|writing| writing.prune(self.limits, added + PRUNED_AT_ONCE_MAX));
        if let Err(cause) = pruned {
            tracing::error!(path = %self.path.display(), %cause, "old blocks cannot make room for new ones; the file grows");
        }
    }

    fn write(
        &self,
        work: impl FnOnce(&mut BlocksFileWriter<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.disk.has_failed() {
            self.reopen();
        }
        let opened = self.disk.opened();
        let mut transaction = opened.database.begin_write().map_err(StoreError::from)?;
        // Recovery after a crash is then a matter of milliseconds, whatever the size of the file.
        transaction.set_quick_repair(true);
        let mut writing = BlocksFileWriter::open(&transaction)?;
        work(&mut writing)?;
        writing.finish()?;
        transaction.commit().map_err(StoreError::from)?;
        self.disk.with_current(|database| self.publish_snapshot(database))
    }

    fn publish_snapshot(&self, database: &Database) -> Result<(), StoreError> {
        self.snapshot.store(Arc::new(BlocksFileSnapshot::take(database)?));
        Ok(())
    }
}

/// A file that has all tables and no rows.
fn write_empty(path: &Path) -> Result<(), OpenError> {
    let disk = Disk::create(path, BLOCKS_KIND)?;
    let transaction = disk.opened().database.begin_write().map_err(StoreError::from)?;
    BlocksFileWriter::open(&transaction)?.finish()?;
    Ok(transaction.commit().map_err(StoreError::from)?)
}

/// Why the file of stored blocks cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BlocksFileOpenError {
    #[error("the file {} is in use by another process; stop that one, or use another data_dir", .0.display())]
    InUse(PathBuf),
    #[error(
        "the file {} has format version {found}, this program reads version {FORMAT_VERSION}; \
         remove it, and its blocks are fetched again",
        path.display()
    )]
    Format { path: PathBuf, found: u32 },
    #[error("the file {} is damaged; remove it, and its blocks are fetched again", .0.display())]
    Damaged(PathBuf),
    #[error("the file {} does not hold blocks stored by this program; move it away", .0.display())]
    Foreign(PathBuf),
    #[error("cannot write {}: {cause}", path.display())]
    Write { path: PathBuf, cause: std::io::Error },
    #[error("cannot use the file {}: {cause}", path.display())]
    Read { path: PathBuf, cause: StoreError },
}

impl BlocksFileOpenError {
    fn at(path: &Path, cause: OpenError) -> Self {
        let path = path.to_owned();
        match cause {
            OpenError::InUse(path) => Self::InUse(path),
            OpenError::Format { path, found } => Self::Format { path, found },
            OpenError::Damaged(path) => Self::Damaged(path),
            OpenError::Directory { path, cause } => Self::Write { path, cause },
            OpenError::Store(cause) => Self::Read { path, cause },
            OpenError::Foreign(_)
            | OpenError::Missing(_)
            | OpenError::OtherGenesis { .. }
            | OpenError::OtherConfig(_)
            | OpenError::Genesis(_) => Self::Foreign(path),
        }
    }
}
