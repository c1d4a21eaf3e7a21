//! Proven headers below the window. Each is the parent of the one above it, from a block that a quorum confirms.

use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;

use alloy_primitives::map::B256Map;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use methods::BlockRef;
use nodes::proven::ProvenHeader;
use resources::AccountId;
use sources::Failure;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::Blocks;
use crate::call_context::CallContext;
use crate::{encode, node_failures};

/// Headers that are asked for at the same time. Those that wait for one node travel together.
const HEADERS_AT_ONCE: usize = 64;

type Claimed<'a> = Pin<Box<dyn Future<Output = Option<ProvenHeader>> + Send + 'a>>;

impl Blocks {
    /// The headers from `top` down to the block of the number `lowest`.
    pub(crate) async fn headers_down(
        &self,
        context: CallContext<'_>,
        top: BlockRef,
        lowest: u64,
    ) -> Result<Vec<Arc<ProvenHeader>>, Failure> {
        let mut headers = Vec::new();
        self.extend_headers(&mut headers, context, top, lowest).await?;
        Ok(headers)
    }

    /// Adds the headers from `top` down to the block of the number `lowest`. After a failure, those above the one that is
    /// missing are there.
    pub(crate) async fn extend_headers(
        &self,
        headers: &mut Vec<Arc<ProvenHeader>>,
        context: CallContext<'_>,
        top: BlockRef,
        lowest: u64,
    ) -> Result<(), Failure> {
        let mut next = top;
        let mut claimed: Option<B256Map<Arc<ProvenHeader>>> = None;
        loop {
            // Headers that were fetched in time are used, so that they are cached or stored, and the next query gets further.
            let is_fetched = claimed.as_ref().is_some_and(|claimed| claimed.contains_key(&next.hash));
            if context.is_over() && !is_fetched {
                return Err(Failure::Unavailable);
            }
            let known = self.known_header(context.account, next).await?;
            let is_new = known.is_none();
            // All that are missing are asked for by number at once. Those that are not what the header above names are asked
            // for by hash, one after another.
            if is_new && claimed.is_none() {
                claimed = Some(self.claim_headers(context, lowest..=next.number).await);
            }
            let claimed = claimed.as_ref().and_then(|claimed| claimed.get(&next.hash).cloned());
            let header = match known.or(claimed) {
                Some(header) => header,
                None => self.header(context, next).await?,
            };
            if is_new {
                self.cached.insert_header(Arc::clone(&header));
            }
            headers.push(Arc::clone(&header));
            let Some(below) = next.number.checked_sub(1).filter(|below| *below >= lowest) else { break };
            next = BlockRef { number: below, hash: header.parent };
            // Headers that are at hand are found without waiting for anybody, and a range may have many.
            yield_now().await;
        }
        Ok(())
    }

    /// The header of a block that was proven before.
    async fn known_header(
        &self,
        account: AccountId,
        block: BlockRef,
    ) -> Result<Option<Arc<ProvenHeader>>, Failure> {
        if let Some(header) = self.cached.header(block.hash) {
            return Ok(Some(header));
        }
        let body =
            self.cached.body(block.hash).or_else(|| self.stored.recent(block).map(|recent| recent.body));
        if let Some(body) = body {
            return Ok(Some(Arc::new(ProvenHeader::of(body.hash(), body.header()))));
        }
        self.stored.header(account, block).await
    }

    /// The headers that nodes deliver for these numbers until the deadline, by hash.
    async fn claim_headers(
        &self,
        context: CallContext<'_>,
        numbers: RangeInclusive<u64>,
    ) -> B256Map<Arc<ProvenHeader>> {
        let mut claimed = B256Map::default();
        let mut numbers = numbers.rev();
        let mut claims: FuturesUnordered<Claimed<'_>> = FuturesUnordered::new();
        loop {
            let room = if Instant::now() < context.deadline { HEADERS_AT_ONCE - claims.len() } else { 0 };
            for number in numbers.by_ref().take(room) {
                claims.push(Box::pin(self.claimed_header(context, number)));
            }
            match claims.next().await {
                Some(Some(header)) => _ = claimed.insert(header.id.hash, Arc::new(header)),
                Some(None) => {}
                None => return claimed,
            }
        }
    }

