//! Which blocks below the window may have logs that match, as the blooms of their headers say.
//!
//! Headers are read from the file of stored blocks. What is not there is fetched downwards, proven by the hashes of parents, and
//! put there, so that the next query gets further.

use std::ops::ControlFlow;
use std::sync::Arc;

use archive::StoredHeader;
use methods::{BlockRef, LogFilterParams};
use nodes::proven::ProvenHeader;
use sources::Failure;
use tokio::time::Instant;

use super::LogSearch;
use super::blooms::FilterBlooms;
use crate::block_ids::block_ref;
use crate::blocks::StoredChain;
use crate::call_key::CallKey;

/// Stored headers that are looked at in one job of the pool: a few milliseconds.
const SCANNED_AT_ONCE_MAX: u64 = 16_384;

/// Headers that are fetched before they are stored: a second or two.
const FETCHED_AT_ONCE_MAX: u64 = 1_024;

/// Blocks that may have logs, of one query, at 40 bytes each. No query could look into so many before its deadline.
const MAYBE_BLOCKS_MAX: usize = 250_000;

/// Blocks that may have logs, downwards, and the next block that was not looked at.
#[derive(Default)]
struct Scanned {
    found: Vec<BlockRef>,
    next: Option<BlockRef>,
}

impl LogSearch<'_> {
    /// Blocks of a range below the window that may have logs that match, upwards.
    pub(super) async fn in_deep(&self, from: u64, to: BlockRef) -> Result<Vec<BlockRef>, Failure> {
        let lowest = self.context.chain.lowest();
        // The lowest block of the window names the one below it.
        let below_window = self.context.chain.block(lowest).map(|block| block.parent);
        let top = match (lowest.checked_sub(1), below_window) {
            _ if to.number < lowest => to,
            (Some(number), Some(hash)) if from < lowest => BlockRef { number, hash },
            _ => return Ok(Vec::new()),
        };
        let mut found = Vec::new();
        let mut next = Some(top);
        while let Some(block) = next {
            if let Some(failure) = self.reason_to_end(found.len(), from, block.number) {
                return Err(failure);
            }
            let mut scanned = self.scan_stored(block, from).await?;
            if scanned.next == Some(block) {
                scanned = self
                    .scan_fetched(block, from)
                    .await
                    .map_err(|failure| self.too_wide(failure, from, block.number))?;
            }
            found.append(&mut scanned.found);
            next = scanned.next;
        }
        found.reverse();
        Ok(found)
    }

    /// Why a search ends that has found so many blocks which may have logs, before it has looked at those up to `to`. Where
    /// there are too many, the same query would find them again.
    fn reason_to_end(&self, found: usize, from: u64, to: u64) -> Option<Failure> {
        if found > MAYBE_BLOCKS_MAX {
            return Some(Failure::QueryTimeout);
        }
        let is_over = Instant::now() >= self.context.deadline;
        is_over.then(|| self.too_wide(Failure::QueryTimeout, from, to))
    }

    /// A search that is not over at its deadline says how far the headers are there: the same query gets further.
    fn too_wide(&self, failure: Failure, from: u64, to: u64) -> Failure {
        match self.in_time(failure) {
            Failure::QueryTimeout if self.logs.blocks.stored_chain().is_some() => {
                Failure::NotIndexed { from, to }
            }
            other => other,
        }
    }

    /// Looks at stored headers.
    async fn scan_stored(&self, top: BlockRef, from: u64) -> Result<Scanned, Failure> {
        let Some(stored) = self.logs.blocks.stored_chain().cloned() else {
            return Ok(Scanned { next: Some(top), ..Scanned::default() });
        };
        // One look tells whether there is anything to scan in the pool.
        if stored.read(top, |snapshot| snapshot.header(top.number)).is_none() {
            return Ok(Scanned { next: Some(top), ..Scanned::default() });
        }
        let filter = Arc::clone(self.filter);
        let scan = move || scan(&stored, &filter, top, from);
        self.logs.workers.run_sized(self.context.account, usize::MAX, 0, scan).await
    }

    /// Fetches headers, stores them and looks at them. Chunks end at multiples of their length, so that queries which overlap
    /// share them while they are fetched.
    async fn scan_fetched(&self, top: BlockRef, from: u64) -> Result<Scanned, Failure> {
        let lowest = from.max(top.number - top.number % FETCHED_AT_ONCE_MAX);
        let key = (CallKey::of_block(self.context, top, top.hash), lowest);
        let fetch = || self.fetch_headers(top, lowest);
        let headers = self.logs.blocks.cached.header_fetches.share(key, self.context.deadline, fetch).await?;
        let mut blooms = FilterBlooms::of(self.filter);
        let may_have_some = headers.iter().filter(|header| blooms.may_match(&header.logs_bloom));
        let found = may_have_some.map(|header| block_ref(header.id)).collect();
        let next = headers.last().and_then(|last| {
            let number = last.id.number.checked_sub(1).filter(|below| *below >= from)?;
            Some(BlockRef { number, hash: last.parent })
        });
        Ok(Scanned { found, next })
    }

    /// Fetches headers and stores those that came, even if some did not.
    async fn fetch_headers(&self, top: BlockRef, lowest: u64) -> Result<Arc<[Arc<ProvenHeader>]>, Failure> {
        let mut headers = Vec::new();
        let fetched = self.logs.blocks.extend_headers(&mut headers, self.context, top, lowest).await;
        if let Some(stored) = self.logs.blocks.stored_chain().cloned() {
            let rows: Vec<_> = headers.iter().map(|header| row(header)).collect();
            // A disk that cannot be written costs time when it is asked for again, and nothing else.
            let write = move || stored.put_headers(&rows);
            let _not_stored = self.logs.workers.run_sized(self.context.account, usize::MAX, 0, write).await;
        }
        fetched?;
        Ok(headers.into())
    }
}

