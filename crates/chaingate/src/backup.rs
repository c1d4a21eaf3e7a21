//! Backups: a folder with everything that a gateway needs to go on elsewhere, and a manifest that says what it is.
//!
//! The command writes the files, with its own rights and below any load of the gateway. What only the gateway can read, because it has
//! it open, comes as rows through a socket in the data directory. Everything is written under another name, brought to the
//! disk and renamed at last, so that a backup that was cut off is never taken for a whole one.
//!
//! Not in a backup:
//!
//! * usage that is not in the store yet: a restored gateway must not add it a second time;
//! * the copy of accounts and keys, which could have keys that were revoked, and is made again;
//! * the token of the admin API, addresses and sockets, which belong to the gateway that runs.

mod checksum; // SHA-256 of files
mod manifest; // what a backup has
mod rows; // the archive or the stored blocks, through the gateway or directly
mod unfinished; // the folder while it is written
mod make; // chaingate backup
mod restore; // chaingate restore

pub(crate) use make::{BackupResult, make};
pub(crate) use manifest::{BackedUpStore, MANIFEST_FILE};
pub(crate) use restore::{check_backup, restore};
pub(crate) use rows::BackupSource;

use archive::CopyProgress;
use callers::LOCAL_REVOCATIONS_FILE;

/// Files of a data directory that are copied as they are.
const PLAIN_FILES: [&str; 1] = [LOCAL_REVOCATIONS_FILE];

/// Is told how far a command is: what it does, and how much of how much is done.
pub(crate) type ReportStep<'a> = &'a mut dyn FnMut(&str, u64, u64);

/// Reports rows of a file as a step.
fn report_rows<'a>(what: &'a str, report: ReportStep<'a>) -> impl FnMut(CopyProgress) + 'a {
    move |CopyProgress { rows, rows_total }| report(what, rows, rows_total)
}

/// A number of bytes for people.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
