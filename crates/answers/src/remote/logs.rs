//! Log queries: cut into aligned chunks of blocks, each cached on its own, so that queries which overlap share them.
//!
//! Chunks that are not cached are fetched in runs, as few calls as there are gaps; a node that grants less gets smaller
//! questions, and only what failed is asked again. The results are counted while they come in.

mod deep; // which old blocks may have logs
mod blooms; // a filter as blooms see it
mod proven; // logs from proven receipts
mod piece; // aligned chunks, and what is left at the ends
mod passed_on; // logs that nothing proves

use std::sync::Arc;

use bytes::Bytes;
use methods::{BlockRef, LogBlocks, LogFilterParams, LogsQuery};
use nodes::raw::read_logs;
use nodes::{CanonicalChain, GivenBy, Standing, Supplier};
use resources::AccountId;
use tokio::time::Instant;

use super::asking::Asking;
use super::block_ids::block_ref;
use super::encode;
use super::fetched::{CacheDecision, Fetched, holds};
use super::pool_source::PoolSource;
use super::sized_work::COPIED_AT_ONCE_BYTES_MAX;
use super::state::ConfirmedLogs;
use crate::failure::Failure;
use crate::provenance::{Origin, Verification};

use passed_on::PassedLogs;
use piece::{LogsText, Piece, cut, join};
use proven::FoundMemory;

/// A log query on its way.
struct LogSearch<'a> {
    remote: &'a PoolSource,
    account: AccountId,
    chain: &'a Arc<CanonicalChain>,
    filter: &'a Arc<LogFilterParams>,
    /// Where the caller's range begins, for the error that says how much would fit.
    from: u64,
    deadline: Instant,
    supplier: Supplier,
}

/// The logs of a range in the parts that they came in, in order.
struct FetchedLogs {
    results: Vec<Bytes>,
    /// Whether no other node might have known better.
    is_confirmed: bool,
}

/// The answer to a log query.
pub(super) struct LogAnswer {
    pub(super) origin: Origin,
    pub(super) result: Bytes,
    /// The newest block of the range.
    pub(super) block: BlockRef,
    pub(super) verified: Verification,
    /// The nodes that gave what is not proven.
    pub(super) given_by: Option<GivenBy>,
}

impl PoolSource {
    pub(super) async fn logs(
        &self,
        account: AccountId,
        chain: &Arc<CanonicalChain>,
        query: &LogsQuery<BlockRef>,
        deadline: Instant,
    ) -> Result<LogAnswer, Failure> {
        let (filter, blocks) = (&query.filter, query.blocks);
        let (from, to) = ends(blocks);
        let supplier = Supplier::Nodes;
        let search =
            LogSearch { remote: self, account, chain, filter, from: from.number, deadline, supplier };
        let proven_from = search.proven_from(from, to);
        let given_by = self.pool.before_asking().given_by_anyone();
        if self.proves_blocks() && proven_from <= to.number {
            let proven = search.proven(from.number, proven_from, to).await;
            let result = proven.map_err(|failure| search.in_time(failure))?;
            let is_proven = proven_from == from.number;
            let (verified, given_by) =
                if is_proven { (Verification::Proven, None) } else { (Verification::None, Some(given_by)) };
            let origin = self.origin_of([from, to]);
            return Ok(LogAnswer { origin, result, block: to, verified, given_by });
        }
        let (origin, result) = match blocks {
            LogBlocks::One(_) => (Origin::Node, search.ask(blocks, self.limits.log_results_max).await?),
            LogBlocks::Range { .. } => search.range(from.number, to.number).await?,
        };
        let verified = self.pieces_verified();
        Ok(LogAnswer { origin, result, block: to, verified, given_by: Some(given_by) })
    }
}

