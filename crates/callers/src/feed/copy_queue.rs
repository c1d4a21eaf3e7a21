//! Changes that wait to be written to the local copy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use store::HASH_BYTES;

use crate::account::Account;
use crate::policy::COPY_CHANGES_WAITING_MAX;

/// Changes that the copy lacks.
#[derive(Debug, Default)]
pub(super) struct CopyWork {
    /// Whether everything has to be written.
    pub(super) is_all: bool,
    pub(super) keys: Vec<[u8; HASH_BYTES]>,
    pub(super) accounts: Vec<Arc<Account>>,
    /// Seconds since 1970 at which all of memory was what the store said; 0 if that was never.
    pub(super) followed_at: i64,
    pub(super) is_stopping: bool,
}

impl CopyWork {
    pub(super) fn has_changes(&self) -> bool {
        self.is_all || !self.keys.is_empty() || !self.accounts.is_empty()
    }
}

/// Changes that wait to be written.
#[derive(Debug, Default)]
pub(super) struct CopyQueue {
    work: Mutex<CopyWork>,
    changed: Condvar,
}

impl CopyQueue {
    /// Everything in memory is new.
    pub(super) fn replace_all(&self) {
        let mut work = self.work.lock();
        (work.is_all, work.keys, work.accounts) = (true, Vec::new(), Vec::new());
        self.changed.notify_one();
    }

    /// These accounts, and the keys with these hashes, have changed in memory, or are gone.
    pub(super) fn add(&self, accounts: Vec<Arc<Account>>, keys: Vec<[u8; HASH_BYTES]>) {
        let mut work = self.work.lock();
        if work.is_all || (accounts.is_empty() && keys.is_empty()) {
            return;
        }
        if work.keys.len() + keys.len() + work.accounts.len() + accounts.len() > COPY_CHANGES_WAITING_MAX {
            (work.is_all, work.keys, work.accounts) = (true, Vec::new(), Vec::new());
        } else {
            work.keys.extend(keys);
            work.accounts.extend(accounts);
        }
        self.changed.notify_one();
    }

    /// At this time, in seconds since 1970, all of memory was what the store said.
    pub(super) fn set_followed_at(&self, at: i64) {
        self.work.lock().followed_at = at;
    }

    /// Ends the thread, after it has written what waits.
    pub(super) fn stop(&self) {
        self.work.lock().is_stopping = true;
        self.changed.notify_one();
    }

    /// Waits for changes until `until`, or only for the end if it `is_pause`. Calls `alive` at least once per second.
    pub(super) fn take(&self, until: Instant, is_pause: bool, alive: impl Fn()) -> CopyWork {
        let mut work = self.work.lock();
        loop {
            alive();
            let now = Instant::now();
            if work.is_stopping || now >= until || (!is_pause && work.has_changes()) {
                break;
            }
            self.changed.wait_until(&mut work, until.min(now + Duration::from_secs(1)));
        }
        let (followed_at, is_stopping) = (work.followed_at, work.is_stopping);
        std::mem::replace(&mut work, CopyWork { followed_at, is_stopping, ..CopyWork::default() })
    }
}
