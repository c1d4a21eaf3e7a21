//! Proven blocks: fetched from nodes by their hashes, proven here, and cached for the next questions about them.
//!
//! A proof of a large delivery runs in the pool of threads. Of equal fetches only one is under way.

use std::sync::Arc;

use bytes::Bytes;
use methods::BlockRef;
use nodes::proven::{ProvenBody, ProvenReceipts, ProvenUncles, UNCLES_MAX, Unproven};
use nodes::{NotFetched, Proving, RpcCall};
use resources::AccountId;

use super::asking::Asking;
use super::pool_source::PoolSource;
use super::proven_blocks::{FetchKey, FetchTerms, block_of};
use super::sized_work::unless_refused;
use super::{encode, node_failures};
use crate::failure::Failure;

/// Deliveries up to this size are proven at once: reading and hashing them takes less than 200 µs.
const PROVEN_AT_ONCE_BYTES_MAX: usize = 16 << 10;

/// Blocks whose receipts are asked for one by one, of nodes that do not give them all at once, have at most so many.
const SINGLE_RECEIPTS_MAX: usize = 2_048;

impl PoolSource {
    /// Header, transactions and withdrawals of a block.
    pub(super) async fn body(&self, asking: Asking<'_>, block: BlockRef) -> Result<Arc<ProvenBody>, Failure> {
        if let Some(body) = self.blocks.body(block.hash) {
            return Ok(body);
        }
        if let Some(body) = self.stored_body(asking.account, block).await? {
            return Ok(body);
        }
        let key = FetchKey::of(asking, block);
        let fetch = || async {
            let body = self.fetch_body(key.terms(asking.deadline), block).await?;
            self.blocks.insert_body(&body);
            Ok(body)
        };
        self.blocks.body_fetches.share(key, asking.deadline, fetch).await
    }

    /// Fetches a block by its hash, and does not cache it.
    pub(super) async fn fetch_body(
        &self,
        terms: FetchTerms,
        block: BlockRef,
    ) -> Result<Arc<ProvenBody>, Failure> {
        let prove = |delivery: &Bytes| {
            let delivery = delivery.clone();
            self.proving(terms.pays, delivery.len(), move || ProvenBody::prove(&delivery, block.hash))
        };
        let call = self.on_any_branch(block, encode::whole_block(&block)).for_account(terms.pays);
        let fetched = self.pool.fetch(terms.supplier, &call, &prove, terms.deadline).await;
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
        if let Some(uncles) = self.blocks.uncles(body.hash()) {
            return Ok(uncles);
        }
        let block = block_of(body);
        if let Some(uncles) = self.stored_uncles(asking.account, block).await? {
            return Ok(uncles);
        }
        let key = FetchKey::of(asking, block);
        let fetch = || async {
            let uncles = self.fetch_uncles(key.terms(asking.deadline), body).await?;
            self.blocks.insert_uncles(block.hash, &uncles);
            Ok(uncles)
        };
        self.blocks.uncles_fetches.share(key, asking.deadline, fetch).await
    }

    /// Fetches the uncles of a block, which must have some, and does not cache them.
    pub(super) async fn fetch_uncles(
        &self,
        terms: FetchTerms,
        body: &Arc<ProvenBody>,
    ) -> Result<Arc<ProvenUncles>, Failure> {
        let block = block_of(body);
        let uncle = |index| self.on_any_branch(block, encode::uncle(&block, index)).for_account(terms.pays);
        let calls: Vec<RpcCall> = (0..UNCLES_MAX as u64).map(uncle).collect();
        let prove = |deliveries: Vec<Bytes>| {
            let body = Arc::clone(body);
            self.proving(terms.pays, bytes_of(&deliveries), move || {
                ProvenUncles::prove(deliveries.iter().map(|delivery| &delivery[..]), &body)
            })
        };
        let fetched = self.pool.fetch_together(terms.supplier, &calls, &prove, terms.deadline).await;
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
        if let Some(receipts) = self.blocks.receipts(body.hash()) {
            return Ok(receipts);
        }
        let block = block_of(body);
        if let Some(receipts) = self.stored_receipts(asking.account, block).await? {
            return Ok(receipts);
        }
        let key = FetchKey::of(asking, block);
        let fetch = || async {
            let receipts = self.fetch_receipts(key.terms(asking.deadline), body).await?;
            self.blocks.insert_receipts(block.hash, &receipts);
            Ok(receipts)
        };
        self.blocks.receipts_fetches.share(key, asking.deadline, fetch).await
    }

    /// Fetches the receipts of a block, which must have some, and does not cache them.
    pub(super) async fn fetch_receipts(
        &self,
        terms: FetchTerms,
        body: &Arc<ProvenBody>,
    ) -> Result<Arc<ProvenReceipts>, Failure> {
        let block = block_of(body);
        let call = self.on_any_branch(block, encode::block_receipts(&block)).for_account(terms.pays);
        let prove = |delivery: &Bytes| {
            let (delivery, body) = (delivery.clone(), Arc::clone(body));
            self.proving(terms.pays, delivery.len(), move || ProvenReceipts::prove(&delivery, &body))
        };
        let fetched = match self.pool.fetch(terms.supplier, &call, &prove, terms.deadline).await {
            Err(NotFetched::Unavailable | NotFetched::Lacking)
                if body.transactions().len() <= SINGLE_RECEIPTS_MAX
                    && self.pool.some_lack(terms.supplier, call.method) =>
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
        let receipt = |hash| encode::receipt(hash).for_account(terms.pays);
        let calls: Vec<RpcCall> =
            body.transactions().iter().map(|transaction| receipt(*transaction.tx_hash())).collect();
        let prove = |deliveries: Vec<Bytes>| {
            let body = Arc::clone(body);
            self.proving(terms.pays, bytes_of(&deliveries), move || {
                ProvenReceipts::prove_single(deliveries.iter().map(|delivery| &delivery[..]), &body)
            })
        };
        self.pool.fetch_together(terms.supplier, &calls, &prove, terms.deadline).await
    }

    /// Runs a proof: at once if it is short, else in the pool of threads.
    pub(super) fn proving<T: Send + 'static>(
        &self,
        account: AccountId,
        bytes: usize,
        prove: impl FnOnce() -> Result<T, Unproven> + Send + 'static,
    ) -> Proving<'_, T> {
        let count = |proof: &Result<T, Unproven>| {
            if let Err(Unproven::Wrong(failure)) = proof {
                self.integrity.count(*failure);
            }
        };
        if bytes <= PROVEN_AT_ONCE_BYTES_MAX {
            let proof = prove();
            count(&proof);
            return Proving::Done(proof);
        }
        Proving::Elsewhere(Box::pin(async move {
            let proof = unless_refused(self.threads.run(account, prove).await)?;
            count(&proof);
            Some(proof)
        }))
    }
}

fn bytes_of(deliveries: &[Bytes]) -> usize {
    deliveries.iter().map(Bytes::len).sum()
}
