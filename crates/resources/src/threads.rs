//! A pool of threads for work that would delay the other connections of its connection's thread.
//!
//! Accounts do not wait for each other. Each runs up to `jobs_per_account` jobs at once, the kernel divides the cores
//! between the threads, and an account's further jobs wait behind its own. When all threads are in use, the accounts
//! that wait take turns by the time that their jobs took. What exceeds an account's share of the queue is refused at
//! once. The blocking pool of the runtime has none of this: its queue is unbounded and first come, first served.

mod queue; // which job runs next

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};

use self::queue::{FairQueue, Job};
use crate::account_id::AccountId;

/// Most threads of one kind; more than any machine has cores.
pub const THREADS_MAX: usize = 1_024;

/// Accounts whose work runs at the same time with all the threads that one account may have. Each job holds the memory
/// of its call while it runs, which is what bounds this.
const ACCOUNTS_AT_ONCE: usize = 8;

/// How far the kernel prefers the threads of connections to those of the pool (`nice`). Heavy work then takes the time
/// that cheap calls leave over, also when there are more threads than cores.
const POOL_NICE: i32 = 5;

/// Threads that run the heavy work of all accounts.
pub struct Threads {
    shared: Arc<Shared>,
}

/// The account has used up its share of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadsBusy;

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    queue: FairQueue,
    threads: usize,
    idle: usize,
    /// Jobs that were begun so far.
    begun: u64,
    closed: bool,
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Threads").field("waiting", &self.waiting()).finish()
    }
}

impl Threads {
    /// Starts the pool. One account runs `jobs_per_account` jobs at once, and `waiting_max` jobs may wait in all.
    pub fn start(jobs_per_account: usize, waiting_max: usize) -> io::Result<Self> {
        let jobs_per_account = jobs_per_account.max(1);
        let running_max = jobs_per_account.saturating_mul(ACCOUNTS_AT_ONCE);
        let queue = FairQueue::new(jobs_per_account, running_max, waiting_max);
        let state = State { queue, threads: 0, idle: 0, begun: 0, closed: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new() });
        for _ in 0..jobs_per_account {
            start_thread(&shared, &mut shared.state.lock())?;
        }
        Ok(Self { shared })
    }

    /// Queues `job` for the account, or refuses it at once.
    pub fn submit(&self, account: AccountId, job: impl FnOnce() + Send + 'static) -> Result<(), ThreadsBusy> {
        let mut state = self.shared.state.lock();
        state.queue.push(account, Box::new(job)).map_err(|_| ThreadsBusy)?;
        // The first threads are enough for one account, and most of the time no more than one has work.
        // A thread that was told to wake up still counts as idle, so each waiting job needs one of its own.
        if state.idle < state.queue.waiting()
            && state.threads < state.queue.running_max()
            && state.queue.can_start()
            && let Err(error) = start_thread(&self.shared, &mut state)
        {
            tracing::warn!(%error, "cannot start another thread of the pool; its work waits for the others");
        }
        drop(state);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Runs `job` for the account and waits for what it returns. `None` if it was refused or panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        account: AccountId,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let job = move || {
            // A caller that has gone has dropped its receiver: nobody waits for the result.
            if !sender.is_closed() {
                drop(sender.send(job()));
            }
        };
        self.submit(account, job).ok()?;
        receiver.await.ok()
    }

    /// How many jobs were begun so far.
    pub fn begun(&self) -> u64 {
        self.shared.state.lock().begun
    }

    /// How many jobs wait for a thread.
    pub fn waiting(&self) -> usize {
        self.shared.state.lock().queue.waiting()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

fn start_thread(shared: &Arc<Shared>, state: &mut State) -> io::Result<()> {
    let name = format!("pool-{}", state.threads);
    let shared = Arc::clone(shared);
    thread::Builder::new().name(name).spawn(move || work(&shared))?;
    state.threads += 1;
    Ok(())
}

fn work(shared: &Shared) {
    lower_priority();
    let mut state = shared.state.lock();
    loop {
        if let Some((account, job)) = state.queue.start_next() {
            state.begun += 1;
            if state.queue.waiting() > 0 {
                shared.wake.notify_one();
            }
            MutexGuard::unlocked(&mut state, || run(shared, account, job));
        } else if state.closed {
            return;
        } else {
            state.idle += 1;
            shared.wake.wait(&mut state);
            state.idle -= 1;
        }
    }
}

/// Runs one job with the lock released. A panic costs its caller the answer and nothing else.
fn run(shared: &Shared, account: AccountId, job: Job) {
    let began = Instant::now();
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("a job of the pool panicked; its thread goes on");
    }
    shared.state.lock().queue.finish(account, began.elapsed());
}

/// Lets the threads of connections go first.
pub fn lower_priority() {
    // Only Linux has priorities per thread; elsewhere the whole process would be slowed down.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, POOL_NICE) {
        tracing::debug!(%error, "threads for heavy work keep the usual priority");
    }
}

#[cfg(test)]
mod tests;
