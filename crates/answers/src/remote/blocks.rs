//! Proven blocks, by hash and number: in memory, in the file of stored blocks, or fetched from nodes and proven here.
//!
//! A proof of a large delivery runs in the pool of threads. Of equal fetches only one is under way.

mod cached; // proven blocks in memory, and those that are being fetched
mod stored; // proven blocks that following has stored
mod headers; // proven headers below the window
mod numbers; // which block has a number, and how far that is verified
mod location; // which block a transaction is in
mod answers; // answers from proven blocks

use std::sync::Arc;

use bytes::Bytes;
use methods::{BlockParam, BlockRef};
use nodes::proven::{ProvenBody, ProvenReceipts, ProvenUncles, UNCLES_MAX};
use nodes::{ChainFamily, Needs, NotFetched, Pool, RpcCall};
use resources::AccountId;

use super::asking::{Asking, FetchKey, FetchTerms};
use super::block_ids::block_of;
use super::followed_chain::FollowedChain;
use super::workers::Workers;
use super::{encode, node_failures};
use crate::failure::Failure;
use crate::flights::Flights;
use crate::provenance::Verification;

pub(super) use answers::BlockAnswers;
use cached::CachedBlocks;
pub(super) use location::{HISTORY_CHECKED_EVERY, HISTORY_WAIT_MAX, history_kind};
use stored::StoredBlocks;

/// Blocks whose receipts are asked for one by one, of nodes that do not give them all at once, have at most so many.
const SINGLE_RECEIPTS_MAX: usize = 2_048;

/// The blocks of the nodes' chain, as far as they can be proven.
pub(crate) struct Blocks {
    pub(super) pool: Arc<Pool>,
    pub(super) workers: Arc<Workers>,
    pub(super) family: ChainFamily,
    pub(super) cached: Arc<CachedBlocks>,
    pub(super) stored: StoredBlocks,
    /// Blocks below the window that nodes are asked for, in their epoch.
    pub(super) lookups: Flights<(AccountId, u64, BlockParam), Verification>,
}

impl Blocks {
    /// Caches nothing where `cache_bytes_max` is 0.
    pub(super) fn new(
        pool: Arc<Pool>,
        workers: Arc<Workers>,
        family: ChainFamily,
        followed: Option<Arc<FollowedChain>>,
        cache_bytes_max: u64,
    ) -> Self {
        let cached = Arc::new(CachedBlocks::new(cache_bytes_max));
        let stored = StoredBlocks::new(followed, Arc::clone(&cached), Arc::clone(&workers));
        Self { pool, workers, family, cached, stored, lookups: Flights::default() }
    }

    pub(super) fn followed_chain(&self) -> Option<&Arc<FollowedChain>> {
        self.stored.followed.as_ref()
    }

    /// Whether block data is answered from proven blocks. Headers of zkSync-like chains cannot be computed.
    pub(super) fn are_proven(&self) -> bool {
        self.family == ChainFamily::Ethereum && self.workers.integrity.proves()
    }

    /// Header, transactions and withdrawals of a block.
    pub(super) async fn body(&self, asking: Asking<'_>, block: BlockRef) -> Result<Arc<ProvenBody>, Failure> {
        if let Some(body) = self.known_body(asking.account, block).await? {
            return Ok(body);
        }
        let key = FetchKey::of(asking, block, block.hash);
        let fetch = || async {
            let body = self.fetch_body(key.terms(asking.deadline), block).await?;
            self.cached.insert_body(&body);
            Ok(body)
        };
        self.cached.body_fetches.share(key, asking.deadline, fetch).await
    }

    /// Header, transactions and withdrawals of a block that was proven before.
    pub(super) async fn known_body(
        &self,
        account: AccountId,
        block: BlockRef,
    ) -> Result<Option<Arc<ProvenBody>>, Failure> {
        match self.cached.body(block.hash) {
            Some(body) => Ok(Some(body)),
            None => self.stored.body(account, block).await,
        }
    }

    /// Fetches a block by its hash, and does not cache it.
    pub(super) async fn fetch_body(
        &self,
        terms: FetchTerms,
        block: BlockRef,
    ) -> Result<Arc<ProvenBody>, Failure> {
        let prove = |delivery: &Bytes| {
            let delivery = delivery.clone();
            self.workers.proving(terms.pays, delivery.len(), move || ProvenBody::prove(&delivery, block.hash))
        };
        let call = encode::whole_block(&block).for_account(terms.pays);
        let fetched = self.pool.fetch(terms.only, &call, &prove, terms.deadline).await;
        fetched.map(Arc::new).map_err(node_failures::of_fetch)
    }

