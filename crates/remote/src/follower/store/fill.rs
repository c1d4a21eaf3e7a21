//! Older blocks: fetched downwards by the hashes of parents, from the stored ones to the lowest block that is wanted, and
//! wherever blocks are missing in between.

use std::sync::Arc;

use alloy_primitives::map::B256Map;
use archive::EncodedBlock;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::ready;
use futures_util::stream;
use methods::BlockRef;
use nodes::CanonicalChain;
use nodes::proven::{ProvenBody, ProvenReceipts, ProvenUncles};
use sources::Failure;
use tokio::time::{Instant, sleep, timeout};

use super::live::{ENCODED_AT_ONCE_BYTES_MAX, encoded, reorganised};
use crate::block_ids::block_of;
use crate::blocks::{Blocks, RecentBlock};
use crate::call_context::CallContext;
use crate::follower::followed_chain::{BlockWriter, FollowedChain};
use crate::policy::{
    FETCH_TIME_MAX, LOOKED_AGAIN_AFTER, PROGRESS_LOGGED_EVERY, TRIED_AGAIN_AFTER, TRIED_AGAIN_AFTER_MAX,
    UNPROVEN_PAUSE_MAX,
};
use crate::{encode, node_failures};

/// Bytes of decoded blocks that are under way at a time, which bounds the memory that this takes.
const BYTES_AT_ONCE_MAX: usize = 16 << 20;

/// Blocks that become durable together, if they are small.
const CHUNK_BLOCKS_MAX: u64 = 512;
const CHUNK_BLOCKS_MIN: u64 = 8;

/// Blocks that are asked for at the same time, if they are small.
const BLOCKS_AT_ONCE_MAX: usize = 64;
const BLOCKS_AT_ONCE_MIN: usize = 2;

/// Why a chunk was not filled.
enum Unfilled {
    /// No node has it, or the disk cannot be written: later.
    Later,
    /// The data of the nodes fails its proof: much later.
    Unproven,
    /// The stored blocks are not of this chain.
    Contradiction(String),
}

/// Fills what is missing, for ever. Returns why that is impossible.
pub(super) async fn fill(remote: &Blocks, followed: &Arc<FollowedChain>) -> String {
    let mut filling =
        Filling { remote, followed, block_bytes: BYTES_AT_ONCE_MAX / CHUNK_BLOCKS_MIN as usize };
    let mut pause = TRIED_AGAIN_AFTER;
    loop {
        let Some(gap) = followed.next_gap(remote) else {
            let _later = timeout(LOOKED_AGAIN_AFTER, followed.stored().grown.notified()).await;
            continue;
        };
        let before = followed.filled_blocks();
        match filling.fill(gap).await {
            Ok(()) => pause = TRIED_AGAIN_AFTER,
            Err(Unfilled::Contradiction(reason)) => return reason,
            Err(Unfilled::Later) => {
                pause = if followed.filled_blocks() > before { TRIED_AGAIN_AFTER } else { pause };
                // New blocks may have shown that the disk can be written again.
                let _woken = timeout(pause, followed.stored().grown.notified()).await;
                pause = (pause * 2).min(TRIED_AGAIN_AFTER_MAX);
            }
            Err(Unfilled::Unproven) => {
                pause = if followed.filled_blocks() > before { TRIED_AGAIN_AFTER } else { pause };
                sleep(pause).await;
                pause = (pause * 2).min(UNPROVEN_PAUSE_MAX);
            }
        }
    }
}

/// Blocks that are missing, from the highest one downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    top: BlockRef,
    lowest: u64,
    /// The view in which they are canonical.
    epoch: u64,
}

impl FollowedChain {
    /// Blocks that are missing below the newest stored ones, as far down as the settings want.
    fn next_gap(&self, remote: &Blocks) -> Option<Gap> {
        let epoch = remote.pool.canonical_chain()?.epoch();
        let linked_from = self.stored().linked_from(epoch)?;
        let snapshot = self.stored().snapshot();
        let mut ranges = snapshot.ranges().rev();
        let newest = ranges.next().filter(|range| linked_from <= *range.end())?;
        let top = newest.start().checked_sub(1)?;
        let below = ranges.next().map(|range| *range.end() + 1);
        let lowest = below.or(self.settings.from).filter(|lowest| *lowest <= top)?;
        let have = newest.end() - newest.start() + 1;
        let room = self.settings.blocks_max.map_or(u64::MAX, |most| most.saturating_sub(have));
        let lowest = lowest.max((top + 1).saturating_sub(room));
        if lowest > top {
            self.record_completeness();
            return None;
        }
        let header = snapshot.header(*newest.start()).ok().flatten()?;
        Some(Gap { top: BlockRef { number: top, hash: header.parent }, lowest, epoch })
    }
}

