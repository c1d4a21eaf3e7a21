//! The thread that executes blocks, so that others can be fetched meanwhile.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

type ExecutionJob = Box<dyn FnOnce() + Send>;

/// The thread ends, after the work under way, when this is dropped.
pub(super) struct ExecutionWorker {
    jobs: Option<SyncSender<ExecutionJob>>,
    thread: Option<JoinHandle<()>>,
}

impl ExecutionWorker {
    pub(super) fn start() -> io::Result<Self> {
        let (jobs, queue): (_, Receiver<ExecutionJob>) = sync_channel(1);
        let run = move || queue.into_iter().for_each(|job| job());
        let thread = thread::Builder::new().name("chaingate-execute".to_owned()).spawn(run)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Begins some work; gives its result, or its panic, which does not end the thread.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> oneshot::Receiver<thread::Result<T>> {
        let (sender, receiver) = oneshot::channel();
        let job: ExecutionJob = Box::new(move || {
            // Nobody waits for it any more if the gateway ends.
            let _unheard = sender.send(catch_unwind(AssertUnwindSafe(work)));
        });
        if let Some(jobs) = &self.jobs {
            // It fails only if the thread is gone, and then the receiver hears of it.
            let _ended = jobs.send(job);
        }
        receiver
    }
}

impl Drop for ExecutionWorker {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _joined = thread.join();
        }
    }
}
