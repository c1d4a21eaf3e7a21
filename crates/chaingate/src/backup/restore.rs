//! `chaingate restore`.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path};

use super::manifest::{ArchiveIdentity, BackedUpFile, BackupManifest, StoredBlocksIdentity};
use super::unfinished::sync;
use super::{ReportStep, checksum};

/// The folder inside the data directory in which files are until all of them are there.
const UNFINISHED: &str = "restore.unfinished";

/// The only entry of an empty file system.
const LOST_AND_FOUND: &str = "lost+found";

/// Makes a data directory of a backup. Nothing is written before every file of the backup was compared with its checksum.
pub(crate) fn restore(
    backup: &Path,
    data_dir: &Path,
    report: ReportStep<'_>,
) -> Result<BackupManifest, String> {
    check_empty(data_dir)?;
    let manifest = check_backup(backup, report)?;
    let unfinished = data_dir.join(UNFINISHED);
    let failed = |error| format!("cannot write {}: {error}", data_dir.display());
    fs::create_dir_all(data_dir).map_err(failed)?;
    DirBuilder::new().mode(0o700).create(&unfinished).map_err(failed)?;
    let restored = fill(&manifest, backup, &unfinished, report).and_then(|()| check(&manifest, &unfinished));
    if let Err(error) = restored {
        // The data directory is empty again, so that the command can be repeated.
        let _left = fs::remove_dir_all(&unfinished);
        return Err(error);
    }
    // The archive comes last: without it, a gateway does not start.
    let moved = manifest
        .files
        .iter()
        .rev()
        .try_for_each(|file| fs::rename(unfinished.join(&file.name), data_dir.join(&file.name)));
    moved.and_then(|()| fs::remove_dir(&unfinished)).and_then(|()| sync(data_dir)).map_err(failed)?;
    Ok(manifest)
}

/// Compares every file of a backup with its checksum.
pub(crate) fn check_backup(backup: &Path, report: ReportStep<'_>) -> Result<BackupManifest, String> {
    let manifest = BackupManifest::read(backup)?;
    check_names(&manifest, backup)?;
    let (total, mut before) = (manifest.bytes(), 0);
    for file in &manifest.files {
        let path = backup.join(&file.name);
        let found = checksum::of_file(&path, |done| report("checking", before + done, total));
        compare(file, &path, found)?;
        before += file.bytes;
    }
    Ok(manifest)
}

/// Names lead nowhere else, whoever has written the manifest.
fn check_names(manifest: &BackupManifest, backup: &Path) -> Result<(), String> {
    let is_name = |name: &str| {
        let mut parts = Path::new(name).components();
        matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
    };
    match manifest.files.iter().find(|file| !is_name(&file.name)) {
        Some(file) => Err(format!("{}: {:?} is no name of a file", backup.display(), file.name)),
        None => Ok(()),
    }
}

/// Whoever has a data directory does not lose it. A running gateway has files in it, too.
fn check_empty(data_dir: &Path) -> Result<(), String> {
    let entries = match fs::read_dir(data_dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| format!("{}: {error}", data_dir.display()))?,
    };
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", data_dir.display()))?;
        let (name, shown) = (entry.file_name(), data_dir.display());
        if name == UNFINISHED {
            let path = entry.path();
            return Err(format!(
                "{} is what a restore has left that was interrupted, or still runs; remove it if none runs",
                path.display()
            ));
        }
        if name != LOST_AND_FOUND {
            return Err(format!(
                "{shown} is not empty: it has {}; stop the gateway that uses it, and move it away",
                name.display()
            ));
        }
    }
    Ok(())
}

fn compare(file: &BackedUpFile, path: &Path, found: std::io::Result<(u64, String)>) -> Result<(), String> {
    let (bytes, sha256) = found.map_err(|error| format!("{}: {error}", path.display()))?;
    if bytes != file.bytes {
        return Err(format!(
            "{} is damaged: it has {bytes} bytes instead of {}; restore another backup",
            path.display(),
            file.bytes
        ));
    }
    match sha256 == file.sha256 {
        true => Ok(()),
        false => Err(format!(
            "{} is damaged: its content is not what was backed up; restore another backup",
            path.display()
        )),
    }
}

fn fill(
    manifest: &BackupManifest,
    backup: &Path,
    folder: &Path,
    report: ReportStep<'_>,
) -> Result<(), String> {
    let (total, mut before) = (manifest.bytes(), 0);
    for file in &manifest.files {
        let (from, to) = (backup.join(&file.name), folder.join(&file.name));
        let copied = checksum::copy_file(&from, &to, |done| report("copying", before + done, total));
        let copied = copied.map_err(|error| format!("cannot write {}: {error}", to.display()))?;
        compare(file, &from, Ok(copied))?;
        before += file.bytes;
    }
    sync(folder).map_err(|error| format!("cannot write {}: {error}", folder.display()))
}

/// Compares what can be opened now with what the manifest says.
fn check(manifest: &BackupManifest, folder: &Path) -> Result<(), String> {
    if let Some(expected) = &manifest.archive {
        let found = ArchiveIdentity::read(folder)?;
        if found != *expected {
            return Err(format!(
                "the archive of the backup is {found:?}, but the manifest says {expected:?}"
            ));
        }
    }
    if let Some(expected) = &manifest.blocks {
        let found = StoredBlocksIdentity::read(folder)?;
        if found != *expected {
            return Err(format!(
                "the stored blocks of the backup are {found:?}, but the manifest says {expected:?}"
            ));
        }
    }
    Ok(())
}