struct Filling<'a> {
    remote: &'a Blocks,
    followed: &'a Arc<FollowedChain>,
    /// Bytes of a block of the last chunk, on average.
    block_bytes: usize,
}

impl Filling<'_> {
    /// Fetches a chunk while the one before is written.
    async fn fill(&mut self, gap: Gap) -> Result<(), Unfilled> {
        let (begun, mut logged_at, before) = (Instant::now(), Instant::now(), self.followed.filled_blocks());
        let mut next = Some(gap.top);
        let mut fetched = Vec::new();
        while next.is_some() || !fetched.is_empty() {
            let writing = self.write(gap.epoch, std::mem::take(&mut fetched));
            let fetching = async {
                match next {
                    Some(top) => self.fetch_chunk(top, gap.lowest).await,
                    None => Ok(Vec::new()),
                }
            };
            let (written, chunk) = tokio::join!(writing, fetching);
            written?;
            let chunk = chunk?;
            self.block_bytes = chunk.iter().map(|(_, bytes)| *bytes).sum::<usize>() / chunk.len().max(1);
            fetched = chunk.into_iter().map(|(block, _)| block).collect();
            next = self.below(gap, &fetched, next)?;
            if logged_at.elapsed() > PROGRESS_LOGGED_EVERY {
                logged_at = Instant::now();
                self.log_progress(gap, next, self.followed.filled_blocks() - before, begun);
            }
        }
        Ok(())
    }

    /// The block below those that were fetched; `None` at the end of the gap, where it must meet the stored blocks below.
    fn below(
        &self,
        gap: Gap,
        fetched: &[EncodedBlock],
        before: Option<BlockRef>,
    ) -> Result<Option<BlockRef>, Unfilled> {
        let (Some(lowest), Some(_)) = (fetched.last(), before) else { return Ok(None) };
        let Some(number) = lowest.number().checked_sub(1) else { return Ok(None) };
        let block = BlockRef { number, hash: lowest.parent() };
        if number >= gap.lowest {
            return Ok(Some(block));
        }
        let snapshot = self.followed.stored().snapshot();
        let is_whole = snapshot.ranges().any(|range| range.contains(&number));
        match snapshot.header(number) {
            Ok(Some(stored)) if is_whole && stored.hash != block.hash => {
                Err(Unfilled::Contradiction(reorganised(number, stored.hash, block.hash)))
            }
            Ok(_) => Ok(None),
            Err(cause) => {
                self.followed.stored().read_failed(&cause);
                Err(Unfilled::Later)
            }
        }
    }

    fn log_progress(&self, gap: Gap, next: Option<BlockRef>, blocks: u64, begun: Instant) {
        let left = next.map_or(0, |next| next.number - gap.lowest + 1);
        let per_second = (blocks as f64 / begun.elapsed().as_secs_f64()).round();
        tracing::info!(blocks, left, per_second, lowest = gap.lowest, "older blocks are being stored");
    }

    async fn write(&self, epoch: u64, blocks: Vec<EncodedBlock>) -> Result<(), Unfilled> {
        let Some(last) = blocks.last().map(EncodedBlock::number) else { return Ok(()) };
        let is_of_chain = |chain: Arc<CanonicalChain>| {
            chain.epoch() == epoch && blocks.iter().all(|block| block.number() <= chain.head().number)
        };
        if !self.remote.pool.canonical_chain().is_some_and(is_of_chain) {
            return Err(Unfilled::Later);
        }
        let (count, followed) = (blocks.len() as u64, Arc::clone(self.followed));
        let write = move || followed.put_blocks(BlockWriter::MissingBlocks, None, &blocks);
        match self.remote.workers.run_sized(self.followed.account, usize::MAX, 0, write).await {
            Ok(Ok(())) => {
                self.followed.add_filled_blocks(count);
                self.followed.stored().extend_link(epoch, last);
                Ok(())
            }
            _ => Err(Unfilled::Later),
        }
    }

    /// Blocks from `top` downwards, with what they take in memory.
    async fn fetch_chunk(&self, top: BlockRef, lowest: u64) -> Result<Vec<(EncodedBlock, usize)>, Unfilled> {
        let chain = self.remote.pool.canonical_chain().ok_or(Unfilled::Later)?;
        let fitting = BYTES_AT_ONCE_MAX / self.block_bytes.max(1);
        let blocks = (fitting as u64).clamp(CHUNK_BLOCKS_MIN, CHUNK_BLOCKS_MAX);
        let at_once = fitting.clamp(BLOCKS_AT_ONCE_MIN, BLOCKS_AT_ONCE_MAX);
        let lowest = lowest.max((top.number + 1).saturating_sub(blocks));
        let claims = (lowest..=top.number).rev().map(|number| self.claimed_body(number));
        let claimed = stream::iter(claims).buffer_unordered(at_once);
        // A node may say anything under a number: what does not fit is asked for by its hash.
        let mut room = BYTES_AT_ONCE_MAX;
        let within_room = claimed.filter_map(|body| {
            let body = body.filter(|body| body.bytes() <= room);
            room -= body.as_ref().map_or(0, |body| body.bytes());
            ready(body.map(|body| (body.hash(), body)))
        });
        let mut claimed: B256Map<_> = within_room.collect().await;
        let (mut bodies, mut bytes) = (Vec::new(), 0);
        let mut next = Some(top);
        while let Some(block) = next {
            let body = match claimed.remove(&block.hash) {
                Some(body) => body,
                None => self.body(&chain, block).await?,
            };
            let below = block.number.checked_sub(1).filter(|below| *below >= lowest);
            bytes += body.bytes();
            // Blocks may be much larger than those of the chunk before.
            let is_full = bytes > BYTES_AT_ONCE_MAX;
            next =
                below.filter(|_| !is_full).map(|number| BlockRef { number, hash: body.header().parent_hash });
            bodies.push(body);
        }
        let whole = stream::iter(bodies.into_iter().map(|body| self.whole(&chain, body))).buffered(at_once);
        whole.collect::<Vec<_>>().await.into_iter().collect()
    }

    /// The block that a node has under a number. Its hash shows whether it is the block that is meant.
    async fn claimed_body(&self, number: u64) -> Option<Arc<ProvenBody>> {
        let prove = |delivery: &Bytes| {
            let delivery = delivery.clone();
            self.remote.workers.proving(self.followed.account, delivery.len(), move || {
                ProvenBody::read_of_number(&delivery, number)
            })
        };
        let deadline = Instant::now() + FETCH_TIME_MAX;
        let call = encode::whole_block_of_number(number).for_account(self.followed.account);
        let fetched = self.remote.pool.fetch(None, &call, &prove, deadline).await;
        fetched.map_err(node_failures::of_fetch).ok().map(Arc::new)
    }

    async fn body(&self, chain: &CanonicalChain, block: BlockRef) -> Result<Arc<ProvenBody>, Unfilled> {
        let fetched =
            self.remote.fetch_body(CallContext::of_follower(self.followed.account, chain), block).await;
        fetched.map_err(|failure| self.unfilled(block, &failure))
    }

    /// A body with its uncles and receipts, encoded.
    async fn whole(
        &self,
        chain: &CanonicalChain,
        body: Arc<ProvenBody>,
    ) -> Result<(EncodedBlock, usize), Unfilled> {
        let (block, context) = (block_of(&body), CallContext::of_follower(self.followed.account, chain));
        let uncles = match ProvenUncles::none(&body) {
            Some(none) => Ok(Arc::new(none)),
            None => self.remote.fetch_uncles(context, &body).await,
        };
        let receipts = match ProvenReceipts::none(&body) {
            Some(none) => Ok(Arc::new(none)),
            None => self.remote.fetch_receipts(context, &body).await,
        };
        let parts = uncles.and_then(|uncles| receipts.map(|receipts| RecentBlock { body, uncles, receipts }));
        let whole = parts.map_err(|failure| self.unfilled(block, &failure))?;
        let bytes = whole.bytes();
        let encode = move || encoded(&whole);
        let encoded =
            self.remote.workers.run_sized(context.account, bytes, ENCODED_AT_ONCE_BYTES_MAX, encode).await;
        encoded.map(|encoded| (encoded, bytes)).map_err(|failure| self.unfilled(block, &failure))
    }

    fn unfilled(&self, block: BlockRef, failure: &Failure) -> Unfilled {
        // The log says so already.
        if self.remote.pool.why_unproven(block.number).is_some() {
            return Unfilled::Unproven;
        }
        tracing::warn!(
            number = block.number,
            ?failure,
            "an older block cannot be stored yet: no node has delivered it"
        );
        Unfilled::Later
    }
}
