//! Following: the canonical chain is fetched as it grows, proven, and stored in a file, so that queries about it need no node.
//!
//! Blocks that can still be reorganised are in memory (`recent_blocks`); those that cannot are in the file (`followed_chain`).
//! `live` keeps up with the head, `fill` fetches what is missing below. Both run on one thread of their own.

mod fill; // older blocks, downwards
mod live; // new blocks
mod restore; // a restart with all nodes dead

use std::io;
use std::sync::Arc;

use resources::lower_priority;

use super::blocks::Blocks;
use super::follow_thread::FollowThread;
use super::followed_chain::{FOLLOW_TASK, FollowedChain};
use super::pool_source::PoolSource;

/// Starts the thread that follows. `None` where no blocks are to be stored.
pub(crate) fn start_following(remote: &Arc<PoolSource>) -> io::Result<Option<FollowThread>> {
    let Some(followed) = remote.followed_chain().cloned() else { return Ok(None) };
    let task = remote.supervisor.low_priority_task(FOLLOW_TASK);
    let remote = Arc::clone(&remote.blocks);
    let thread = FollowThread::start(task, move || {
        // Callers come first. A new block takes milliseconds all the same.
        lower_priority();
        let (remote, followed) = (Arc::clone(&remote), Arc::clone(&followed));
        async move { follow(&remote, &followed).await }
    })?;
    Ok(Some(thread))
}

/// Follows until that is impossible. The stored blocks are then not used any more: the nodes answer.
async fn follow(remote: &Blocks, followed: &FollowedChain) {
    let restored = async {
        restore::restore_while_silent(remote, followed).await;
        std::future::pending().await
    };
    let reason = tokio::select! {
        reason = live::keep_up(remote, followed) => reason,
        reason = fill::fill(remote, followed) => reason,
        never = restored => never,
    };
    followed.stop(&reason);
}