fn scan(stored: &StoredChain, filter: &LogFilterParams, top: BlockRef, from: u64) -> Scanned {
    let mut scanned = Scanned::default();
    let mut blooms = FilterBlooms::of(filter);
    let lowest = from.max((top.number + 1).saturating_sub(SCANNED_AT_ONCE_MAX));
    let mut last = None;
    let look = |header: &StoredHeader| {
        if blooms.may_match(&header.logs_bloom) {
            scanned.found.push(BlockRef { number: header.number, hash: header.hash });
        }
        last = Some((header.number, header.parent));
        ControlFlow::Continue(())
    };
    if let Err(cause) = stored.snapshot().headers_down((top.number, top.hash), lowest, look) {
        stored.read_failed(&cause);
    }
    scanned.next = match last {
        Some((number, parent)) => number
            .checked_sub(1)
            .filter(|below| *below >= from)
            .map(|number| BlockRef { number, hash: parent }),
        None => Some(top),
    };
    scanned
}

fn row(header: &ProvenHeader) -> StoredHeader {
    StoredHeader {
        number: header.id.number,
        hash: header.id.hash,
        parent: header.parent,
        logs_bloom: header.logs_bloom,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use futures_util::FutureExt;
    use nodes::CanonicalChain;
    use resources::AccountId;
    use sources::AnswerLimits;
    use tokio::sync::oneshot;

    use super::*;
    use crate::call_context::CallContext;
    use crate::logs::Logs;
    use crate::test_blocks::{TestBlocks, TestState, chain_of_head, header};

    fn logs(test: &TestState) -> Logs {
        Logs::new(Arc::clone(&test.state.blocks), Arc::clone(&test.state), AnswerLimits::default())
    }

    fn search<'a>(
        logs: &'a Logs,
        chain: &'a CanonicalChain,
        filter: &'a Arc<LogFilterParams>,
    ) -> LogSearch<'a> {
        let deadline = Instant::now() + Duration::from_secs(3_600);
        let account = AccountId::unique();
        let context = CallContext { account, caller: account, chain, deadline, only: None };
        LogSearch { logs, context, filter, from: 0 }
    }

    /// Each query fetched the headers below the window by itself, however many others were fetching the same ones.
    #[tokio::test]
    async fn headers_that_are_being_fetched_are_not_fetched_again() {
        let test = TestState::new(TestBlocks::new(1));
        let (logs, chain, filter) = (logs(&test), chain_of_head(9), Arc::default());
        let search = search(&logs, &chain, &filter);
        let lower = header(0, Default::default());
        let upper = header(1, lower.hash_slow());
        let proven =
            |header: &alloy_consensus::Header| Arc::new(ProvenHeader::of(header.hash_slow(), header));
        let top = block_ref(proven(&upper).id);
        let (send, receive) = oneshot::channel();
        let mut receive = Some(receive);
        let key = (CallKey::of_block(search.context, top, top.hash), 0);
        let flights = &logs.blocks.cached.header_fetches;
        let mut first = pin!(flights.share(key, search.context.deadline, || {
            let receive = receive.take();
            async move { receive.unwrap().await.unwrap() }
        }));
        assert!((&mut first).now_or_never().is_none());
        let mut second = pin!(search.scan_fetched(top, 0));
        assert!((&mut second).now_or_never().is_none());
        send.send(Ok([proven(&upper), proven(&lower)].into())).ok().unwrap();
        assert!(first.await.is_ok());
        assert_eq!(second.await.unwrap().next, None);
        assert_eq!(flights.joined(), 1);
    }

    /// A query with too many blocks that may have logs was told to be repeated, which never helped.
    #[tokio::test]
    async fn only_a_query_that_gets_further_is_to_be_repeated() {
        let test = TestState::new(TestBlocks::new(1));
        let (logs, chain, filter) = (logs(&test), chain_of_head(9), Arc::default());
        let search = search(&logs, &chain, &filter);
        let ended = |search: &LogSearch<'_>, found| search.reason_to_end(found, 3, 7);
        assert_eq!(ended(&search, MAYBE_BLOCKS_MAX), None);
        assert_eq!(ended(&search, MAYBE_BLOCKS_MAX + 1), Some(Failure::QueryTimeout));
        let context = CallContext { deadline: Instant::now(), ..search.context };
        let late = LogSearch { context, ..search };
        assert_eq!(ended(&late, 0), Some(Failure::NotIndexed { from: 3, to: 7 }));
        assert_eq!(ended(&late, MAYBE_BLOCKS_MAX + 1), Some(Failure::QueryTimeout));
    }
}