impl PoolSource {
    /// The logs of a range, as a partner delivers them. Each unknown header and each block that may have such logs is a call
    /// out of its budget, so a range with more unknown headers than its calls per second is not begun. Where blocks are not
    /// proven, the whole range is asked for at once, and a range that the partner finds too wide is not split.
    pub(super) async fn partner_logs(
        &self,
        asking: Asking<'_>,
        chain: &Arc<CanonicalChain>,
        query: &LogsQuery<BlockRef>,
    ) -> Result<Fetched, Failure> {
        let (filter, blocks) = (&query.filter, query.blocks);
        let Asking { account, deadline, supplier, .. } = asking;
        let (from, to) = ends(blocks);
        let search =
            LogSearch { remote: self, account, chain, filter, from: from.number, deadline, supplier };
        let (result, verified) = if !self.proves_blocks() {
            match search.pass_on(blocks, self.limits.log_results_max).await? {
                PassedLogs::Logs { result, .. } => (result, Verification::None),
                PassedLogs::TooMany { to } => return Err(search.too_many(to)),
                PassedLogs::TooWide { .. } => return Err(Failure::Unavailable),
            }
        } else if search.proven_from(from, to) == from.number {
            let proven = search.proven(from.number, from.number, to).await;
            (proven.map_err(|failure| search.in_time(failure))?, Verification::Proven)
        } else {
            return Err(Failure::Unavailable);
        };
        Ok(Fetched { result, block: Some(to), verified, cache: CacheDecision::No, given_by: None })
    }

    /// How far logs are verified that nodes were asked for.
    fn pieces_verified(&self) -> Verification {
        if self.confirms_blocks() { self.by_quorum() } else { Verification::None }
    }
}