    /// Headers of the uncles of a block.
    pub(super) async fn uncles(
        &self,
        asking: Asking<'_>,
        body: &Arc<ProvenBody>,
    ) -> Result<Arc<ProvenUncles>, Failure> {
        if let Some(none) = ProvenUncles::none(body) {
            return Ok(Arc::new(none));
        }
        if let Some(uncles) = self.cached.uncles(body.hash()) {
            return Ok(uncles);
        }
        let block = block_of(body);
        if let Some(uncles) = self.stored.uncles(asking.account, block).await? {
            return Ok(uncles);
        }
        let key = FetchKey::of(asking, block, block.hash);
        let fetch = || async {
            let uncles = self.fetch_uncles(key.terms(asking.deadline), body).await?;
            self.cached.insert_uncles(block.hash, &uncles);
            Ok(uncles)
        };
        self.cached.uncles_fetches.share(key, asking.deadline, fetch).await
    }

    /// Fetches the uncles of a block, which must have some, and does not cache them.
    pub(super) async fn fetch_uncles(
        &self,
        terms: FetchTerms,
        body: &Arc<ProvenBody>,
    ) -> Result<Arc<ProvenUncles>, Failure> {
        let block = block_of(body);
        let uncle = |index| encode::uncle(&block, index).for_account(terms.pays);
        let calls: Vec<RpcCall> = (0..UNCLES_MAX as u64).map(uncle).collect();
        let prove = |deliveries: Vec<Bytes>| {
            let body = Arc::clone(body);
            self.workers.proving(terms.pays, bytes_of(&deliveries), move || {
                ProvenUncles::prove(deliveries.iter().map(|delivery| &delivery[..]), &body)
            })
        };
        let fetched = self.pool.fetch_together(terms.only, &calls, &prove, terms.deadline).await;
        fetched.map(Arc::new).map_err(node_failures::of_fetch)
    }

    /// Receipts of a block.
    pub(super) async fn receipts(
        &self,
        asking: Asking<'_>,
        body: &Arc<ProvenBody>,
    ) -> Result<Arc<ProvenReceipts>, Failure> {
        if let Some(none) = ProvenReceipts::none(body) {
            return Ok(Arc::new(none));
        }
        if let Some(receipts) = self.cached.receipts(body.hash()) {
            return Ok(receipts);
        }
        let block = block_of(body);
        if let Some(receipts) = self.stored.receipts(asking.account, block).await? {
            return Ok(receipts);
        }
        let key = FetchKey::of(asking, block, block.hash);
        let fetch = || async {
            let receipts = self.fetch_receipts(key.terms(asking.deadline), body).await?;
            self.cached.insert_receipts(block.hash, &receipts);
            Ok(receipts)
        };
        self.cached.receipts_fetches.share(key, asking.deadline, fetch).await
    }

    /// Fetches the receipts of a block, which must have some, and does not cache them.
    pub(super) async fn fetch_receipts(
        &self,
        terms: FetchTerms,
        body: &Arc<ProvenBody>,
    ) -> Result<Arc<ProvenReceipts>, Failure> {
        let block = block_of(body);
        let call = encode::block_receipts(&block).for_account(terms.pays);
        let prove = |delivery: &Bytes| {
            let (delivery, body) = (delivery.clone(), Arc::clone(body));
            self.workers.proving(terms.pays, delivery.len(), move || ProvenReceipts::prove(&delivery, &body))
        };
        let fetched = match self.pool.fetch(terms.only, &call, &prove, terms.deadline).await {
            Err(NotFetched::Unavailable | NotFetched::Lacking)
                if body.transactions().len() <= SINGLE_RECEIPTS_MAX
                    && self.pool.some_lack(terms.only, call.method) =>
            {
                self.fetch_single_receipts(terms, body).await
            }
            fetched => fetched,
        };
        fetched.map(Arc::new).map_err(node_failures::of_fetch)
    }

    async fn fetch_single_receipts(
        &self,
        terms: FetchTerms,
        body: &Arc<ProvenBody>,
    ) -> Result<ProvenReceipts, NotFetched> {
        let block = block_of(body);
        let needs = Needs { block: Some(block.number), ..Needs::default() };
        let receipt = |hash| RpcCall { needs, ..encode::receipt(hash) }.for_account(terms.pays);
        let calls: Vec<RpcCall> =
            body.transactions().iter().map(|transaction| receipt(*transaction.tx_hash())).collect();
        let prove = |deliveries: Vec<Bytes>| {
            let body = Arc::clone(body);
            self.workers.proving(terms.pays, bytes_of(&deliveries), move || {
                ProvenReceipts::prove_single(deliveries.iter().map(|delivery| &delivery[..]), &body)
            })
        };
        self.pool.fetch_together(terms.only, &calls, &prove, terms.deadline).await
    }
}

fn bytes_of(deliveries: &[Bytes]) -> usize {
    deliveries.iter().map(Bytes::len).sum()
}
