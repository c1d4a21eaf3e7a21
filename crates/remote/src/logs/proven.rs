//! Logs from proven receipts. The bloom of a proven header says that a block has no such logs, or that it may have some; then
//! its receipts decide. A node cannot leave a log out, change one or add one.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use alloy_primitives::B256;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use methods::{BlockRef, LogFilterParams};
use nodes::proven::{ProvenBody, ProvenReceipts};
use parking_lot::Mutex;
use resources::{AccountMemory, MemoryCharge, OverBudget};
use sources::{Failure, Json, LogWriter};
use tokio::task::yield_now;

use super::LogSearch;
use super::blooms::FilterBlooms;
use super::text::{LogsText, join};
use crate::block_ids::block_ref;
use crate::mined::each_log;
use crate::workers::COPIED_AT_ONCE_BYTES_MAX;

/// Blocks whose receipts are fetched at the same time.
const BLOCKS_AT_ONCE: usize = 8;

/// Blocks below the window whose headers are fetched for one query where none are stored: 30 MB of a busy chain. What is wider
/// is left to the nodes.
const DEEP_BLOCKS_MAX: u64 = 2_048;

/// Logs of a block that are searched at once: some 100 µs.
const SEARCHED_AT_ONCE_MAX: usize = 512;

/// Comparisons of a log with a value of the filter that are made at once: some 100 µs, too.
const COMPARED_AT_ONCE_MAX: usize = 8 * SEARCHED_AT_ONCE_MAX;

type Searching<'a> = Pin<Box<dyn Future<Output = Result<LogsText, Failure>> + Send + 'a>>;

impl LogSearch<'_> {
    /// The lowest block of a range from which on its logs are proven.
    pub(super) fn proven_from(&self, from: BlockRef, to: BlockRef) -> u64 {
        let lowest = self.context.chain.lowest();
        let deep_blocks = to.number.min(lowest).saturating_sub(from.number);
        let is_provable = match self.partner_quota() {
            None => deep_blocks < DEEP_BLOCKS_MAX || self.logs.blocks.stored_chain().is_some(),
            Some(quota) => deep_blocks < DEEP_BLOCKS_MAX.min(quota.calls_per_second),
        };
        match is_provable {
            true => from.number,
            false => lowest,
        }
    }

    /// The logs of a range, in parts.
    pub(super) async fn in_range(
        &self,
        from: u64,
        to: BlockRef,
        results_left: u64,
        found_memory: &FoundMemory<'_>,
    ) -> Result<Vec<LogsText>, Failure> {
        if from == to.number {
            return self.in_blocks(vec![to], results_left, found_memory).await;
        }
        let mut blocks = self.in_deep(from, to).await?;
        let mut blooms = FilterBlooms::of(self.filter);
        let seen = (from.max(self.context.chain.lowest())..=to.number)
            .filter_map(|number| self.context.chain.block(number));
        blocks.extend(
            seen.filter(|block| blooms.may_match(&block.logs_bloom)).map(|block| block_ref(block.id)),
        );
        self.in_blocks(blocks, results_left, found_memory).await
    }

    async fn in_blocks(
        &self,
        blocks: Vec<BlockRef>,
        results_left: u64,
        found_memory: &FoundMemory<'_>,
    ) -> Result<Vec<LogsText>, Failure> {
        let mut blocks = blocks.into_iter();
        let mut searches = FuturesOrdered::new();
        let mut numbers = VecDeque::new();
        let (mut all, mut count) = (Vec::new(), 0);
        loop {
            for block in blocks.by_ref().take(BLOCKS_AT_ONCE - searches.len()) {
                numbers.push_back(block.number);
                searches.push_back(Box::pin(self.block_logs(block, found_memory)) as Searching<'_>);
            }
            let Some(found) = searches.next().await else { break };
            let (found, number) = (found?, numbers.pop_front());
            count += found.count;
            if count > results_left {
                return Err(self.too_many(number.and_then(|number| number.checked_sub(1))));
            }
            all.push(found);
            // Blocks that are at hand are searched without waiting for anybody, and a range may have many.
            yield_now().await;
        }
        Ok(all)
    }

    /// Puts parts of an answer together.
    pub(super) async fn joined(&self, parts: Vec<LogsText>) -> Result<Bytes, Failure> {
        let bytes = parts.iter().map(|part| part.text.len()).sum();
        self.logs
            .workers
            .run_sized(self.context.account, bytes, COPIED_AT_ONCE_BYTES_MAX, move || join(&parts))
            .await
    }

    async fn block_logs(&self, block: BlockRef, found_memory: &FoundMemory<'_>) -> Result<LogsText, Failure> {
        let context = self.context;
        let body = self.logs.blocks.body(context, block).await?;
        if !FilterBlooms::of(self.filter).may_match(&body.header().logs_bloom) {
            return Ok(LogsText::default());
        }
        let receipts = self.logs.blocks.receipts(context, &body).await?;
        let logs = receipts.log_count();
        let is_short =
            logs <= SEARCHED_AT_ONCE_MAX && logs * self.filter.value_count() <= COMPARED_AT_ONCE_MAX;
        let filter = Arc::clone(self.filter);
        // The block may be in no cache any more, and then nobody else accounts for it.
        let mut charge = MemoryCharge::default();
        self.logs
            .workers
            .memory
            .of(self.context.account)
            .grow(&mut charge, body.bytes() + receipts.bytes())?;
        let search = move || (matching(&body, &receipts, &filter), charge);
        let (found, block_charge) = match is_short {
            true => search(),
            false => self.logs.workers.threads.run(self.context.account, search).await?,
        };
        found_memory.add(found.text.len())?;
        drop(block_charge);
        Ok(found)
    }
}