impl LogSearch<'_> {
    fn asking(&self) -> Asking<'_> {
        let Self { account, deadline, supplier, .. } = *self;
        Asking { account, caller: account, chain: self.chain, deadline, supplier }
    }

    /// The logs of a range, proven from a block of it on. What is below is believed as nodes say it.
    async fn proven(&self, from: u64, proven_from: u64, to: BlockRef) -> Result<Bytes, Failure> {
        let most = self.remote.limits.log_results_max;
        let found_memory = FoundMemory::new(self.remote.memory.of(self.account));
        let mut parts = Vec::new();
        if from < proven_from {
            let (_, result) = self.range(from, proven_from - 1).await?;
            let counted = move || LogsText {
                count: read_logs(&result).map_or(0, |logs| logs.len()) as u64,
                text: result.slice(1..result.len().saturating_sub(1).max(1)),
            };
            parts.push(
                self.remote.run_sized(self.account, usize::MAX, COPIED_AT_ONCE_BYTES_MAX, counted).await?,
            );
        }
        let results_left = most.saturating_sub(parts.iter().map(|part| part.count).sum());
        parts.extend(self.in_range(proven_from, to, results_left, &found_memory).await?);
        self.joined(parts).await
    }

    /// A search that is not over at its deadline took too long; before it, nobody could answer.
    fn in_time(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Unavailable if Instant::now() >= self.deadline => Failure::QueryTimeout,
            other => other,
        }
    }

    /// The logs of a range, from the cache and from nodes.
    async fn range(&self, from: u64, to: u64) -> Result<(Origin, Bytes), Failure> {
        let most = self.remote.limits.log_results_max;
        if !self.remote.cache.is_on() {
            return Ok((Origin::Node, self.uncached_range(from, to, most).await?));
        }
        let mut pieces = self.pieces(from, to).await?;
        let (mut at, mut count, mut origin) = (0, 0, Origin::Cache);
        while at < pieces.len() {
            let mut end = at + 1;
            if pieces[at].found.is_none() {
                while end < pieces.len() && pieces[end].found.is_none() {
                    end += 1;
                }
                origin = Origin::Node;
                let (filled, whole) = self.fill(pieces.drain(at..end).collect(), most - count).await?;
                pieces.splice(at..at, filled);
                if let Some(whole) = whole.filter(|_| end - at == pieces.len()) {
                    return Ok((origin, whole));
                }
            }
            for piece in &pieces[at..end] {
                count += piece.found.as_ref().map_or(0, |found| found.count);
                if count > most {
                    return Err(self.too_many(piece.from.checked_sub(1)));
                }
            }
            at = end;
        }
        let found: Vec<_> = pieces.into_iter().filter_map(|piece| piece.found).collect();
        let bytes = found.iter().map(|found| found.text.len()).sum();
        let joined = self
            .remote
            .run_sized(self.account, bytes, COPIED_AT_ONCE_BYTES_MAX, move || join(found.iter()))
            .await?;
        Ok((origin, joined))
    }

    /// The logs of a range of which nothing is cached.
    async fn uncached_range(&self, from: u64, to: u64, results_left: u64) -> Result<Bytes, Failure> {
        match <[Bytes; 1]>::try_from(self.fetch(from, to, results_left).await?.results) {
            Ok([whole]) => Ok(whole),
            Err(parts) => {
                let bytes = parts.iter().map(Bytes::len).sum();
                let cut_and_join = move || {
                    let mut piece = [Piece::without_key(from, to)];
                    parts.iter().for_each(|part| cut(part, &mut piece));
                    join(piece.iter().filter_map(|piece| piece.found.as_ref()))
                };
                self.remote.run_sized(self.account, bytes, COPIED_AT_ONCE_BYTES_MAX, cut_and_join).await
            }
        }
    }

    /// The pieces of a range, with the logs of those that are cached.
    async fn pieces(&self, from: u64, to: u64) -> Result<Vec<Piece>, Failure> {
        // Each piece is looked for under a key that holds the filter, which is hashed whole each time.
        let hashed_bytes = self.filter.heap_bytes() * piece::count(from, to);
        let (chain, filter) = (Arc::clone(self.chain), Arc::clone(self.filter));
        let (cache, pool) = (Arc::clone(&self.remote.cache), Arc::clone(&self.remote.pool));
        let find = move || {
            let mut pieces = piece::of(&chain, &filter, from, to);
            for piece in &mut pieces {
                piece.found = piece.key.as_ref().and_then(|key| {
                    let cached = cache.get_logs(key)?;
                    let stands = |given_by| pool.standing(given_by) == Standing::Good;
                    let is_good = cached.given_by.is_none_or(stands) && holds(&chain, &cached);
                    is_good.then_some(LogsText { text: cached.result, count: cached.count })
                });
            }
            pieces
        };
        self.remote.run_sized(self.account, hashed_bytes, COPIED_AT_ONCE_BYTES_MAX, find).await
    }

    /// Fetches what a run of pieces lacks. Gives the answer as it came, too, where it came as one.
    async fn fill(
        &self,
        mut pieces: Vec<Piece>,
        results_left: u64,
    ) -> Result<(Vec<Piece>, Option<Bytes>), Failure> {
        let (Some(from), Some(to)) =
            (pieces.first().map(|piece| piece.from), pieces.last().map(|piece| piece.to))
        else {
            return Ok((pieces, None));
        };
        let given_by = self.remote.pool.before_asking().given_by_anyone();
        let FetchedLogs { results, is_confirmed } = self.fetch(from, to, results_left).await?;
        let whole = if let [whole] = &results[..] { Some(whole.clone()) } else { None };
        // The filter is hashed whole for each piece that is cached.
        let bytes = results.iter().map(Bytes::len).sum::<usize>() + self.filter.heap_bytes() * pieces.len();
        let (chain, cache) = (Arc::clone(self.chain), Arc::clone(&self.remote.cache));
        let verified = self.remote.pieces_verified();
        let may_cache = self.remote.may_cache(verified);
        let cut_and_cache = move || {
            results.iter().for_each(|result| cut(result, &mut pieces));
            for piece in &mut pieces {
                let found = piece.found.get_or_insert_default();
                // The end of a range whose newest blocks a node may lack is not cached, unless it is a whole chunk.
                if let Some(key) = piece.key.take().filter(|_| may_cache && (is_confirmed || piece.is_chunk))
                {
                    cache
                        .insert(key, piece::cached_answer(found, piece.to, &chain, verified, Some(given_by)));
                }
            }
            pieces
        };
        Ok((
            self.remote.run_sized(self.account, bytes, COPIED_AT_ONCE_BYTES_MAX, cut_and_cache).await?,
            whole,
        ))
    }

    /// The logs of a range in as many answers as the nodes need for it, in order.
    async fn fetch(&self, from: u64, to: u64, mut results_left: u64) -> Result<FetchedLogs, Failure> {
        let mut fetched = FetchedLogs { results: Vec::new(), is_confirmed: true };
        // Ranges that are still to be asked, the lowest last. Parts are cut off one by one, because there may be millions.
        let mut open = vec![(from, to, self.remote.pool.log_range_max())];
        while let Some((from, last, most)) = open.pop() {
            let to = part_end(from, last, most);
            if to < last {
                open.push((to + 1, last, most));
            }
            let block = |number| BlockRef { number, hash: Default::default() };
            let blocks = LogBlocks::Range { from: block(from), to: block(to) };
            match self.try_ask(blocks, results_left).await? {
                PassedLogs::Logs { result, count, is_confirmed } => {
                    results_left = results_left.saturating_sub(count);
                    fetched.is_confirmed &= is_confirmed;
                    fetched.results.push(result);
                }
                PassedLogs::TooMany { to } => return Err(self.too_many(to.or(from.checked_sub(1)))),
                // One block cannot be split, so it is the number of its logs that the node minds.
                PassedLogs::TooWide { .. } if from == to => return Err(self.too_many(from.checked_sub(1))),
                PassedLogs::TooWide { most } => {
                    let half = (to - from).div_ceil(2);
                    open.push((from, to, most.unwrap_or(half).clamp(1, half)));
                }
            }
        }
        Ok(fetched)
    }

    /// The logs of one block, which cannot be split.
    async fn ask(&self, blocks: LogBlocks<BlockRef>, results_left: u64) -> Result<Bytes, Failure> {
        match self.try_ask(blocks, results_left).await? {
            PassedLogs::Logs { result, .. } => Ok(result),
            PassedLogs::TooMany { .. } | PassedLogs::TooWide { .. } => Err(self.too_many(None)),
        }
    }

    async fn try_ask(&self, blocks: LogBlocks<BlockRef>, results_left: u64) -> Result<PassedLogs, Failure> {
        if self.remote.confirms_blocks() {
            let call = encode::logs(self.filter, blocks).for_account(self.account);
            let confirmed = self.remote.confirm_logs(self.asking(), &call).await;
            return confirmed.map(|logs| within(logs, results_left)).map_err(|failure| self.in_time(failure));
        }
        self.pass_on(blocks, results_left).await
    }

    /// More than may be returned; `to` is how far the caller could go.
    fn too_many(&self, to: Option<u64>) -> Failure {
        Failure::TooManyResults {
            from: self.from,
            to: to.unwrap_or(self.from).max(self.from),
            most: self.remote.limits.log_results_max,
        }
    }
}

