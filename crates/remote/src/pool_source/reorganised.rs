//! How long a call goes on whose nodes are down, or whose block may be reorganised away.

use methods::{BlockRef, Query};
use nodes::{BlockId, CanonicalChain, Pool};
use sources::Failure;
use tokio::time::{Instant, timeout, timeout_at};

use crate::policy::{LOOK_TIME_MAX, OUTAGE_TIMEOUT};

/// Runs work of our own nodes. While all of them seem to be down, a call that may fail over to a partner waits for them no
/// longer than a node that is back takes to answer.
pub(super) async fn with_outage_timeout<T>(
    pool: &Pool,
    may_fail_over: bool,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    if may_fail_over && !pool.partners().is_empty() && pool.all_down() {
        return timeout(OUTAGE_TIMEOUT, work).await.unwrap_or(Err(Failure::Unavailable));
    }
    work.await
}

/// Runs `work` on a query. `None` if the block that it is about is reorganised away before it ends. After a failure, all nodes
/// are polled first: between two polls nobody knows of a reorganisation.
pub(super) async fn unless_reorganised<T>(
    pool: &Pool,
    chain: &CanonicalChain,
    query: &Query<BlockRef>,
    deadline: Instant,
    work: impl Future<Output = Result<T, Failure>>,
) -> Option<Result<T, Failure>> {
    let newest = query.blocks().max_by_key(|block| block.number);
    let block = newest.map_or(chain.head(), |block| BlockId { number: block.number, hash: block.hash });
    if chain.side_block(&block.hash).is_some() {
        let outcome = work.await;
        if matches!(outcome, Err(Failure::Unavailable)) {
            // Part of it is not in memory any more.
            chain.forget_side_block(&block.hash);
        }
        return Some(outcome);
    }
    let view = pool.view();
    let outcome = tokio::select! {
        biased;
        outcome = work => outcome,
        () = view.wait_until_removed(block) => return None,
    };
    if matches!(outcome, Err(Failure::Unavailable)) && !pool.all_down() {
        let has_settled = async {
            tokio::select! {
                biased;
                () = view.wait_until_removed(block) => {}
                () = view.wait_until_settled(block) => {}
            }
        };
        // A node that takes longer is of no help to the call.
        let _late = timeout_at(deadline.min(Instant::now() + LOOK_TIME_MAX), has_settled).await;
    }
    Some(outcome)
}
