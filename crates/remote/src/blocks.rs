//! Proven blocks, by hash and number: in memory, in the file of stored blocks, or fetched from nodes and proven here.
//!
//! A proof of a large delivery runs in the pool of threads. Of equal fetches only one is under way.

mod cached; // proven blocks in memory, and those that are being fetched
mod recent; // blocks that may still be reorganised
mod stored_chain; // what is stored, in memory and in a file
mod stored; // proven blocks read from there
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

use super::block_ids::block_of;
use super::workers::Workers;
use super::{encode, node_failures};
use crate::call_context::CallContext;
use crate::call_key::CallKey;

pub(super) use answers::BlockAnswers;
use cached::CachedBlocks;
pub(super) use location::history_kind;
pub(super) use recent::{RECENT_BYTES_MAX, RecentBlock};
use sources::{Failure, Flights, Verification};
use stored::StoredBlocks;
pub use stored_chain::StoredChain;

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
        stored: Option<Arc<StoredChain>>,
        cache_bytes_max: u64,
    ) -> Self {
        let cached = Arc::new(CachedBlocks::new(cache_bytes_max));
        let stored = StoredBlocks::new(stored, Arc::clone(&cached), Arc::clone(&workers));
        Self { pool, workers, family, cached, stored, lookups: Flights::default() }
    }

    pub(super) fn stored_chain(&self) -> Option<&Arc<StoredChain>> {
        self.stored.chain.as_ref()
    }

    /// Whether block data is answered from proven blocks. Headers of zkSync-like chains cannot be computed.
    pub(super) fn are_proven(&self) -> bool {
        self.family == ChainFamily::Ethereum && self.workers.integrity.proves()
    }

    /// Header, transactions and withdrawals of a block.
    pub(super) async fn body(
        &self,
        context: CallContext<'_>,
        block: BlockRef,
    ) -> Result<Arc<ProvenBody>, Failure> {
        if let Some(body) = self.known_body(context.account, block).await? {
            return Ok(body);
        }
        let key = CallKey::of_block(context, block, block.hash);
        let shared = key.context(context);
        let fetch = || async {
            let body = self.fetch_body(shared, block).await?;
            self.cached.insert_body(&body);
            Ok(body)
        };
        self.cached.body_fetches.share(key, context.deadline, fetch).await
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
        context: CallContext<'_>,
        block: BlockRef,
    ) -> Result<Arc<ProvenBody>, Failure> {
        let prove = |delivery: &Bytes| {
            let delivery = delivery.clone();
            self.workers
                .proving(context.account, delivery.len(), move || ProvenBody::prove(&delivery, block.hash))
        };
        let call = encode::whole_block(&block).for_account(context.account);
        let fetched = self.pool.fetch(context.only, &call, &prove, context.deadline).await;
        fetched.map(Arc::new).map_err(node_failures::of_fetch)
    }

    /// Headers of the uncles of a block.
    pub(super) async fn uncles(
        &self,
        context: CallContext<'_>,
        body: &Arc<ProvenBody>,
    ) -> Result<Arc<ProvenUncles>, Failure> {
        if let Some(none) = ProvenUncles::none(body) {
            return Ok(Arc::new(none));
        }
        if let Some(uncles) = self.cached.uncles(body.hash()) {
            return Ok(uncles);
        }
        let block = block_of(body);
        if let Some(uncles) = self.stored.uncles(context.account, block).await? {
            return Ok(uncles);
        }
        let key = CallKey::of_block(context, block, block.hash);
        let shared = key.context(context);
        let fetch = || async {
            let uncles = self.fetch_uncles(shared, body).await?;
            self.cached.insert_uncles(block.hash, &uncles);
            Ok(uncles)
        };
        self.cached.uncles_fetches.share(key, context.deadline, fetch).await
    }

    /// Fetches the uncles of a block, which must have some, and does not cache them.
    pub(super) async fn fetch_uncles(
        &self,
        context: CallContext<'_>,
        body: &Arc<ProvenBody>,
    ) -> Result<Arc<ProvenUncles>, Failure> {
        let block = block_of(body);
        let uncle = |index| encode::uncle(&block, index).for_account(context.account);
        let calls: Vec<RpcCall> = (0..UNCLES_MAX as u64).map(uncle).collect();
        let prove = |deliveries: Vec<Bytes>| {
            let body = Arc::clone(body);
            self.workers.proving(context.account, bytes_of(&deliveries), move || {
                ProvenUncles::prove(deliveries.iter().map(|delivery| &delivery[..]), &body)
            })
        };
        let fetched = self.pool.fetch_together(context.only, &calls, &prove, context.deadline).await;
        fetched.map(Arc::new).map_err(node_failures::of_fetch)
    }

    /// Receipts of a block.
    pub(super) async fn receipts(
        &self,
        context: CallContext<'_>,
        body: &Arc<ProvenBody>,
    ) -> Result<Arc<ProvenReceipts>, Failure> {
        if let Some(none) = ProvenReceipts::none(body) {
            return Ok(Arc::new(none));
        }
        if let Some(receipts) = self.cached.receipts(body.hash()) {
            return Ok(receipts);
        }
        let block = block_of(body);
        if let Some(receipts) = self.stored.receipts(context.account, block).await? {
            return Ok(receipts);
        }
        let key = CallKey::of_block(context, block, block.hash);
        let shared = key.context(context);
        let fetch = || async {
            let receipts = self.fetch_receipts(shared, body).await?;
            self.cached.insert_receipts(block.hash, &receipts);
            Ok(receipts)
        };
        self.cached.receipts_fetches.share(key, context.deadline, fetch).await
    }

    /// Fetches the receipts of a block, which must have some, and does not cache them.
    pub(super) async fn fetch_receipts(
        &self,
        context: CallContext<'_>,
        body: &Arc<ProvenBody>,
    ) -> Result<Arc<ProvenReceipts>, Failure> {
        let block = block_of(body);
        let call = encode::block_receipts(&block).for_account(context.account);
        let prove = |delivery: &Bytes| {
            let (delivery, body) = (delivery.clone(), Arc::clone(body));
            self.workers
                .proving(context.account, delivery.len(), move || ProvenReceipts::prove(&delivery, &body))
        };
        let fetched = match self.pool.fetch(context.only, &call, &prove, context.deadline).await {
            Err(NotFetched::Unavailable | NotFetched::Lacking)
                if body.transactions().len() <= SINGLE_RECEIPTS_MAX
                    && self.pool.some_lack(context.only, call.method) =>
            {
                self.fetch_single_receipts(context, body).await
            }
            fetched => fetched,
        };
        fetched.map(Arc::new).map_err(node_failures::of_fetch)
    }

    async fn fetch_single_receipts(
        &self,
        context: CallContext<'_>,
        body: &Arc<ProvenBody>,
    ) -> Result<ProvenReceipts, NotFetched> {
        let block = block_of(body);
        let needs = Needs { block: Some(block.number), ..Needs::default() };
        let receipt = |hash| RpcCall { needs, ..encode::receipt(hash) }.for_account(context.account);
        let calls: Vec<RpcCall> =
            body.transactions().iter().map(|transaction| receipt(*transaction.tx_hash())).collect();
        let prove = |deliveries: Vec<Bytes>| {
            let body = Arc::clone(body);
            self.workers.proving(context.account, bytes_of(&deliveries), move || {
                ProvenReceipts::prove_single(deliveries.iter().map(|delivery| &delivery[..]), &body)
            })
        };
        self.pool.fetch_together(context.only, &calls, &prove, context.deadline).await
    }
}

fn bytes_of(deliveries: &[Bytes]) -> usize {
    deliveries.iter().map(Bytes::len).sum()
}
