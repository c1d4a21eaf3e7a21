//! Whether the data directory can be written: what each of its writers met last, and how much space is left.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The file of the data directory that says when the last backup was finished.
const LAST_BACKUP_FILE: &str = "last-backup";

/// Bytes of it that are read; a time has 10 digits.
const LAST_BACKUP_BYTES_MAX: u64 = 32;

/// The health of the disk that has the data directory. Clones are about the same disk.
#[derive(Clone, Debug)]
pub struct DiskHealth {
    data_dir: Arc<Path>,
    writers: Arc<[Mutex<WriterState>; DiskWriter::ALL.len()]>,
}

/// A writer to the data directory, named by what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskWriter {
    /// The files with usage that waits for the store.
    Usage,
    /// The local copy of accounts and keys.
    KeysCopy,
    Archive,
    /// The stored blocks of nodes.
    Blocks,
}

#[derive(Debug, Default)]
struct WriterState {
    failures: u64,
    failing: Option<(Instant, String)>,
}

/// The writes of one writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskWriterReport {
    pub writer: DiskWriter,
    /// Failed writes since the start.
    pub failures: u64,
    /// How long its writes have failed, and the cause of the last failure; `None` if its last write went well.
    pub failing: Option<(Duration, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that this process may still write.
    pub free_bytes: u64,
    pub size_bytes: u64,
}

impl DiskWriter {
    pub const ALL: [Self; 4] = [Self::Usage, Self::KeysCopy, Self::Archive, Self::Blocks];

    /// Its name in `/status` and in metrics, and the same in a sentence.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Usage => ("usage", "usage"),
            Self::KeysCopy => ("keys_copy", "the copy of accounts and keys"),
            Self::Archive => ("archive", "the archive"),
            Self::Blocks => ("blocks", "blocks of the nodes"),
        }
    }

    /// Its name in `/status` and in metrics.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// Its name in a sentence.
    pub fn what(self) -> &'static str {
        self.names().1
    }
}

impl DiskHealth {
    pub fn new(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.into(), writers: Arc::default() }
    }

    /// Records how a write ended.
    pub fn record<T, E: Display>(&self, writer: DiskWriter, written: &Result<T, E>) {
        let mut state = self.writers[writer as usize].lock();
        state.failing = match written {
            Ok(_) => None,
            Err(cause) => {
                state.failures += 1;
                let since = state.failing.as_ref().map_or_else(Instant::now, |(since, _)| *since);
                Some((since, cause.to_string()))
            }
        };
    }

    /// The state of each writer.
    pub fn report(&self) -> Vec<DiskWriterReport> {
        let reports = DiskWriter::ALL.into_iter().zip(&*self.writers).map(|(writer, state)| {
            let state = state.lock();
            let failing = state.failing.as_ref().map(|(since, cause)| (since.elapsed(), cause.clone()));
            DiskWriterReport { writer, failures: state.failures, failing }
        });
        reports.collect()
    }

    /// The first writer whose last write has failed.
    pub fn first_failing(&self) -> Option<DiskWriterReport> {
        self.report().into_iter().find(|report| report.failing.is_some())
    }

    /// When the last backup of the data directory was finished, in seconds since 1970; `None` if there was none.
    pub fn last_backup_at(&self) -> Option<i64> {
        let mut text = String::new();
        let file = File::open(self.data_dir.join(LAST_BACKUP_FILE)).ok()?;
        file.take(LAST_BACKUP_BYTES_MAX).read_to_string(&mut text).ok()?;
        text.trim_end().parse().ok()
    }

    /// Records that a backup of the data directory was finished, for the gateway that runs and those that start later.
    pub fn record_backup(&self, unix_seconds: i64) -> io::Result<()> {
        let file = self.data_dir.join(LAST_BACKUP_FILE);
        let temporary = file.with_extension("new");
        fs::write(&temporary, format!("{unix_seconds}\n"))?;
        fs::rename(&temporary, &file)
    }

    /// The space of the disk; `None` if the data directory cannot be looked at.
    pub fn space(&self) -> Option<DiskSpace> {
        let disk = rustix::fs::statvfs(&*self.data_dir).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Some(DiskSpace { free_bytes: bytes(disk.f_bavail), size_bytes: bytes(disk.f_blocks) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_last_backup_is_read_from_the_data_directory() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskHealth::new(folder.path());
        assert_eq!(disk.last_backup_at(), None);
        disk.record_backup(1_798_761_599).unwrap();
        assert_eq!(DiskHealth::new(folder.path()).last_backup_at(), Some(1_798_761_599));
        fs::write(folder.path().join(LAST_BACKUP_FILE), "yesterday").unwrap();
        assert_eq!(disk.last_backup_at(), None);
    }

    #[test]
    fn a_writer_fails_from_its_first_failure_until_a_write_that_goes_well() {
        let folder = std::env::temp_dir();
        let disk = DiskHealth::new(&folder);
        assert_eq!(disk.first_failing(), None);
        for cause in ["no space left", "read-only file system"] {
            disk.record(DiskWriter::Blocks, &Err::<(), _>(cause));
        }
        disk.record(DiskWriter::Usage, &Ok::<_, &str>(()));
        let failing = disk.first_failing().unwrap();
        assert_eq!((failing.writer, failing.failures), (DiskWriter::Blocks, 2));
        assert_eq!(failing.failing.unwrap().1, "read-only file system");
        disk.record(DiskWriter::Blocks, &Ok::<_, &str>(()));
        assert_eq!(disk.first_failing(), None);
        assert_eq!(disk.report()[DiskWriter::Blocks as usize].failures, 2);
        let space = disk.space().unwrap();
        assert!(space.size_bytes > 0 && space.free_bytes <= space.size_bytes);
        assert_eq!(DiskHealth::new(Path::new("/no/such/folder")).space(), None);
    }
}
