//! Blocks that were canonical and were reorganised away. Whoever names one by its hash is answered as long as it can be found.

use std::sync::Arc;

use methods::{BlockParam, BlockRef, Query};
use nodes::{CanonicalChain, Needs, RpcCall};
use resources::AccountId;
use tokio::time::Instant;

use super::block_ids::block_ref;
use super::pool_source::PoolSource;
use crate::failure::Failure;
use crate::provenance::Verification;

/// The block that is meant, if it is a side block.
pub(super) fn side_block(chain: &CanonicalChain, block: BlockParam) -> Option<BlockRef> {
    let BlockParam::Hash { hash, .. } = block else { return None };
    chain.side_block(&hash).map(block_ref)
}

impl PoolSource {
    /// Makes sure that a query about a side block can be answered: the block is in memory, or a node has it. Only nodes have
    /// its state. A side block that no node has is forgotten. Returns how far it is verified that no node has it.
    pub(super) async fn find_side_block<B: Copy>(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        block: BlockRef,
        query: &Query<B>,
        deadline: Instant,
    ) -> Result<Verification, Failure> {
        let is_in_memory = self.is_in_memory(block);
        if is_in_memory && !query.reads_state() {
            return Ok(self.by_quorum());
        }
        match self.pool.absence_of_block(account, block.hash, deadline).await {
            Ok(None) => Ok(self.by_quorum()),
            // The block is in memory, so only its state is gone.
            Ok(Some(_)) if is_in_memory => Err(Failure::SideStateGone),
            Ok(Some(absence)) => {
                chain.forget_side_block(&block.hash);
                Ok(self.absence_verified(absence))
            }
            Err(_) => Err(Failure::Unavailable),
        }
    }

    /// Runs `work` on a query about a side block. `None` if it has been forgotten, because the nodes have dropped it meanwhile.
    pub(super) async fn unless_dropped<T>(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        block: BlockRef,
        query: &Query<BlockRef>,
        deadline: Instant,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Option<Result<T, Failure>> {
        let outcome = work.await;
        if !matches!(outcome, Err(Failure::Unavailable)) {
            return Some(outcome);
        }
        match self.find_side_block(account, chain, block, query, deadline).await {
            Err(Failure::SideStateGone) => Some(Err(Failure::SideStateGone)),
            _ if chain.side_block(&block.hash).is_none() => None,
            _ => Some(outcome),
        }
    }

    /// A call for data of a block. A side block is also asked of nodes on its branch, although they do not have the canonical
    /// block of its number.
    pub(super) fn on_any_branch(&self, block: BlockRef, call: RpcCall) -> RpcCall {
        let is_side_block = |chain: &Arc<CanonicalChain>| chain.side_block(&block.hash).is_some();
        match self.pool.view().peek().as_ref().is_some_and(is_side_block) {
            true => RpcCall { needs: Needs::default(), ..call },
            false => call,
        }
    }

    fn is_in_memory(&self, block: BlockRef) -> bool {
        self.recent_block(block).is_some() || self.blocks.body(block.hash).is_some()
    }
}