    async fn claimed_header(&self, context: CallContext<'_>, number: u64) -> Option<ProvenHeader> {
        let prove = |delivery: &Bytes| {
            let delivery = delivery.clone();
            self.workers.proving(context.account, delivery.len(), move || {
                ProvenHeader::read_of_number(&delivery, number)
            })
        };
        let call = encode::header_of_number(number).for_account(context.caller);
        self.pool.fetch(context.only, &call, &prove, context.deadline).await.ok()
    }

    async fn header(&self, context: CallContext<'_>, block: BlockRef) -> Result<Arc<ProvenHeader>, Failure> {
        let prove = |delivery: &Bytes| {
            let delivery = delivery.clone();
            self.workers
                .proving(context.account, delivery.len(), move || ProvenHeader::prove(&delivery, block.hash))
        };
        let call = encode::header_of_hash(&block).for_account(context.caller);
        let fetched = self.pool.fetch(context.only, &call, &prove, context.deadline).await;
        fetched.map(Arc::new).map_err(node_failures::of_fetch)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;
    use crate::test_blocks::{TestBlocks, chain_of_head, header, stored};

    /// Whole stored blocks were decoded on the thread of a connection, up to 1,024 in a row: a fee history of stored blocks
    /// kept all connections of a core waiting.
    #[tokio::test]
    async fn large_stored_blocks_are_decoded_in_the_thread_pool() {
        let test = TestBlocks::new(1);
        let (lower, upper) = stored(&test.blocks, 64 << 10);
        let (chain, account) = (chain_of_head(9), AccountId::unique());
        let deadline = Instant::now() + Duration::from_secs(3_600);
        let context = CallContext { account, caller: account, chain: &chain, deadline, only: None };
        // The only thread that the account may use is busy.
        let (begun, is_begun) = mpsc::channel();
        let (release, held) = mpsc::channel::<()>();
        let job = move || {
            begun.send(()).unwrap();
            let _released = held.recv();
        };
        test.blocks.workers.threads.submit(account, job).unwrap();
        is_begun.recv().unwrap();
        let mut fetching = pin!(test.blocks.headers_down(context, upper, lower.number));
        assert!((&mut fetching).now_or_never().is_none());
        assert_eq!(test.blocks.workers.threads.waiting(), 1);
        drop(release);
        let headers = fetching.await.unwrap();
        let hashes: Vec<_> = headers.iter().map(|header| header.id.hash).collect();
        assert_eq!(hashes, [upper.hash, lower.hash]);
    }

    /// A caller that had no time left was served to the end of its range.
    #[tokio::test]
    async fn headers_at_hand_are_not_looked_up_after_the_deadline() {
        let test = TestBlocks::new(1);
        let (lower, upper) = stored(&test.blocks, 0);
        let chain = chain_of_head(9);
        let account = AccountId::unique();
        let context =
            CallContext { account, caller: account, chain: &chain, deadline: Instant::now(), only: None };
        assert_eq!(test.blocks.headers_down(context, upper, lower.number).await, Err(Failure::Unavailable));
    }

    /// A range of headers in memory was walked without letting other connections of the core run.
    #[tokio::test]
    async fn other_connections_run_between_two_headers() {
        let test = TestBlocks::new(1);
        let lower = header(1, Default::default());
        let upper = header(2, lower.hash_slow());
        for header in [&lower, &upper] {
            test.blocks.cached.insert_header(Arc::new(ProvenHeader::of(header.hash_slow(), header)));
        }
        let chain = chain_of_head(9);
        let deadline = Instant::now() + Duration::from_secs(3_600);
        let account = AccountId::unique();
        let context = CallContext { account, caller: account, chain: &chain, deadline, only: None };
        let top = BlockRef { number: 2, hash: upper.hash_slow() };
        let mut fetching = pin!(test.blocks.headers_down(context, top, 1));
        assert!((&mut fetching).now_or_never().is_none());
        assert_eq!(fetching.await.unwrap().len(), 2);
    }
}
