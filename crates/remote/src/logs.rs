//! Log queries.
//!
//! Where blocks are proven, logs come from proven receipts. Elsewhere nodes are asked: a node that searches fewer blocks at once
//! gets smaller ranges, and only what failed is asked again. The results are counted while they come in.

mod deep; // which old blocks may have logs
mod blooms; // a filter as blooms see it
mod proven; // logs from proven receipts
mod unverified; // logs that nothing proves
mod text; // parts of an answer, put together

use std::sync::Arc;

use bytes::Bytes;
use methods::{BlockRef, LogBlocks, LogFilterParams, LogsQuery};
use nodes::raw::read_logs;
use nodes::{PartnerQuota, Pool, TrustMark};

use super::blocks::Blocks;
use super::encode;
use super::fetched::{CacheDecision, Fetched};
use super::state::{ConfirmedLogs, State};
use super::workers::Workers;
use crate::call_context::CallContext;

use proven::FoundMemory;
use sources::{CurrentLimits, Failure, Origin, Verification};
use text::{LogsList, LogsText};
use unverified::UnverifiedLogs;

/// The logs of the nodes' chain.
pub(super) struct Logs {
    pool: Arc<Pool>,
    workers: Arc<Workers>,
    blocks: Arc<Blocks>,
    state: Arc<State>,
    limits: CurrentLimits,
}

/// A log query on its way.
struct LogSearch<'a> {
    logs: &'a Logs,
    context: CallContext<'a>,
    filter: &'a Arc<LogFilterParams>,
    /// Where the caller's range begins, for the error that says how much would fit.
    from: u64,
}

/// The logs of a range in the lists that they came in, in order.
struct FetchedLogs {
    lists: Vec<LogsList>,
    /// Whether no other node might have known better.
    is_confirmed: bool,
}

impl Logs {
    pub(super) fn new(blocks: Arc<Blocks>, state: Arc<State>, limits: impl Into<CurrentLimits>) -> Self {
        let (pool, workers) = (Arc::clone(&blocks.pool), Arc::clone(&blocks.workers));
        Self { pool, workers, blocks, state, limits: limits.into() }
    }

    /// The logs of a range, and where they come from. Each unknown header, and each block that may have such logs, is a call out of
    /// the quota of a partner, so a range with more unknown headers than its calls per second is not begun, and one that it finds
    /// too wide is not split.
    pub(super) async fn find(
        &self,
        context: CallContext<'_>,
        query: &LogsQuery<BlockRef>,
    ) -> Result<(Origin, Fetched), Failure> {
        let (filter, blocks) = (&query.filter, query.blocks);
        let (from, to) = ends(blocks);
        let search = LogSearch { logs: self, context, filter, from: from.number };
        let proven_from = search.proven_from(from, to);
        if self.blocks.are_proven() && search.partner_quota().is_some() && proven_from > from.number {
            return Err(Failure::Unavailable);
        }
        let trust = self.pool.trust_mark();
        if self.blocks.are_proven() && proven_from <= to.number {
            let proven = search.proven(from.number, proven_from, to).await;
            let (result, is_confirmed) = proven.map_err(|failure| search.in_time(failure))?;
            let fetched = match proven_from == from.number {
                true => Fetched::proven(result, Some(to)),
                false => unproven_logs(result, to, Verification::None, is_confirmed, trust),
            };
            return Ok((self.blocks.stored.origin_of([from, to]), fetched));
        }
        let FetchedLogs { mut lists, is_confirmed } = match blocks {
            LogBlocks::One(_) => search.one_block(blocks).await?,
            LogBlocks::Range { .. } => search.range(from.number, to.number).await?,
        };
        let result = match lists.len() {
            1 => lists.remove(0).result,
            _ => search.joined(lists.into_iter().map(LogsText::from).collect()).await?,
        };
        let verified = if search.is_confirmed() { self.blocks.by_quorum() } else { Verification::None };
        Ok((Origin::Node, unproven_logs(result, to, verified, is_confirmed, trust)))
    }
}

