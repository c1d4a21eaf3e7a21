//! The thread and the limits of following the chain, in both modes.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use nodes::CanonicalChain;
use resources::SupervisedTask;
use tokio::sync::{oneshot, watch};

/// Attempts, a second apart, after which a block is believed to have a transaction of an unknown type, or not to be provable. One
/// attempt is not enough, because one node alone can say so while the others happen not to answer.
pub(super) const UNPROVEN_ATTEMPTS_MAX: u32 = 5;

/// Reports changes of the canonical chain.
pub(super) type ChainReceiver = watch::Receiver<Option<Arc<CanonicalChain>>>;

/// A thread that follows the chain. It ends when this is dropped.
pub struct FollowThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FollowThread {
    /// Starts a thread that runs the future that `follow` returns, as this task.
    pub(super) fn start<F: Future<Output = ()>>(
        task: SupervisedTask,
        follow: impl FnMut() -> F + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    _dropped = stopped => {}
                    () = task.run(follow) => {}
                }
            });
        };
        let thread = thread::Builder::new().name("chaingate-follow".to_owned()).spawn(run)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for FollowThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _joined = thread.join();
        }
    }
}

impl std::fmt::Debug for FollowThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FollowThread").finish_non_exhaustive()
    }
}
