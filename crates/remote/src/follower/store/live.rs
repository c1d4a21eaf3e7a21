//! New blocks: fetched when the view shows them, kept in memory, and written to the file when they cannot be reorganised.

use std::ops::RangeInclusive;
use std::sync::Arc;

use archive::{BlockParts, EncodedBlock, StoredChainId};
use futures_util::StreamExt;
use futures_util::stream;
use methods::{BlockParam, BlockRef};
use nodes::view::WINDOW_BLOCKS;
use nodes::{CanonicalChain, Standing, TrustMark};
use sources::Failure;
use tokio::time::{Instant, timeout};

use crate::block_ids::block_ref;
use crate::blocks::Blocks;
use crate::blocks::{RECENT_BYTES_MAX, RecentBlock};
use crate::call_context::CallContext;
use crate::follower::followed_chain::{BlockWriter, FollowedChain};
use crate::follower::retries::FetchProblem;
use crate::follower::thread::{ChainReceiver, UNPROVEN_ATTEMPTS_MAX};
use crate::policy::{FETCH_TIME_MAX, TRIED_AGAIN_AFTER};

/// Blocks below the head that are never written: no live network has reorganised as many.
const UNSTORED_BLOCKS_MIN: u64 = 64;

/// Blocks at the lower end of the view's window that are written although they are not finalized.
const LEAVING_BLOCKS: u64 = 64;

/// New blocks that are fetched at the same time.
const BLOCKS_AT_ONCE: usize = 8;

/// Blocks that become durable together: the time of one write is spread over them.
const GROUP_BLOCKS_MAX: usize = 128;
/// Bytes of blocks in one write; blocks that were fetched again for it are counted nowhere else.
const GROUP_BYTES_MAX: usize = 64 << 20;

const ODD_HEADER: &str = "its header has members of a later fork without those of an earlier one";

/// Encoding a block of this size takes less than 200 µs.
pub(super) const ENCODED_AT_ONCE_BYTES_MAX: usize = 64 << 10;

/// Follows the view for ever. Returns why that is impossible.
pub(super) async fn keep_up(remote: &Blocks, followed: &Arc<FollowedChain>) -> String {
    let changes = remote.pool.view().changes();
    let mut live =
        FollowLoop { remote, followed, head: None, unknown_types: 0, lowest_in_memory: 0, changes };
    loop {
        let chain = live.changes.borrow_and_update().clone();
        let is_done = match chain {
            Some(chain) => match live.advance(&chain).await {
                Ok(is_done) => is_done,
                Err(reason) => return reason,
            },
            None => true,
        };
        match is_done {
            true => _ = live.changes.changed().await,
            false => {
                let pause = followed.next_fetch_in().unwrap_or(TRIED_AGAIN_AFTER);
                _ = timeout(pause, live.changes.changed()).await;
            }
        }
    }
}

struct FollowLoop<'a> {
    remote: &'a Blocks,
    followed: &'a Arc<FollowedChain>,
    /// The head of the view when it was last looked at.
    head: Option<BlockRef>,
    /// Times in a row that a block could not be proven, because it is said to have a transaction of an unknown type.
    unknown_types: u32,
    /// Blocks below this number are not kept in memory, because those above it take all that there is.
    lowest_in_memory: u64,
    changes: ChainReceiver,
}

