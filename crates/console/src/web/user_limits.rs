//! Limits for each user: requests that are answered at once, because a page reads the store several times and all users share its
//! connections; changes, so that nobody fills the store; downloads, because each takes tens of megabytes until it is read.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use resources::{BucketRate, Clock, MonoTime, TokenBucket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::page_error::{PageError, RETRY_S};

/// Requests of one user that are answered at once, of the four for which the store has connections.
const RUNNING_MAX: usize = 2;

/// Requests of one user that wait: more than the windows that a browser opens again when it starts.
const WAITING_MAX: usize = 14;

/// How long a request waits for earlier ones of its user, each of which is a matter of milliseconds.
const WAIT_MAX: Duration = Duration::from_secs(15);

/// Changes of one user: more than anybody makes by hand.
const CHANGES: BucketRate = BucketRate { per_second: 2, capacity: 120 };

/// Downloads at once, of all users: 700 MB if each has the most rows that a report may have. A user has one.
const DOWNLOADS_MAX: usize = 16;

/// Users that are remembered. Those without requests who have not changed anything for a minute are forgotten first.
const USERS_MAX: usize = 10_000;

/// The limits of all users, by email address.
#[derive(Clone, Debug, Default)]
pub(super) struct UserLimits {
    clock: Clock,
    users: Arc<Mutex<HashMap<String, UserLoad>>>,
}

#[derive(Debug)]
struct UserLoad {
    /// Requests that are answered, and those that wait.
    requests: usize,
    running: Arc<Semaphore>,
    changes: TokenBucket,
    is_downloading: bool,
}

impl UserLoad {
    fn is_idle(&mut self, now: MonoTime) -> bool {
        self.requests == 0 && !self.is_downloading && self.changes.is_full(now)
    }
}

/// A request that is being answered, until this is dropped.
#[derive(Debug)]
pub(super) struct UserPermit {
    /// Whether it had to wait. Its session may have ended meanwhile.
    pub(super) has_waited: bool,
    _place: UserPlace,
    _running: OwnedSemaphorePermit,
}

/// A download that is under way, until this is dropped.
#[derive(Debug)]
pub(super) struct Download {
    _place: UserPlace,
}

/// A request or a download that counts for its user.
#[derive(Debug)]
struct UserPlace {
    limits: UserLimits,
    email: String,
    leave: fn(&mut UserLoad),
}

impl UserLimits {
    /// Begins a request of a user, after earlier ones of the same user. Refuses it if there are too many of them.
    pub(super) async fn begin_request(&self, email: &str) -> Result<UserPermit, PageError> {
        let (place, running) = self.enter(email)?;
        if let Ok(running) = Arc::clone(&running).try_acquire_owned() {
            return Ok(UserPermit { has_waited: false, _place: place, _running: running });
        }
        match timeout(WAIT_MAX, running.acquire_owned()).await {
            Ok(Ok(running)) => Ok(UserPermit { has_waited: true, _place: place, _running: running }),
            Ok(Err(_)) | Err(_) => Err(too_many()),
        }
    }

    fn enter(&self, email: &str) -> Result<(UserPlace, Arc<Semaphore>), PageError> {
        let mut users = self.users.lock();
        let user = self.user(&mut users, email)?;
        if user.requests >= RUNNING_MAX + WAITING_MAX {
            return Err(too_many());
        }
        user.requests += 1;
        Ok((self.place(email, |user| user.requests -= 1), Arc::clone(&user.running)))
    }

    /// Counts a change of a user; `false` if it is one too many.
    pub(super) fn allow_change(&self, email: &str) -> bool {
        let mut users = self.users.lock();
        self.user(&mut users, email).is_ok_and(|user| user.changes.take(1, self.clock.now()).is_ok())
    }

    /// Begins a download of a user, unless the user has one already, or there are too many.
    pub(super) fn begin_download(&self, email: &str) -> Result<Download, PageError> {
        let mut users = self.users.lock();
        let downloads = users.values().filter(|user| user.is_downloading).count();
        let user = self.user(&mut users, email)?;
        if user.is_downloading {
            return Err(too_many());
        }
        if downloads >= DOWNLOADS_MAX {
            return Err(PageError::Status(503));
        }
        user.is_downloading = true;
        Ok(Download { _place: self.place(email, |user| user.is_downloading = false) })
    }

    fn user<'a>(
        &self,
        users: &'a mut HashMap<String, UserLoad>,
        email: &str,
    ) -> Result<&'a mut UserLoad, PageError> {
        if users.len() >= USERS_MAX && !users.contains_key(email) {
            let now = self.clock.now();
            users.retain(|_, user| !user.is_idle(now));
            if users.len() >= USERS_MAX {
                return Err(too_many());
            }
        }
        Ok(users.entry(email.to_owned()).or_insert_with(|| UserLoad {
            requests: 0,
            running: Arc::new(Semaphore::new(RUNNING_MAX)),
            changes: TokenBucket::full(CHANGES),
            is_downloading: false,
        }))
    }

    fn place(&self, email: &str, leave: fn(&mut UserLoad)) -> UserPlace {
        UserPlace { limits: self.clone(), email: email.to_owned(), leave }
    }
}

impl Drop for UserPlace {
    fn drop(&mut self) {
        let now = self.limits.clock.now();
        let mut users = self.limits.users.lock();
        let Some(user) = users.get_mut(&self.email) else { return };
        (self.leave)(user);
        if user.is_idle(now) {
            users.remove(&self.email);
        }
    }
}

fn too_many() -> PageError {
    PageError::TooManyRequests { wait_s: RETRY_S }
}

#[cfg(test)]
mod tests;
