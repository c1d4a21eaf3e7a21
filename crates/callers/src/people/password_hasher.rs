//! Threads that hash passwords, so that a hash of tens of milliseconds does not hold up the pages of others.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, OnceLock};
use std::thread;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::PeopleError;

/// Threads, and so hashes at once: each takes 19 MiB and a core.
const THREADS: usize = 2;

/// Hashes that wait at most; at 30 ms each the last one waits for a quarter of a second.
const WAITING_MAX: usize = 16;

type HashJob = Box<dyn FnOnce() + Send>;

/// Runs the hashing of passwords on threads of its own, which start with the first password.
#[derive(Debug, Default)]
pub(super) struct PasswordHasher {
    jobs: OnceLock<SyncSender<HashJob>>,
}

impl PasswordHasher {
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PeopleError> {
        let (sender, receiver) = oneshot::channel();
        // Whoever has asked may be gone by now.
        let job: HashJob = Box::new(move || drop(sender.send(work())));
        self.jobs.get_or_init(start).try_send(job).map_err(|_| PeopleError::Busy)?;
        receiver.await.map_err(|_| PeopleError::Busy)
    }
}

fn start() -> SyncSender<HashJob> {
    let (sender, jobs) = mpsc::sync_channel(WAITING_MAX);
    let jobs = Arc::new(Mutex::new(jobs));
    for _ in 0..THREADS {
        let jobs = Arc::clone(&jobs);
        let spawned = thread::Builder::new().name("passwords".to_owned()).spawn(move || run_all(&jobs));
        if let Err(error) = spawned {
            tracing::error!(%error, "cannot start a thread that hashes passwords");
        }
    }
    sender
}

fn run_all(jobs: &Mutex<Receiver<HashJob>>) {
    loop {
        let next = jobs.lock().recv();
        let Ok(job) = next else { return };
        job();
    }
}
