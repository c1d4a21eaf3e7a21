//! Proven headers below the window. Each is the parent of the one above it, from a block that a quorum confirms.

use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;

use alloy_primitives::map::B256Map;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use nodes::proven::ProvenHeader;
use tokio::time::Instant;

use super::blocks::not_fetched;
use super::{Remote, encode};
use crate::answer::Failure;
use crate::callers::AccountId;
use crate::resolve::BlockRef;

/// Headers that are asked for at the same time. Those that wait for one node travel together.
const HEADERS_AT_ONCE: usize = 64;

type Claimed<'a> = Pin<Box<dyn Future<Output = Option<ProvenHeader>> + Send + 'a>>;

impl Remote {
    /// The headers from `top` down to the block of the number `lowest`.
    pub(super) async fn headers_down(
        &self,
        account: AccountId,
        top: BlockRef,
        lowest: u64,
        deadline: Instant,
    ) -> Result<Vec<Arc<ProvenHeader>>, Failure> {
        let mut headers = Vec::new();
        let mut next = top;
        let mut claimed: Option<B256Map<Arc<ProvenHeader>>> = None;
        loop {
            let known = self.blocks.header(next.hash);
            let is_new = known.is_none();
            // All that are missing are asked for by number at once. Those that are not what the header above names are asked
            // for by hash, one after another.
            if is_new && claimed.is_none() {
                claimed = Some(self.claim_headers(account, lowest..=next.number, deadline).await);
            }
            let claimed = claimed.as_ref().and_then(|claimed| claimed.get(&next.hash).cloned());
            let header = match known.or(claimed) {
                Some(header) => header,
                None => self.header(account, next, deadline).await?,
            };
            // What is kept on disk needs no place in memory.
            if is_new && self.kept_chain().is_none() {
                self.blocks.keep_header(Arc::clone(&header));
            }
            headers.push(Arc::clone(&header));
            let Some(below) = next.number.checked_sub(1).filter(|below| *below >= lowest) else { break };
            next = BlockRef { number: below, hash: header.parent };
        }
        Ok(headers)
    }

    /// What nodes deliver for these numbers, by hash.
    async fn claim_headers(
        &self,
        account: AccountId,
        numbers: RangeInclusive<u64>,
        deadline: Instant,
    ) -> B256Map<Arc<ProvenHeader>> {
        let mut claimed = B256Map::default();
        let mut numbers = numbers.rev();
        let mut claims: FuturesUnordered<Claimed<'_>> = FuturesUnordered::new();
        loop {
            for number in numbers.by_ref().take(HEADERS_AT_ONCE - claims.len()) {
                claims.push(Box::pin(self.claimed_header(account, number, deadline)));
            }
            match claims.next().await {
                Some(Some(header)) => _ = claimed.insert(header.id.hash, Arc::new(header)),
                Some(None) => {}
                None => return claimed,
            }
        }
    }

    async fn claimed_header(
        &self,
        account: AccountId,
        number: u64,
        deadline: Instant,
    ) -> Option<ProvenHeader> {
        let prove = |delivery: &Bytes| {
            let delivery = delivery.clone();
            self.proving(account, delivery.len(), move || ProvenHeader::read(&delivery))
        };
        self.pool.fetch(&encode::header_of_number(number), &prove, deadline).await.ok()
    }

    async fn header(
        &self,
        account: AccountId,
        block: BlockRef,
        deadline: Instant,
    ) -> Result<Arc<ProvenHeader>, Failure> {
        let prove = |delivery: &Bytes| {
            let delivery = delivery.clone();
            self.proving(account, delivery.len(), move || ProvenHeader::prove(&delivery, block.hash))
        };
        let fetched = self.pool.fetch(&encode::header_of_hash(&block), &prove, deadline).await;
        fetched.map(Arc::new).map_err(not_fetched)
    }
}
