//! Files of usage that is not in the store yet.
//!
//! Each process has a folder of its own below `data_dir/usage`, which it locks. Folders whose process has ended without
//! moving everything to the store are left over; another process reads them. An entry that is written survives the end of
//! the process; a torn entry at the end of a file was not finished, and is ignored.

mod batch; // entries that are moved to the store together
mod process_spool; // the spool of this process
mod segment; // one file of entries
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use twox_hash::XxHash3_64;

use super::entry;
use crate::instance_id::InstanceId;
use crate::policy::SPOOL_FILE_BYTES;
use store::UsageRow;

pub(super) use process_spool::ProcessSpool;
use segment::{Segment, SegmentName};

/// The file that a process locks while its folder is its own.
const LOCK: &str = "lock";

/// The folder of all spools.
pub(super) fn usage_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("usage")
}

/// Identifies the spool of one process: no two processes have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SpoolId {
    pub(super) instance: InstanceId,
    /// When the process was started, in milliseconds since 1970.
    pub(super) epoch: u64,
}

impl SpoolId {
    fn folder_name(self) -> String {
        format!("{}-{}", self.instance, self.epoch)
    }

    fn parse(name: &str) -> Option<Self> {
        let (instance, epoch) = name.split_once('-')?;
        Some(Self { instance: InstanceId::parse(instance)?, epoch: epoch.parse().ok()? })
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum AppendError {
    /// As many bytes wait for the store as may.
    #[error("spool_bytes_max is reached")]
    Full,
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[derive(Debug)]
pub(super) struct Spool {
    id: SpoolId,
    folder: PathBuf,
    /// Keeps other processes from reading the folder.
    _lock: File,
    /// The seed of all checksums.
    seed: u64,
    state: Mutex<SpoolState>,
}

#[derive(Debug)]
struct SpoolState {
    /// The oldest first; entries are appended to the last.
    segments: VecDeque<Segment>,
    next_segment: u64,
    next_sequence: u64,
}

impl Spool {
    /// Creates the spool of this process below `usage_dir`.
    pub(super) fn create(usage_dir: &Path, id: SpoolId) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(usage_dir)?;
        // The folder gets its name when it is locked, or another process could take it for left over.
        let unfinished = usage_dir.join(format!(".new-{}", id.folder_name()));
        DirBuilder::new().recursive(true).mode(0o700).create(&unfinished)?;
        let lock = private_file(&unfinished.join(LOCK))?;
        lock.lock()?;
        let folder = usage_dir.join(id.folder_name());
        fs::rename(&unfinished, &folder)?;
        Ok(Self::new(
            id,
            folder,
            lock,
            SpoolState { segments: VecDeque::new(), next_segment: 1, next_sequence: 1 },
        ))
    }

    /// The spools below `usage_dir` that no running process has. Calls `failed` with each folder that cannot be read.
    pub(super) fn left_over(usage_dir: &Path, mut failed: impl FnMut(PathBuf, io::Error)) -> Vec<Self> {
        let mut spools = Vec::new();
        // An absent folder was never created, or another process has just removed it.
        let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let entries = match fs::read_dir(usage_dir) {
            Err(error) if is_absent(&error) => return spools,
            entries => entries.and_then(|entries| entries.collect::<io::Result<Vec<_>>>()),
        };
        let entries = entries.unwrap_or_else(|error| {
            failed(usage_dir.to_owned(), error);
            Vec::new()
        });
        for entry in entries {
            let Some(id) = entry.file_name().to_str().and_then(SpoolId::parse) else { continue };
            match Self::open(entry.path(), id) {
                Ok(spool) => spools.extend(spool),
                Err(error) if is_absent(&error) => {}
                Err(error) => failed(entry.path(), error),
            }
        }
        spools.sort_by_key(|spool| spool.id.epoch);
        spools
    }

    /// Opens a folder, unless a running process has it, or nothing of a spool is left in it.
    fn open(folder: PathBuf, id: SpoolId) -> io::Result<Option<Self>> {
        if !folder.join(LOCK).try_exists()? && segment::names(&folder)?.is_empty() {
            return Ok(None);
        }
        let lock = private_file(&folder.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        let seed = seed(id);
        let (mut segments, mut last_sequence) = (VecDeque::new(), 0);
        for name in segment::names(&folder)? {
            segments.push_back(Segment::open(&folder, name, seed, &mut last_sequence)?);
        }
        let next_segment = segments.back().map_or(1, |segment| segment.name().number + 1);
        let state = SpoolState { segments, next_segment, next_sequence: last_sequence + 1 };
        Ok(Some(Self::new(id, folder, lock, state)))
    }

    fn new(id: SpoolId, folder: PathBuf, lock: File, state: SpoolState) -> Self {
        Self { id, folder, _lock: lock, seed: seed(id), state: Mutex::new(state) }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes of all entries that are not in the store.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.state.lock().waiting_bytes()
    }

    /// Appends rows as one entry, which survives the end of the process when this returns. `bytes_max` is how many bytes
    /// may wait for the store.
    pub(super) fn append(&self, rows: &[UsageRow], bytes_max: u64) -> Result<(), AppendError> {
        self.append_with(rows, bytes_max, |file, bytes, offset| file.write_all_at(bytes, offset))
    }

    fn append_with(
        &self,
        rows: &[UsageRow],
        bytes_max: u64,
        write: impl FnOnce(&File, &[u8], u64) -> io::Result<()>,
    ) -> Result<(), AppendError> {
        debug_assert!(rows.len() <= entry::ENTRY_ROWS_MAX);
        let mut state = self.state.lock();
        let bytes = entry::encode(state.next_sequence, rows.iter(), self.seed);
        if state.waiting_bytes() + bytes.len() as u64 > bytes_max {
            return Err(AppendError::Full);
        }
        state.segment_for_writing(&self.folder)?.append(&bytes, write)?;
        state.next_sequence += 1;
        Ok(())
    }

    /// Removes the spool if everything in it is stored. Returns whether it was. The folder stays if it has other files.
    pub(super) fn remove_if_stored(&self) -> io::Result<bool> {
        let mut state = self.state.lock();
        if state.segments.iter().any(|segment| !segment.is_stored()) {
            return Ok(false);
        }
        while let Some(segment) = state.segments.front() {
            segment.remove(&self.folder)?;
            state.segments.pop_front();
        }
        remove_file(&self.folder.join(LOCK))?;
        if let Err(error) = fs::remove_dir(&self.folder) {
            let folder = self.folder.display();
            tracing::warn!(%error, %folder, "all usage in this folder is stored, but it cannot be removed; remove it by hand");
        }
        Ok(true)
    }
}

impl SpoolState {
    fn waiting_bytes(&self) -> u64 {
        self.segments.iter().map(Segment::waiting_bytes).sum()
    }

    fn segment_for_writing(&mut self, folder: &Path) -> io::Result<&mut Segment> {
        if self.segments.back().is_none_or(|last| last.bytes() >= SPOOL_FILE_BYTES) {
            let segment = Segment::create(folder, SegmentName::new(self.next_segment))?;
            self.next_segment += 1;
            self.segments.push_back(segment);
        }
        let last = self.segments.len() - 1;
        Ok(&mut self.segments[last])
    }
}

fn seed(id: SpoolId) -> u64 {
    XxHash3_64::oneshot(id.folder_name().as_bytes())
}

/// Removes a file that may be gone already.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// A file that only its owner can read, because it contains names of accounts.
fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}