impl FollowLoop<'_> {
    /// Catches up with the view. `false` if something is left to do.
    async fn advance(&mut self, chain: &Arc<CanonicalChain>) -> Result<bool, String> {
        self.check_chain(chain)?;
        self.link(chain).await?;
        self.followed.record_started();
        if !self.remove_reverted(chain).await {
            return Ok(false);
        }
        let wanted = self.wanted(chain);
        let all_fetched = self.fetch(chain, wanted.clone()).await?;
        let all_stored = self.store(chain, wanted).await?;
        self.forget(chain);
        Ok(all_fetched && all_stored)
    }

    /// Checks that the stored blocks are of the chain of the nodes.
    fn check_chain(&self, chain: &CanonicalChain) -> Result<(), String> {
        let Some(stored) = self.followed.stored().snapshot().chain() else { return Ok(()) };
        let is_other_id = self.remote.pool.chain_id().is_some_and(|chain_id| chain_id != stored.chain_id);
        let genesis = chain.genesis().map(|block| block.hash);
        let is_other_genesis = stored.genesis.zip(genesis).is_some_and(|(stored, seen)| stored != seen);
        match is_other_id || is_other_genesis {
            true => Err(format!("the stored blocks are of another chain, with chain id {}", stored.chain_id)),
            false => Ok(()),
        }
    }

    /// Sees whether the newest stored block is on the chain of the view.
    async fn link(&self, chain: &CanonicalChain) -> Result<(), String> {
        let snapshot = self.followed.stored().snapshot();
        let Some(range) = snapshot.ranges().next_back() else { return Ok(()) };
        let number = chain.head().number.min(*range.end());
        let is_deep = number < chain.lowest();
        let stands = |trust: Option<TrustMark>| {
            trust.is_none_or(|trust| self.remote.pool.standing(trust) == Standing::Good)
        };
        if !range.contains(&number)
            || is_deep && self.followed.stored().newest_link(chain).is_some_and(stands)
        {
            return Ok(());
        }
        if is_deep {
            let deadline = Instant::now() + FETCH_TIME_MAX;
            // Where too few nodes can say, the blocks in between will show it.
            let _unknown =
                self.remote.learn(self.followed.account, chain, BlockParam::Number(number), deadline).await;
            if !chain.knows_number(number) {
                return Ok(());
            }
        }
        let Some(canonical) = chain.by_number(number) else { return Ok(()) };
        match snapshot.header(number) {
            Ok(Some(header)) if header.hash == canonical.hash => {
                self.followed.stored().link(chain.epoch(), number, chain.trust(number));
                Ok(())
            }
            // Nodes may lie about an old block. That the stored one is wrong is proven where new blocks meet the stored ones.
            Ok(Some(header)) if !chain.is_linked(number) => {
                let (stored, reported) = (header.hash, canonical.hash);
                tracing::warn!(
                    number,
                    %stored,
                    %reported,
                    "the nodes report another old block than the stored one; stored blocks are not used until they agree"
                );
                self.followed.stored().unlink_reported();
                Ok(())
            }
            Ok(Some(header)) => Err(reorganised(number, header.hash, canonical.hash)),
            Ok(None) => Ok(()),
            Err(cause) => {
                self.followed.stored().read_failed(&cause);
                Ok(())
            }
        }
    }

    /// Removes stored blocks above the head if the nodes have gone back to it. `false` if the disk cannot be written.
    async fn remove_reverted(&self, chain: &CanonicalChain) -> bool {
        let newest = self.followed.stored().snapshot().ranges().next_back().map(|range| *range.end());
        let head = chain.head().number;
        let Some(from) = newest.filter(|newest| self.remote.pool.view().has_gone_back(*newest, head)) else {
            return true;
        };
        let followed = Arc::clone(self.followed);
        tracing::warn!(
            from,
            to = head,
            "the nodes went back to an older block; removing the stored blocks above it"
        );
        let remove = move || followed.remove_above(head);
        let removed = self.remote.workers.run_sized(self.followed.account, usize::MAX, 0, remove).await;
        matches!(removed, Ok(Ok(())))
    }

    /// The blocks that should be in memory or, the lower ones, in the file.
    fn wanted(&self, chain: &CanonicalChain) -> RangeInclusive<u64> {
        let head = chain.head().number;
        let first = self.followed.first_head(head);
        let newest_stored = self.followed.stored().snapshot().ranges().next_back().map(|range| *range.end());
        let lowest = match (newest_stored, self.followed.settings.from) {
            (Some(newest), _) => newest + 1,
            (None, Some(from)) => from,
            (None, None) => first,
        };
        lowest.max(chain.lowest())..=head
    }

    /// Fetches what is missing, the newest block first. `false` if something is missing still, or the view has changed.
    async fn fetch(
        &mut self,
        chain: &Arc<CanonicalChain>,
        wanted: RangeInclusive<u64>,
    ) -> Result<bool, String> {
        let missing = self.missing(chain, wanted);
        let this = &*self;
        let fetches = missing.into_iter().map(|block| this.fetch_missing(chain, block));
        let mut fetches = stream::iter(fetches).buffer_unordered(BLOCKS_AT_ONCE);
        let (mut is_done, mut unknown_type) = (true, None);
        while let Some((missing, fetched)) = fetches.next().await {
            match fetched {
                Ok(block) => {
                    this.followed.record_fetched(missing.number);
                    let mut recent = this.followed.stored().recent.write();
                    recent.put(block);
                    // The remaining blocks are below it, and there is no room for it.
                    if recent.bytes() > RECENT_BYTES_MAX {
                        return Ok(is_done);
                    }
                }
                Err(Failure::CannotBeProven { transaction_type }) => {
                    is_done = false;
                    unknown_type = Some(transaction_type);
                }
                Err(failure) => this.record_failure(missing, &failure),
            }
            // A newer head comes first.
            if this.changes.has_changed().unwrap_or(false) {
                return Ok(false);
            }
        }
        drop(fetches);
        self.unknown_types = if unknown_type.is_some() { self.unknown_types + 1 } else { 0 };
        match unknown_type.filter(|_| self.unknown_types >= UNPROVEN_ATTEMPTS_MAX) {
            Some(unknown) => Err(format!("a block has a transaction of the unknown type {unknown:#x}")),
            None => Ok(is_done && self.followed.next_fetch_in().is_none()),
        }
    }

    /// Lets a block that could not be fetched wait, longer each time.
    fn record_failure(&self, block: BlockRef, failure: &Failure) {
        let why_unproven = match failure {
            Failure::OddHeader => Some(ODD_HEADER.to_owned()),
            _ => self.remote.pool.why_unproven(block.number),
        };
        let problem = why_unproven.map_or(FetchProblem::Undelivered, FetchProblem::Unproven);
        let is_new = self.followed.record_not_fetched(block, problem);
        if is_new && *failure == Failure::OddHeader {
            tracing::warn!(number = block.number, reason = ODD_HEADER, "a block cannot be stored");
        }
    }

    /// Canonical blocks that are not in memory and may be fetched now, downwards.
    fn missing(&mut self, chain: &CanonicalChain, wanted: RangeInclusive<u64>) -> Vec<BlockRef> {
        let head = block_ref(chain.head());
        let before = self.head.replace(head);
        let is_reorganised = before.is_some_and(|before| chain.by_hash(&before.hash).is_none());
        let mut recent = self.followed.stored().recent.write();
        let mut missing = Vec::new();
        let lowest = *wanted.start().max(&self.lowest_in_memory);
        for block in
            (lowest..=*wanted.end()).rev().filter_map(|number| chain.by_number(number)).map(block_ref)
        {
            match recent.get(&block.hash).cloned() {
                // Its transactions may have been in other blocks meanwhile.
                Some(known) if is_reorganised => recent.put(known),
                Some(_) => {}
                None => missing.push(block),
            }
        }
        drop(recent);
        self.followed.due(chain, lowest, missing)
    }

    async fn fetch_missing(
        &self,
        chain: &CanonicalChain,
        block: BlockRef,
    ) -> (BlockRef, Result<RecentBlock, Failure>) {
        (block, self.fetch_block(chain, block).await)
    }

    async fn fetch_block(&self, chain: &CanonicalChain, block: BlockRef) -> Result<RecentBlock, Failure> {
        let context = CallContext::of_follower(self.followed.account, chain);
        let body = self.remote.body(context, block).await?;
        let (uncles, receipts) =
            tokio::try_join!(self.remote.uncles(context, &body), self.remote.receipts(context, &body))?;
        Ok(RecentBlock { body, uncles, receipts })
    }

    /// Writes what cannot be reorganised any more. `false` if the disk cannot be written.
    async fn store(&self, chain: &CanonicalChain, wanted: RangeInclusive<u64>) -> Result<bool, String> {
        let Some(newest) = storable(chain) else { return Ok(true) };
        let mut next = *wanted.start();
        let newest = newest.min(*wanted.end());
        loop {
            let (mut group, mut bytes) = (Vec::new(), 0);
            while next <= newest && group.len() < GROUP_BLOCKS_MAX && bytes < GROUP_BYTES_MAX {
                let Some(block) = self.block_to_store(chain, next).await else { break };
                bytes += block.bytes();
                group.push(block);
                next += 1;
            }
            let Some(lowest) = group.first() else { return Ok(true) };
            self.check_parent(lowest)?;
            if !self.store_group(chain, group).await {
                return Ok(false);
            }
            self.followed.stored().link(chain.epoch(), next - 1, None);
        }
    }

    /// A canonical block that is due; fetched again if memory had no room for it.
    async fn block_to_store(&self, chain: &CanonicalChain, number: u64) -> Option<RecentBlock> {
        let block = chain.by_number(number).map(block_ref)?;
        match self.followed.stored().recent(&block.hash) {
            None if number < self.lowest_in_memory => self.fetch_block(chain, block).await.ok(),
            recent => recent,
        }
    }

    /// A block must be a child of the stored one below it, if there is one.
    fn check_parent(&self, block: &RecentBlock) -> Result<(), String> {
        let Some(number) = block.block().number.checked_sub(1) else { return Ok(()) };
        let snapshot = self.followed.stored().snapshot();
        if !snapshot.ranges().any(|range| range.contains(&number)) {
            return Ok(());
        }
        let parent = block.body.header().parent_hash;
        match snapshot.header(number) {
            Ok(Some(stored)) if stored.hash != parent => Err(reorganised(number, stored.hash, parent)),
            Ok(_) => Ok(()),
            Err(cause) => {
                self.followed.stored().read_failed(&cause);
                Ok(())
            }
        }
    }

    async fn store_group(&self, chain: &CanonicalChain, group: Vec<RecentBlock>) -> bool {
        let named = self
            .remote
            .pool
            .chain_id()
            .map(|chain_id| StoredChainId { chain_id, genesis: chain.genesis().map(|block| block.hash) });
        let known = self.followed.stored().snapshot().chain();
        let new_chain =
            named.filter(|named| known.is_none_or(|known| known.genesis.is_none() && known != *named));
        let followed = Arc::clone(self.followed);
        let write = move || {
            let blocks: Vec<_> = group.iter().map(encoded).collect();
            followed.put_blocks(BlockWriter::NewBlocks, new_chain, &blocks)
        };
        let written = self.remote.workers.run_sized(self.followed.account, usize::MAX, 0, write).await;
        matches!(written, Ok(Ok(())))
    }

    /// Forgets what is in the file, or too deep to be on its way there.
    fn forget(&mut self, chain: &CanonicalChain) {
        let newest = self.followed.stored().snapshot().ranges().next_back().map(|range| *range.end());
        let stored =
            newest.filter(|newest| chain.by_number(*newest).is_some()).map_or(0, |newest| newest + 1);
        let unstored = (chain.head().number + 1).saturating_sub(WINDOW_BLOCKS as u64);
        let lowest = stored.max(unstored);
        self.lowest_in_memory = self.followed.stored().recent.write().tidy(lowest, RECENT_BYTES_MAX, chain);
    }
}

