//! `chaingate backup`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use resources::{DiskHealth, unix_seconds};
use store::{SQLITE_FILE, StoreLocation, copy_sqlite};
use tokio::runtime;

use super::checksum;
use super::manifest::{
    ArchiveIdentity, BackedUpFile, BackedUpStore, BackupManifest, MANIFEST_FILE, StoredBlocksIdentity,
};
use super::rows::RowFile;
use super::unfinished::{UnfinishedBackup, parent_of, sync};
use super::{PLAIN_FILES, ReportStep, report_rows};
use crate::config::Config;

/// A backup that was made.
#[derive(Debug)]
pub(crate) struct BackupResult {
    pub(crate) manifest: BackupManifest,
    pub(crate) duration: Duration,
    /// Bytes by which the archive's file has grown meanwhile.
    pub(crate) archive_growth: u64,
    /// Why the gateway does not know about the backup.
    pub(crate) not_recorded: Option<String>,
}

/// Makes a backup of the data directory and the store of a configuration.
pub(crate) fn make(config: &Config, target: &Path, report: ReportStep<'_>) -> Result<BackupResult, String> {
    let started = Instant::now();
    let data_dir = &config.data_dir;
    check_target(data_dir, target)?;
    let unfinished = UnfinishedBackup::create(target)?;
    let folder = unfinished.folder();
    let bytes_before = archive_bytes(data_dir);

    let store = copy_store(&config.store_location(), folder, report)?;
    let mut manifest = BackupManifest::new(&config.network.name, 0, store);
    for name in PLAIN_FILES {
        copy_if_there(&data_dir.join(name), &folder.join(name))?;
    }
    for file in RowFile::ALL {
        if data_dir.join(file.name()).exists() {
            file.copy(data_dir, folder, &mut report_rows(file.name(), report))?;
            match file {
                RowFile::Archive => manifest.archive = Some(identity(ArchiveIdentity::read(folder))?),
                RowFile::Blocks => manifest.blocks = Some(identity(StoredBlocksIdentity::read(folder))?),
            }
        }
    }
    let archive_growth = archive_bytes(data_dir).saturating_sub(bytes_before);
    manifest.files = files_of(folder, report)?;
    if manifest.files.is_empty() {
        return Err(format!(
            "there is nothing to back up: {} has no archive, no stored blocks and no store",
            data_dir.display()
        ));
    }
    manifest.finished_at = unix_seconds();
    write_manifest(&manifest, folder)?;
    unfinished.finish()?;
    let recorded = DiskHealth::new(data_dir).record_backup(manifest.finished_at);
    let not_recorded = recorded.err().map(|error| format!("{}: {error}", data_dir.display()));
    Ok(BackupResult { manifest, duration: started.elapsed(), archive_growth, not_recorded })
}

/// Refuses a folder that exists, and one that would be part of the next backup or be lost with the data.
fn check_target(data_dir: &Path, target: &Path) -> Result<(), String> {
    let shown = target.display();
    let found = |path: &Path| {
        let path = path.to_owned();
        move |error| format!("{}: {error}", path.display())
    };
    let data_dir = data_dir.canonicalize().map_err(found(data_dir))?;
    if target.file_name().is_none() {
        return Err(format!("{shown}: give the name of a folder that does not exist yet"));
    }
    if target.symlink_metadata().is_ok() {
        return Err(format!(
            "{shown} exists; give a name that does not exist yet, such as one with the date"
        ));
    }
    let parent = parent_of(target).canonicalize().map_err(found(parent_of(target)))?;
    if parent.starts_with(&data_dir) {
        return Err(format!("{shown} is in the data directory {}; use another disk", data_dir.display()));
    }
    Ok(())
}

fn archive_bytes(data_dir: &Path) -> u64 {
    fs::metadata(data_dir.join(RowFile::Archive.name())).map_or(0, |file| file.len())
}

fn copy_store(
    store: &StoreLocation,
    folder: &Path,
    report: &mut dyn FnMut(&str, u64, u64),
) -> Result<BackedUpStore, String> {
    let Some(file) = store.sqlite_file() else { return Ok(BackedUpStore::Postgresql) };
    if !file.exists() {
        return Ok(BackedUpStore::Missing);
    }
    report(SQLITE_FILE, 0, 1);
    let copy = folder.join(SQLITE_FILE);
    let failed = |why: String| format!("cannot copy {} to {}: {why}", file.display(), copy.display());
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(error.to_string()))?;
    let copied = runtime.block_on(copy_sqlite(file, &copy));
    copied.map_err(|error| failed(error.to_string()))?;
    report(SQLITE_FILE, 1, 1);
    Ok(BackedUpStore::Sqlite)
}

fn copy_if_there(from: &Path, to: &Path) -> Result<(), String> {
    match from.exists() {
        true => checksum::copy_file(from, to, |_| ())
            .map(drop)
            .map_err(|error| format!("cannot copy {}: {error}", from.display())),
        false => Ok(()),
    }
}

fn identity<T>(read: Result<T, String>) -> Result<T, String> {
    read.map_err(|error| format!("the copy cannot be opened: {error}"))
}

/// The names of all files that may be in a backup, and the checksums of those that are there.
fn files_of(folder: &Path, report: &mut dyn FnMut(&str, u64, u64)) -> Result<Vec<BackedUpFile>, String> {
    let names = RowFile::ALL.map(RowFile::name).into_iter().chain([SQLITE_FILE]).chain(PLAIN_FILES);
    let there: Vec<(&str, PathBuf)> =
        names.map(|name| (name, folder.join(name))).filter(|(_, path)| path.exists()).collect();
    let mut files = Vec::new();
    for (name, path) in there {
        let failed = |error| format!("cannot read {}: {error}", path.display());
        let length = fs::metadata(&path).map_err(failed)?.len();
        let (bytes, sha256) =
            checksum::of_file(&path, |done| report("checksums", done, length)).map_err(failed)?;
        files.push(BackedUpFile { name: name.to_owned(), bytes, sha256 });
    }
    Ok(files)
}

fn write_manifest(manifest: &BackupManifest, folder: &Path) -> Result<(), String> {
    let path = folder.join(MANIFEST_FILE);
    let text = manifest.text()?;
    let written = checksum::write_file(&path, text.as_bytes()).and_then(|()| sync(folder));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}
