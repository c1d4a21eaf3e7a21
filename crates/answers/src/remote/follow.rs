//! Following: the canonical chain is fetched as it grows, proven, and kept in a file, so that questions about it need no node.
//!
//! Blocks that can still be reorganised are in memory (`recent_blocks`); those that cannot are in the file (`kept_chain`). `live` keeps
//! up with the head, `fill` fetches what is missing below. Both run on one thread of their own.

mod fill; // older blocks, downwards
mod live; // new blocks
mod restore; // a restart with all nodes dead

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use resources::lower_priority;
use tokio::sync::oneshot;

use super::kept_chain::KeptChain;
use super::pool_source::PoolSource;

/// The thread that follows. It ends when this is dropped.
pub(crate) struct Follower {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Begins to follow. `None` where nothing is to be kept.
    pub(crate) fn start(remote: &Arc<PoolSource>) -> io::Result<Option<Self>> {
        let Some(kept) = remote.kept_chain().cloned() else { return Ok(None) };
        let remote = Arc::clone(remote);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            // Callers come first. A new block takes milliseconds all the same.
            lower_priority();
            runtime.block_on(async {
                tokio::select! {
                    _dropped = stopped => {}
                    () = follow(&remote, &kept) => {}
                }
            });
        };
        let thread = thread::Builder::new().name("chaingate-follow".to_owned()).spawn(run)?;
        Ok(Some(Self { stop: Some(stop), thread: Some(thread) }))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _joined = thread.join();
        }
    }
}

/// Follows until that is impossible. What is kept is then of no use any more: the nodes answer.
async fn follow(remote: &PoolSource, kept: &KeptChain) {
    let restored = async {
        restore::restore_while_silent(remote, kept).await;
        std::future::pending().await
    };
    let reason = tokio::select! {
        reason = live::keep_up(remote, kept) => reason,
        reason = fill::fill(remote, kept) => reason,
        never = restored => never,
    };
    kept.stop(&reason);
}