/// The newest block that cannot be reorganised any more. What is leaving the view's window counts as such, also if nothing is
/// finalized, because the view would not connect to anything below it. It begins to leave early enough that none is missed when
/// the head jumps.
fn storable(chain: &CanonicalChain) -> Option<u64> {
    let head = chain.head().number;
    let deep = head.checked_sub(UNSTORED_BLOCKS_MIN)?;
    let finalized = chain.finalized().map_or(0, |block| block.number);
    let leaving = head.saturating_sub(WINDOW_BLOCKS as u64 - LEAVING_BLOCKS);
    Some(deep.min(finalized).max(leaving))
}

pub(super) fn reorganised(
    number: u64,
    stored: alloy_primitives::B256,
    canonical: alloy_primitives::B256,
) -> String {
    format!("block {number} is {canonical} on the chain of the nodes, and {stored} was stored as final")
}

pub(super) fn encoded(block: &RecentBlock) -> EncodedBlock {
    EncodedBlock::new(&BlockParts {
        hash: block.body.hash(),
        header: block.body.header(),
        transactions: block.body.transactions(),
        uncles: block.uncles.headers(),
        withdrawals: block.body.withdrawals(),
        receipts: block.receipts.envelopes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_blocks::chain_of_head;

    /// Where nothing is finalized, blocks were stored as final at a depth of 64, although they can be reorganised as long as
    /// they are in the window.
    #[test]
    fn without_finality_blocks_are_stored_when_they_leave_the_window() {
        assert_eq!(storable(&chain_of_head(1_000)), Some(1_000 - (WINDOW_BLOCKS as u64 - LEAVING_BLOCKS)));
        assert_eq!(storable(&chain_of_head(UNSTORED_BLOCKS_MIN)), Some(0));
        assert_eq!(storable(&chain_of_head(UNSTORED_BLOCKS_MIN - 1)), None);
    }
}
