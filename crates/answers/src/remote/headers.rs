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
use tokio::time::Instant;

use super::asking::Asking;
use super::pool_source::PoolSource;
use super::{encode, node_failures};
use crate::failure::Failure;

/// Headers that are asked for at the same time. Those that wait for one node travel together.
const HEADERS_AT_ONCE: usize = 64;

type Claimed<'a> = Pin<Box<dyn Future<Output = Option<ProvenHeader>> + Send + 'a>>;

impl PoolSource {
    /// The headers from `top` down to the block of the number `lowest`.
    pub(super) async fn headers_down(
        &self,
        asking: Asking<'_>,
        top: BlockRef,
        lowest: u64,
    ) -> Result<Vec<Arc<ProvenHeader>>, Failure> {
        let mut headers = Vec::new();
        self.extend_headers(&mut headers, asking, top, lowest).await?;
        Ok(headers)
    }

    /// Adds the headers from `top` down to the block of the number `lowest`. After a failure, those above the one that is
    /// missing are there.
    pub(super) async fn extend_headers(
        &self,
        headers: &mut Vec<Arc<ProvenHeader>>,
        asking: Asking<'_>,
        top: BlockRef,
        lowest: u64,
    ) -> Result<(), Failure> {
        let mut next = top;
        let mut claimed: Option<B256Map<Arc<ProvenHeader>>> = None;
        loop {
            let known = self.known_header(next);
            let is_new = known.is_none();
            // All that are missing are asked for by number at once. Those that are not what the header above names are asked
            // for by hash, one after another.
            if is_new && claimed.is_none() {
                claimed = Some(self.claim_headers(asking, lowest..=next.number).await);
            }
            let claimed = claimed.as_ref().and_then(|claimed| claimed.get(&next.hash).cloned());
            let header = match known.or(claimed) {
                Some(header) => header,
                None => self.header(asking, next).await?,
            };
            if is_new {
                self.blocks.keep_header(Arc::clone(&header));
            }
            headers.push(Arc::clone(&header));
            let Some(below) = next.number.checked_sub(1).filter(|below| *below >= lowest) else { break };
            next = BlockRef { number: below, hash: header.parent };
        }
        Ok(())
    }

    /// The header of a block that was proven before.
    fn known_header(&self, block: BlockRef) -> Option<Arc<ProvenHeader>> {
        if let Some(header) = self.blocks.header(block.hash) {
            return Some(header);
        }
        let body = self.blocks.body(block.hash).or_else(|| {
            let kept = self.kept_chain()?;
            kept.recent(&block.hash).map(|recent| recent.body)
        });
        if let Some(body) = body {
            return Some(Arc::new(ProvenHeader::of(body.hash(), body.header())));
        }
        let kept = self.kept_chain()?.read(block, |snapshot| snapshot.body(block.number))?;
        let header = Arc::new(ProvenHeader::of(block.hash, &kept.decode().ok()?.header));
        self.blocks.keep_header(Arc::clone(&header));
        Some(header)
    }

    /// The headers that nodes deliver for these numbers until the deadline, by hash.
    async fn claim_headers(
        &self,
        asking: Asking<'_>,
        numbers: RangeInclusive<u64>,
    ) -> B256Map<Arc<ProvenHeader>> {
        let mut claimed = B256Map::default();
        let mut numbers = numbers.rev();
        let mut claims: FuturesUnordered<Claimed<'_>> = FuturesUnordered::new();
        loop {
            let room = if Instant::now() < asking.deadline { HEADERS_AT_ONCE - claims.len() } else { 0 };
            for number in numbers.by_ref().take(room) {
                claims.push(Box::pin(self.claimed_header(asking, number)));
            }
            match claims.next().await {
                Some(Some(header)) => _ = claimed.insert(header.id.hash, Arc::new(header)),
                Some(None) => {}
                None => return claimed,
            }
        }
    }

    async fn claimed_header(&self, asking: Asking<'_>, number: u64) -> Option<ProvenHeader> {
        let prove = |delivery: &Bytes| {
            let delivery = delivery.clone();
            self.proving(asking.account, delivery.len(), move || {
                ProvenHeader::read_of_number(&delivery, number)
            })
        };
        let call = encode::header_of_number(number);
        self.pool.fetch(asking.supplier, &call, &prove, asking.deadline).await.ok()
    }

    async fn header(&self, asking: Asking<'_>, block: BlockRef) -> Result<Arc<ProvenHeader>, Failure> {
        let prove = |delivery: &Bytes| {
            let delivery = delivery.clone();
            self.proving(asking.account, delivery.len(), move || ProvenHeader::prove(&delivery, block.hash))
        };
        let call = encode::header_of_hash(&block);
        let fetched = self.pool.fetch(asking.supplier, &call, &prove, asking.deadline).await;
        fetched.map(Arc::new).map_err(node_failures::of_fetch)
    }
}
