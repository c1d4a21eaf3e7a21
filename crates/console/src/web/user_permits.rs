//! Requests of users that are being answered: few for each user, because a page reads the store several times, and all users
//! share its connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::page_error::{PageError, RETRY_S};

/// Requests of one user that are answered at once, of the four for which the store has connections.
const RUNNING_MAX: usize = 2;

/// Requests of one user that wait: more than the windows that a browser opens again when it starts.
const WAITING_MAX: usize = 14;

/// How long a request waits for earlier ones of its user, each of which is a matter of milliseconds.
const WAIT_MAX: Duration = Duration::from_secs(15);

/// Users with requests.
#[derive(Clone, Debug, Default)]
pub(super) struct UserPermits(Arc<Mutex<HashMap<String, PermitQueue>>>);

/// The requests of one user.
#[derive(Debug)]
struct PermitQueue {
    /// Those that are answered, and those that wait.
    requests: usize,
    running: Arc<Semaphore>,
}

/// A request that is being answered, until this is dropped.
#[derive(Debug)]
pub(super) struct UserPermit {
    /// Whether it had to wait. Its session may have ended meanwhile.
    pub(super) has_waited: bool,
    _place: PermitPlace,
    _running: OwnedSemaphorePermit,
}

/// A request in the queue of its user.
#[derive(Debug)]
struct PermitPlace {
    users: UserPermits,
    email: String,
}

impl UserPermits {
    /// Begins a request of a user, after earlier ones of the same user. Refuses it if there are too many of them.
    pub(super) async fn begin(&self, email: &str) -> Result<UserPermit, PageError> {
        let (place, running) = self.enter(email)?;
        if let Ok(running) = Arc::clone(&running).try_acquire_owned() {
            return Ok(UserPermit { has_waited: false, _place: place, _running: running });
        }
        match timeout(WAIT_MAX, running.acquire_owned()).await {
            Ok(Ok(running)) => Ok(UserPermit { has_waited: true, _place: place, _running: running }),
            Ok(Err(_)) | Err(_) => Err(PageError::TooManyRequests { wait_s: RETRY_S }),
        }
    }

    fn enter(&self, email: &str) -> Result<(PermitPlace, Arc<Semaphore>), PageError> {
        let mut users = self.0.lock();
        let queue = users
            .entry(email.to_owned())
            .or_insert_with(|| PermitQueue { requests: 0, running: Arc::new(Semaphore::new(RUNNING_MAX)) });
        if queue.requests >= RUNNING_MAX + WAITING_MAX {
            return Err(PageError::TooManyRequests { wait_s: RETRY_S });
        }
        queue.requests += 1;
        let place = PermitPlace { users: self.clone(), email: email.to_owned() };
        Ok((place, Arc::clone(&queue.running)))
    }
}

impl Drop for PermitPlace {
    fn drop(&mut self) {
        let mut users = self.users.0.lock();
        let Some(queue) = users.get_mut(&self.email) else { return };
        queue.requests -= 1;
        if queue.requests == 0 {
            users.remove(&self.email);
        }
    }
}

#[cfg(test)]
mod tests;