impl LogSearch<'_> {
    /// How much may be asked, if a partner is.
    fn partner_quota(&self) -> Option<PartnerQuota> {
        self.context.partner_quota(&self.logs.pool)
    }

    /// Whether a quorum of the nodes must say the same.
    fn is_confirmed(&self) -> bool {
        self.logs.state.confirms_blocks() && self.context.only.is_none()
    }

    /// The logs of a range, proven from a block of it on. What is below is believed as nodes say it; the second value is whether no
    /// other node might have known better.
    async fn proven(&self, from: u64, proven_from: u64, to: BlockRef) -> Result<(Bytes, bool), Failure> {
        let most = self.logs.limits.now().log_results_max;
        let found_memory = FoundMemory::new(self.logs.workers.memory.of(self.context.account));
        let (mut parts, mut is_confirmed) = (Vec::new(), true);
        if from < proven_from {
            let below = self.range(from, proven_from - 1).await?;
            is_confirmed = below.is_confirmed;
            parts.extend(below.lists.into_iter().map(LogsText::from));
        }
        let results_left = most.saturating_sub(parts.iter().map(|part| part.count).sum());
        parts.extend(self.in_range(proven_from, to, results_left, &found_memory).await?);
        Ok((self.joined(parts).await?, is_confirmed))
    }

    /// A search that is not over at its deadline took too long; before it, nobody could answer.
    fn in_time(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Unavailable if self.context.is_over() => Failure::QueryTimeout,
            other => other,
        }
    }

    /// The logs of a range as nodes say them, in as many lists as they need for it, in order.
    async fn range(&self, from: u64, to: u64) -> Result<FetchedLogs, Failure> {
        let mut results_left = self.logs.limits.now().log_results_max;
        let mut fetched = FetchedLogs { lists: Vec::new(), is_confirmed: true };
        // Ranges that are still to be asked, the lowest last. Parts are cut off one by one, because there may be millions.
        let is_of_nodes = self.context.only.is_none();
        let widest = if is_of_nodes { self.logs.pool.log_range_max() } else { u64::MAX };
        let mut open = vec![(from, to, widest)];
        while let Some((from, last, most)) = open.pop() {
            let to = part_end(from, last, most);
            if to < last {
                open.push((to + 1, last, most));
            }
            let block = |number| BlockRef { number, hash: Default::default() };
            let blocks = LogBlocks::Range { from: block(from), to: block(to) };
            match self.try_ask(blocks, results_left).await? {
                UnverifiedLogs::Logs { list, is_confirmed } => {
                    results_left = results_left.saturating_sub(list.count);
                    fetched.is_confirmed &= is_confirmed;
                    fetched.lists.push(list);
                }
                UnverifiedLogs::TooMany { to } => return Err(self.too_many(to.or(from.checked_sub(1)))),
                // One block cannot be split, so it is the number of its logs that the node minds.
                UnverifiedLogs::TooWide { .. } if from == to => {
                    return Err(self.too_many(from.checked_sub(1)));
                }
                UnverifiedLogs::TooWide { most } => {
                    let half = (to - from).div_ceil(2);
                    open.push((from, to, most.unwrap_or(half).clamp(1, half)));
                }
            }
        }
        Ok(fetched)
    }

    /// The logs of one block, which cannot be split.
    async fn one_block(&self, blocks: LogBlocks<BlockRef>) -> Result<FetchedLogs, Failure> {
        match self.try_ask(blocks, self.logs.limits.now().log_results_max).await? {
            UnverifiedLogs::Logs { list, is_confirmed } => {
                Ok(FetchedLogs { lists: vec![list], is_confirmed })
            }
            UnverifiedLogs::TooMany { .. } | UnverifiedLogs::TooWide { .. } => Err(self.too_many(None)),
        }
    }

    async fn try_ask(
        &self,
        blocks: LogBlocks<BlockRef>,
        results_left: u64,
    ) -> Result<UnverifiedLogs, Failure> {
        if self.is_confirmed() {
            let call = encode::logs(self.filter, blocks).for_account(self.context.account);
            let confirmed = self.logs.state.confirm_logs(self.context, &call).await;
            return confirmed.map(|logs| within(logs, results_left)).map_err(|failure| self.in_time(failure));
        }
        match self.forward_unverified(blocks, results_left).await? {
            // A range in many pieces would cost as many calls.
            UnverifiedLogs::TooWide { .. } if self.partner_quota().is_some() => Err(Failure::Unavailable),
            logs => Ok(logs),
        }
    }

    /// More than may be returned; `to` is how far the caller could go.
    fn too_many(&self, to: Option<u64>) -> Failure {
        Failure::TooManyResults {
            from: self.from,
            to: to.unwrap_or(self.from).max(self.from),
            most: self.logs.limits.now().log_results_max,
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

/// Logs of a range that nothing proves. The end of a range whose newest blocks a node may lack is not cached.
fn unproven_logs(
    result: Bytes,
    to: BlockRef,
    verified: Verification,
    is_confirmed: bool,
    trust: TrustMark,
) -> Fetched {
    let cache = match is_confirmed || verified > Verification::None {
        true => CacheDecision::On(Some(to)),
        false => CacheDecision::No,
    };
    Fetched { result, block: Some(to), verified, cache, trust: Some(trust) }
}

/// Logs that a quorum gives, unless there are too many.
fn within(logs: ConfirmedLogs, results_left: u64) -> UnverifiedLogs {
    let ConfirmedLogs::Found { result, count } = logs else { return UnverifiedLogs::TooWide { most: None } };
    if count <= results_left {
        return UnverifiedLogs::Logs { list: LogsList { result, count }, is_confirmed: true };
    }
    let first_too_many = usize::try_from(results_left)
        .ok()
        .and_then(|results_left| read_logs(&result)?.get(results_left).cloned());
    UnverifiedLogs::TooMany { to: first_too_many.and_then(|log| log.block.number.checked_sub(1)) }
}

/// Where the first part of a range ends that has at most `most` blocks. Parts end where the next multiple begins, so that
/// the same limit gives the same parts.
fn part_end(from: u64, to: u64, most: u64) -> u64 {
    (from / most).saturating_add(1).saturating_mul(most).saturating_sub(1).clamp(from, to)
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