/// The memory of the logs that a search has found so far.
///
/// Each block's logs are charged as soon as they are found. Charging them later, in the order of the answer, would leave those
/// of up to seven blocks uncharged while the first block is awaited.
pub(super) struct FoundMemory<'a> {
    memory: AccountMemory<'a>,
    found: Mutex<FoundBytes>,
}

#[derive(Default)]
struct FoundBytes {
    bytes: usize,
    charge: MemoryCharge,
}

impl<'a> FoundMemory<'a> {
    pub(super) fn new(memory: AccountMemory<'a>) -> Self {
        Self { memory, found: Mutex::default() }
    }

    /// Charges the account for more logs: twice, because they are copied into one answer at the end.
    fn add(&self, bytes: usize) -> Result<(), OverBudget> {
        let found = &mut *self.found.lock();
        found.bytes += bytes;
        self.memory.grow(&mut found.charge, 2 * found.bytes)
    }
}

/// The logs of a block that match, with commas between.
fn matching(body: &ProvenBody, receipts: &ProvenReceipts, filter: &LogFilterParams) -> LogsText {
    let (mut text, mut count, mut writer) = (Vec::new(), 0, LogWriter::default());
    for index in 0..receipts.len() {
        each_log(body, receipts, index, |log| {
            if is_match(filter, log.address, log.topics) {
                if count > 0 {
                    text.push(b',');
                }
                count += 1;
                writer.write(&log, &mut Json(&mut text));
            }
        });
    }
    // Growth by doubling leaves room that nobody needs.
    text.shrink_to_fit();
    LogsText { text: text.into(), count }
}

fn is_match(filter: &LogFilterParams, address: &[u8; 20], topics: &[B256]) -> bool {
    let is_of_address = filter.addresses.is_empty() || filter.addresses.iter().any(|any| any.0 == *address);
    is_of_address
        && filter.topics.len() <= topics.len()
        && filter.topics.iter().zip(topics).all(|(any, topic)| any.is_empty() || any.contains(topic))
}
