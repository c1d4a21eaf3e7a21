//! Which blocks a call means, and who can say so.

use std::time::Duration;

use methods::{BlockParam, BlockRef, Query};
use nodes::{BlockId, CanonicalChain};
use resources::AccountId;
use tokio::time::{Instant, timeout, timeout_at};

use super::pool_source::PoolSource;
use crate::failure::Failure;
use crate::provenance::Verification;

/// A node that is back answers a look-up sooner than this, and a caller hardly notices it.
const OUTAGE_TIMEOUT: Duration = Duration::from_millis(250);

/// How long a call that failed waits for its nodes to be looked at: the shortest time between two polls of a node, and its
/// answers. A node that takes longer is of no help to the call.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);

const UNKNOWN_BLOCK: &str = "too few nodes say which block is meant: they have dropped it, or do not answer";

impl PoolSource {
    /// Makes sure that the view can say which blocks a query means, as far as they exist. Returns how far it is verified that one
    /// that it does not have does not exist.
    pub(crate) async fn find_blocks(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        query: &Query<BlockParam>,
    ) -> Result<Verification, Failure> {
        if query.blocks().all(|block| self.blocks.knows(chain, block)) {
            return Ok(self.blocks.by_quorum());
        }
        // Boxed, because the future is large and few calls need it.
        let deadline = Instant::now() + self.call_timeout;
        Box::pin(self.blocks.learn_all(account, chain, query, deadline)).await.map_err(
            |failure| match failure {
                Failure::Unavailable => Failure::NotServed { reason: UNKNOWN_BLOCK.to_owned() },
                failure => failure,
            },
        )
    }

    /// Runs work of our own nodes. While all of them seem to be down, a call that may fail over to a partner waits for them no
    /// longer than a node that is back takes to answer.
    pub(super) async fn with_outage_timeout<T>(
        &self,
        may_fail_over: bool,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        if may_fail_over && !self.pool.partners().is_empty() && self.pool.all_down() {
            return timeout(OUTAGE_TIMEOUT, work).await.unwrap_or(Err(Failure::Unavailable));
        }
        work.await
    }

    /// Runs `work` on a query. `None` if the block that it is about is reorganised away before it ends. After a failure, all nodes
    /// are polled first: between two polls nobody knows of a reorganisation.
    pub(super) async fn unless_reorganised<T>(
        &self,
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
        let view = self.pool.view();
        let outcome = tokio::select! {
            biased;
            outcome = work => outcome,
            () = view.wait_until_removed(block) => return None,
        };
        if matches!(outcome, Err(Failure::Unavailable)) && !self.pool.all_down() {
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
}
