//! Threads for work that would keep a connection's thread from its other connections.
//!
//! Not the runtime's blocking pool: that one has no bound on what waits for it, and under a flood of simulations a queue
//! without end turns every answer into a timeout. Here, what does not fit is refused at once.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads behind a bounded queue.
pub struct Threads {
    shared: Arc<Shared>,
}

/// The queue has no place for more work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadsBusy;

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    waiting_max: usize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Threads").field("waiting", &self.waiting()).finish()
    }
}

impl Threads {
    pub fn start(threads: usize, waiting_max: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), wake: Condvar::new(), waiting_max });
        for index in 0..threads.max(1) {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(format!("pool-{index}")).spawn(move || work(&shared))?;
        }
        Ok(Self { shared })
    }

    /// Lets a thread of the pool run `job`, or refuses at once.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<(), ThreadsBusy> {
        let mut queue = self.shared.queue.lock();
        if queue.jobs.len() >= self.shared.waiting_max {
            return Err(ThreadsBusy);
        }
        queue.jobs.push_back(Box::new(job));
        drop(queue);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Runs `job` in the pool and waits for what it returns. `None` if it was refused or panicked.
    pub async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        // Nobody to send to is no fault: the caller has gone.
        self.submit(move || drop(sender.send(job()))).ok()?;
        receiver.await.ok()
    }

    /// How many jobs wait for a thread.
    pub fn waiting(&self) -> usize {
        self.shared.queue.lock().jobs.len()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

fn work(shared: &Shared) {
    loop {
        let mut queue = shared.queue.lock();
        let job = loop {
            if let Some(job) = queue.jobs.pop_front() {
                break job;
            }
            if queue.closed {
                return;
            }
            shared.wake.wait(&mut queue);
        };
        drop(queue);
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("a job of the pool panicked; the thread goes on");
        }
    }
}
