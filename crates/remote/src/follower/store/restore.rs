//! After a restart with all nodes dead: the newest stored block is the head until a node shows its own.

use std::sync::Arc;

use archive::{BlocksFileSnapshot, StoreError};
use nodes::view::{SeenBlock, WINDOW_BLOCKS};
use tokio::time::timeout;

use crate::blocks::Blocks;
use crate::follower::followed_chain::FollowedChain;
use crate::policy::NODES_FIRST;

/// Serves the stored blocks if no node answers, once.
pub(super) async fn restore_while_silent(remote: &Blocks, followed: &Arc<FollowedChain>) {
    let view = remote.pool.view();
    while timeout(NODES_FIRST, view.ready()).await.is_err() {
        if !remote.pool.all_unreachable() {
            continue;
        }
        match newest_blocks(&followed.stored().snapshot()) {
            Ok(mut blocks) if !blocks.is_empty() => {
                let head = blocks.remove(0);
                tracing::warn!(
                    head = head.id.number,
                    "no node answers: the stored blocks are served until one does"
                );
                return view.restore(head, blocks);
            }
            Ok(_) => return,
            Err(cause) => followed.stored().read_failed(&cause),
        }
    }
}

/// The newest stored blocks, downwards: a window of them.
fn newest_blocks(snapshot: &BlocksFileSnapshot) -> Result<Vec<SeenBlock>, StoreError> {
    let Some(newest) = snapshot.ranges().next_back() else { return Ok(Vec::new()) };
    let mut blocks = Vec::new();
    for number in newest.rev().take(WINDOW_BLOCKS) {
        let (Some(header), Some(body)) = (snapshot.header(number)?, snapshot.body(number)?) else { break };
        blocks.push(SeenBlock::restored(header.hash, &body.decode()?.header));
    }
    Ok(blocks)
}
