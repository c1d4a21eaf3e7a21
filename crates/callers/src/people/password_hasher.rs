//! Threads that hash passwords, so that a hash of tens of milliseconds does not hold up the pages of others.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, OnceLock};
use std::thread;

use parking_lot::Mutex;
use resources::{SupervisedTask, Supervisor, WhenDown};
use tokio::sync::oneshot;

use super::PeopleError;

use crate::policy::{HASHER_ALIVE_INTERVAL, HASHER_THREADS, HASHES_WAITING_MAX};

type HashJob = Box<dyn FnOnce() + Send>;

/// Runs the hashing of passwords on threads of its own, which start with the first password.
#[derive(Debug)]
pub(super) struct PasswordHasher {
    supervisor: Supervisor,
    jobs: OnceLock<SyncSender<HashJob>>,
}

impl PasswordHasher {
    pub(super) fn new(supervisor: Supervisor) -> Self {
        Self { supervisor, jobs: OnceLock::new() }
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PeopleError> {
        let (sender, receiver) = oneshot::channel();
        // Whoever has asked may be gone by now.
        let job: HashJob = Box::new(move || drop(sender.send(work())));
        self.jobs.get_or_init(|| start(&self.supervisor)).try_send(job).map_err(|_| PeopleError::Busy)?;
        receiver.await.map_err(|_| PeopleError::Busy)
    }
}

fn start(supervisor: &Supervisor) -> SyncSender<HashJob> {
    let (sender, jobs) = mpsc::sync_channel(HASHES_WAITING_MAX);
    let jobs = Arc::new(Mutex::new(jobs));
    for number in 1..=HASHER_THREADS {
        let jobs = Arc::clone(&jobs);
        let task = supervisor.task(format!("password thread {number}"), WhenDown::Degraded);
        let run = move || task.run_blocking(|task| run_all(&jobs, task));
        let spawned = thread::Builder::new().name("passwords".to_owned()).spawn(run);
        if let Err(error) = spawned {
            tracing::error!(%error, "cannot start a thread that hashes passwords");
        }
    }
    sender
}

fn run_all(jobs: &Mutex<Receiver<HashJob>>, task: &SupervisedTask) {
    loop {
        task.alive();
        let next = jobs.lock().recv_timeout(HASHER_ALIVE_INTERVAL);
        match next {
            Ok(job) => job(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A password whose hashing panicked ended one of the two threads, and after the second nobody could sign in any more.
    #[tokio::test]
    async fn passwords_are_hashed_after_panics() {
        let supervisor = Supervisor::default();
        let hasher = PasswordHasher::new(supervisor.clone());
        for _ in 0..HASHER_THREADS {
            let panicked: Result<(), _> = hasher.run(|| panic!("no memory")).await;
            assert!(panicked.is_err());
        }
        assert_eq!(hasher.run(|| 7).await.ok(), Some(7));
        let panics: u64 = supervisor.report().iter().map(|task| task.panics).sum();
        assert_eq!(panics, HASHER_THREADS as u64);
        supervisor.inject_panics("password thread 1", u32::MAX);
        supervisor.inject_panics("password thread 2", u32::MAX);
        let late = std::time::Instant::now() + Duration::from_secs(60);
        while supervisor.first_down(WhenDown::Degraded).is_none() {
            assert!(std::time::Instant::now() < late, "a thread that panics for ever is reported");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
