//! The local copy of accounts and keys, with which a gateway starts while the store cannot be reached.
//!
//! It is written from memory, on a thread of its own: neither a slow disk nor a failure delays changes, or makes the gateway read
//! the store again.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use resources::{DiskHealth, DiskWriter, SupervisedTask};

use super::copy_file::{self, CopyFile};
use super::copy_queue::{CopyQueue, CopyWork};
use crate::directory::Directory;
use crate::policy::{COPY_RETRY_INTERVAL, COPY_TIME_INTERVAL};

/// The thread that writes the copy.
#[derive(Debug)]
pub(super) struct LocalCopy {
    path: PathBuf,
    directory: Arc<Directory>,
    queue: Arc<CopyQueue>,
    /// `None` until everything was written once, and after a failure.
    file: Option<CopyFile>,
    /// The newest time in the file.
    written_time: i64,
    /// When a copy that failed is tried again.
    retry_at: Option<Instant>,
    has_run: bool,
    disk: DiskHealth,
}

impl LocalCopy {
    pub(super) fn new(
        path: PathBuf,
        directory: Arc<Directory>,
        queue: Arc<CopyQueue>,
        disk: DiskHealth,
    ) -> Self {
        let (file, written_time, retry_at, has_run) = (None, 0, None, false);
        Self { path, directory, queue, file, written_time, retry_at, has_run, disk }
    }

    /// Writes what changes until [`CopyQueue::stop`]. After a panic, everything is written anew.
    pub(super) fn run(&mut self, task: &SupervisedTask) {
        if std::mem::replace(&mut self.has_run, true) {
            self.file = None;
            self.queue.replace_all();
        }
        loop {
            let until = self.retry_at.unwrap_or_else(|| Instant::now() + COPY_TIME_INTERVAL);
            let work = self.queue.take(until, self.retry_at.is_some(), || task.alive());
            let written = self.write(&work);
            self.disk.record(DiskWriter::KeysCopy, &written);
            if let Err(error) = written {
                self.failed(&error);
            }
            if work.is_stopping {
                return;
            }
        }
    }

    fn write(&mut self, work: &CopyWork) -> io::Result<()> {
        let has_failed = self.retry_at.take().is_some();
        let is_time_due = work.followed_at >= self.written_time + COPY_TIME_INTERVAL.as_secs() as i64;
        let stored = self.directory.stored();
        match (&mut self.file, stored) {
            (_, None) => Ok(()),
            (Some(file), Some(keys)) if !work.is_all && !has_failed && !file.is_long() => {
                if !work.has_changes() && !is_time_due {
                    return Ok(());
                }
                work.accounts.iter().try_for_each(|account| file.append_account(account))?;
                for hash in &work.keys {
                    match keys.with_hash(hash) {
                        Some(key) => file.append_key(&key)?,
                        None => file.append_removed(hash)?,
                    }
                }
                file.append_time(work.followed_at)?;
                self.written_time = work.followed_at;
                file.sync()
            }
            (None, Some(_)) if !has_failed && !work.has_changes() => Ok(()),
            (_, Some(keys)) => {
                self.file = Some(CopyFile::create(&self.path, &keys, work.followed_at)?);
                self.written_time = work.followed_at;
                Ok(())
            }
        }
    }

    fn failed(&mut self, error: &io::Error) {
        // An old copy would let revoked keys in again.
        copy_file::remove(&self.path);
        (self.file, self.retry_at) = (None, Some(Instant::now() + COPY_RETRY_INTERVAL));
        self.directory.feed_status().update(|facts| facts.copy_failures += 1);
        tracing::error!(%error, path = %self.path.display(), "cannot write the local copy of accounts and keys; trying again in a minute");
    }
}
