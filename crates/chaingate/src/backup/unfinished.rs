//! The folder of a backup while it is written: `DIR.unfinished`, locked by the process that writes it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How the name of such a folder ends.
const SUFFIX: &str = ".unfinished";

/// The file that is locked. Only folders that have it are ever removed.
const LOCK_FILE: &str = "backup.lock";

/// A backup that is being written. Dropping it removes what there is.
#[derive(Debug)]
pub(super) struct UnfinishedBackup {
    folder: PathBuf,
    target: PathBuf,
    is_finished: bool,
    _lock: File,
}

impl UnfinishedBackup {
    /// Makes the folder. What others have left beside it, because they were killed, is removed.
    pub(super) fn create(target: &Path) -> Result<Self, String> {
        let mut folder = target.as_os_str().to_owned();
        folder.push(SUFFIX);
        let folder = PathBuf::from(folder);
        remove_abandoned(parent_of(target)).map_err(|error| {
            format!("cannot remove an unfinished backup in {}: {error}", parent_of(target).display())
        })?;
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{} exists: another backup with this name is being made", folder.display())
            }
            _ => format!("cannot write {}: {error}", folder.display()),
        };
        DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
        let lock = lock_file(&folder).map_err(failed)?;
        Ok(Self { folder, target: target.to_owned(), is_finished: false, _lock: lock })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Brings the folder to the disk, and gives it its name.
    pub(super) fn finish(mut self) -> Result<(), String> {
        let named = fs::remove_file(self.folder.join(LOCK_FILE))
            .and_then(|()| sync(&self.folder))
            // An empty folder would be replaced, everything else is an error.
            .and_then(|()| match self.target.exists() {
                true => Err(io::ErrorKind::AlreadyExists.into()),
                false => fs::rename(&self.folder, &self.target),
            })
            .and_then(|()| sync(parent_of(&self.target)));
        self.is_finished = named.is_ok();
        named.map_err(|error| format!("cannot write {}: {error}", self.target.display()))
    }
}

impl Drop for UnfinishedBackup {
    fn drop(&mut self) {
        if !self.is_finished {
            // The next backup removes files that stay.
            let _left = fs::remove_dir_all(&self.folder);
        }
    }
}

fn lock_file(folder: &Path) -> io::Result<File> {
    let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(LOCK_FILE))?;
    lock.try_lock()?;
    Ok(lock)
}

/// Removes folders of processes that have ended in the middle.
fn remove_abandoned(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let path = entry?.path();
        if !path.as_os_str().to_string_lossy().ends_with(SUFFIX) {
            continue;
        }
        // One without the file is not ours, or is removed by another process at this moment.
        let Ok(lock) = File::open(path.join(LOCK_FILE)) else { continue };
        match lock.try_lock() {
            Ok(()) => fs::remove_dir_all(&path)?,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(())
}

pub(super) fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the names in a folder durable.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
