//! Proven blocks are stored. `live` keeps up with the head, `fill` fetches what is missing below.

mod fill; // older blocks, downwards
mod live; // new blocks
mod restore; // a restart with all nodes dead

use std::io;
use std::sync::Arc;

use resources::{Supervisor, lower_priority};

use super::followed_chain::{FOLLOW_TASK, FollowedChain};
use super::thread::FollowThread;
use crate::blocks::Blocks;

/// Starts the thread that stores blocks.
pub(super) fn start(
    followed: Arc<FollowedChain>,
    remote: Arc<Blocks>,
    supervisor: &Supervisor,
) -> io::Result<FollowThread> {
    FollowThread::start(supervisor.low_priority_task(FOLLOW_TASK), move || {
        // Callers come first. A new block takes milliseconds all the same.
        lower_priority();
        let (remote, followed) = (Arc::clone(&remote), Arc::clone(&followed));
        async move { follow(&remote, &followed).await }
    })
}

/// Follows until that is impossible. The stored blocks are then not used any more: the nodes answer.
async fn follow(remote: &Blocks, followed: &Arc<FollowedChain>) {
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
