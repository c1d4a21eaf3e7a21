//! A thread pool for work that would delay other connections of the same thread.
//!
//! Accounts do not wait for each other. Each account runs up to `jobs_per_account` jobs at once, the kernel divides the cores
//! between the threads, and further jobs of an account wait behind its own. When all threads are in use, the waiting accounts
//! take turns by the time that their jobs took. Jobs beyond an account's share of the queue are refused at once. The blocking
//! pool of tokio does not do this: its queue is unbounded and first come, first served.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::account_id::AccountId;
use crate::fair_queue::{FairQueue, QueueFull};

/// Maximum number of threads of one kind; more than any machine has cores.
pub const THREADS_MAX: usize = 1_024;

/// Accounts that can run their maximum number of jobs at the same time. It is bounded because each running job holds the
/// memory of its call.
const ACCOUNTS_AT_ONCE: usize = 8;

/// Nice value of the pool's threads. The kernel prefers the threads of connections, so heavy work uses the time that cheap
/// calls leave, also when there are more threads than cores.
const POOL_NICE: i32 = 5;

/// Why a job has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolFailure {
    /// The account's share of the queue is used up.
    Refused,
    /// It is our fault; the log has the panic.
    Panicked,
}

type PoolJob = Box<dyn FnOnce() + Send>;

/// Runs the heavy work of all accounts.
pub struct ThreadPool {
    shared: Arc<PoolShared>,
}

struct PoolShared {
    state: Mutex<PoolState>,
    wake: Condvar,
}

struct PoolState {
    queue: FairQueue<PoolJob>,
    threads: usize,
    idle: usize,
    /// Jobs started so far.
    started: u64,
    closed: bool,
}

impl std::fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadPool").field("waiting", &self.waiting()).finish()
    }
}

impl ThreadPool {
    /// Starts the pool. One account runs up to `jobs_per_account` jobs at once; up to `waiting_max` jobs of all accounts wait.
    pub fn start(jobs_per_account: usize, waiting_max: usize) -> io::Result<Self> {
        let jobs_per_account = jobs_per_account.max(1);
        let running_max = jobs_per_account.saturating_mul(ACCOUNTS_AT_ONCE);
        let queue = FairQueue::new(jobs_per_account, running_max, waiting_max);
        let state = PoolState { queue, threads: 0, idle: 0, started: 0, closed: false };
        let shared = Arc::new(PoolShared { state: Mutex::new(state), wake: Condvar::new() });
        for _ in 0..jobs_per_account {
            start_thread(&shared, &mut shared.state.lock())?;
        }
        Ok(Self { shared })
    }

    /// Queues `job` for the account, or refuses it at once.
    pub fn submit(&self, account: AccountId, job: impl FnOnce() + Send + 'static) -> Result<(), QueueFull> {
        let mut state = self.shared.state.lock();
        state.queue.push(account, Box::new(job))?;
        // The first threads are enough for one account; more are started when several accounts have work.
        // A notified thread counts as idle until it wakes up, so each waiting job needs an idle thread of its own.
        if state.idle < state.queue.waiting()
            && state.threads < state.queue.running_max()
            && state.queue.can_start()
            && let Err(error) = start_thread(&self.shared, &mut state)
        {
            tracing::warn!(%error, "cannot start another pool thread; the job waits for the existing ones");
        }
        drop(state);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Runs `job` for the account and returns its result.
    pub async fn run<T: Send + 'static>(
        &self,
        account: AccountId,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolFailure> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let job = move || {
            // The receiver is dropped when the caller disconnects.
            if !sender.is_closed() {
                drop(sender.send(job()));
            }
        };
        self.submit(account, job).map_err(|QueueFull| PoolFailure::Refused)?;
        // The sender goes away with a job that panics.
        receiver.await.map_err(|_| PoolFailure::Panicked)
    }

    /// The number of jobs started so far.
    pub fn started(&self) -> u64 {
        self.shared.state.lock().started
    }

    /// The number of jobs that wait for a thread.
    pub fn waiting(&self) -> usize {
        self.shared.state.lock().queue.waiting()
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

fn start_thread(shared: &Arc<PoolShared>, state: &mut PoolState) -> io::Result<()> {
    let name = format!("pool-{}", state.threads);
    let shared = Arc::clone(shared);
    thread::Builder::new().name(name).spawn(move || run_thread(&shared))?;
    state.threads += 1;
    Ok(())
}

fn run_thread(shared: &PoolShared) {
    lower_priority();
    let mut state = shared.state.lock();
    loop {
        if let Some((account, job)) = state.queue.start_next() {
            state.started += 1;
            if state.queue.waiting() > 0 {
                shared.wake.notify_one();
            }
            MutexGuard::unlocked(&mut state, || run_job(shared, account, job));
        } else if state.closed {
            return;
        } else {
            state.idle += 1;
            shared.wake.wait(&mut state);
            state.idle -= 1;
        }
    }
}

/// Runs one job with the lock released. A panic affects only the caller of the job.
fn run_job(shared: &PoolShared, account: AccountId, job: PoolJob) {
    let start = Instant::now();
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("a job of the thread pool panicked");
    }
    shared.state.lock().queue.finish(account, start.elapsed());
}

/// Lowers the priority of the current thread below the threads of connections.
pub fn lower_priority() {
    // Only Linux has priorities per thread; on other systems this would slow down the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, POOL_NICE) {
        tracing::debug!(%error, "cannot lower the priority of a thread for heavy work");
    }
}

#[cfg(test)]
mod tests;