/// The lowest and the highest block that logs are asked of.
fn ends(blocks: LogBlocks<BlockRef>) -> (BlockRef, BlockRef) {
    match blocks {
        LogBlocks::One(block) => (block, block),
        LogBlocks::Range { from, to } => (from, to),
    }
}

/// Logs that a quorum gives, unless there are too many.
fn within(logs: ConfirmedLogs, results_left: u64) -> PassedLogs {
    let ConfirmedLogs::Found { result, count } = logs else { return PassedLogs::TooWide { most: None } };
    if count <= results_left {
        return PassedLogs::Logs { result, count, is_confirmed: true };
    }
    let first_too_many = usize::try_from(results_left)
        .ok()
        .and_then(|results_left| read_logs(&result)?.get(results_left).cloned());
    PassedLogs::TooMany { to: first_too_many.and_then(|log| log.block.number.checked_sub(1)) }
}

/// Where the first part of a range ends that has at most `most` blocks. Parts end where the next multiple begins, so that
/// the same limit gives the same parts.
fn part_end(from: u64, to: u64, most: u64) -> u64 {
    (from / most).saturating_add(1).saturating_mul(most).saturating_sub(1).clamp(from, to)
}

/// The block that a number stands for.
pub(super) fn canonical(chain: &CanonicalChain, number: u64) -> Option<BlockRef> {
    chain.by_number(number).map(block_ref)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_aligned_and_cover_the_range() {
        for (from, to, most, ends) in
            [(0, 9, u64::MAX, vec![9]), (3, 9, 4, vec![3, 7, 9]), (4, 7, 4, vec![7]), (5, 5, 1, vec![5])]
        {
            let next = |end: &u64| (*end < to).then(|| part_end(end + 1, to, most));
            let found: Vec<_> = std::iter::successors(Some(part_end(from, to, most)), next).collect();
            assert_eq!(found, ends);
        }
    }
}
