//! Proven blocks: fetched from nodes by their hashes, proven here, and kept for the next questions about them.
//!
//! A proof of a large delivery runs in the pool of threads. Of equal fetches only one is under way.

use std::sync::Arc;

use alloy_primitives::B256;
use bytes::Bytes;
use foldhash::quality::RandomState;
use methods::BlockRef;
use nodes::proven::{ProvenBody, ProvenHeader, ProvenReceipts, ProvenUncles, UNCLES_MAX, Unproven};
use nodes::{Call, NotFetched, Proving, Supplier};
use quick_cache::sync::Cache as Store;
use quick_cache::{DefaultHashBuilder, Weighter};
use resources::AccountId;
use tokio::time::Instant;

use super::asking::Asking;
use super::{Remote, encode};
use crate::failure::Failure;
use crate::flights::Flights;

/// Deliveries up to this size are proven at once: reading and hashing them takes less than 200 µs.
const PROVEN_AT_ONCE_BYTES_MAX: usize = 16 << 10;

/// Blocks whose receipts are asked for one by one, of nodes that do not give them all at once, have at most so many.
const SINGLE_RECEIPTS_MAX: usize = 2_048;

/// Transactions whose block is remembered take this part of the memory for proven blocks.
const PLACES_SHARE: u64 = 8;

/// What it takes to remember the block of a transaction: the key, the block, and their place in the table.
const PLACE_BYTES: u64 = 128;

/// What a usual part of a block takes, to size the table at first.
const PART_BYTES_USUAL: u64 = 64 << 10;

/// Proven blocks that are kept, and those under way.
pub(super) struct ProvenBlocks {
    parts: Store<(PartKind, B256), Part, PartWeight>,
    /// The block of a transaction.
    places: Store<B256, BlockRef, quick_cache::UnitWeighter, RandomState>,
    is_on: bool,
    bodies: Flights<FetchKey, Arc<ProvenBody>>,
    uncles: Flights<FetchKey, Arc<ProvenUncles>>,
    receipts: Flights<FetchKey, Arc<ProvenReceipts>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PartKind {
    Body,
    Header,
    Uncles,
    Receipts,
}

#[derive(Clone)]
enum Part {
    Body(Arc<ProvenBody>),
    Header(Arc<ProvenHeader>),
    Uncles(Arc<ProvenUncles>),
    Receipts(Arc<ProvenReceipts>),
}

#[derive(Clone)]
struct PartWeight;

impl Weighter<(PartKind, B256), Part> for PartWeight {
    fn weight(&self, _: &(PartKind, B256), part: &Part) -> u64 {
        let bytes = match part {
            Part::Body(body) => body.bytes(),
            Part::Header(header) => size_of_val(&**header),
            Part::Uncles(uncles) => size_of_val(uncles.headers()),
            Part::Receipts(receipts) => receipts.bytes(),
        };
        bytes as u64 + PLACE_BYTES
    }
}

/// Which fetches are one, and who pays for the proof.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FetchKey {
    /// The account, if the block is below the window. Blocks of the window are few and asked for by everyone: all accounts share
    /// one fetch, and none of them waits behind the jobs of another. Of older blocks there is no end, so each account fetches
    /// them in its own share of the pool.
    account: Option<AccountId>,
    hash: B256,
    supplier: Supplier,
}

impl FetchKey {
    fn of(asking: Asking<'_>, block: BlockRef) -> Self {
        let is_deep = block.number < asking.canon.lowest();
        let account = is_deep.then_some(asking.account);
        Self { account, hash: block.hash, supplier: asking.supplier }
    }

    fn terms(self, deadline: Instant) -> FetchTerms {
        let pays = self.account.unwrap_or(AccountId::NONE);
        FetchTerms { pays, deadline, supplier: self.supplier }
    }
}

/// Who is asked for a part of a block, until when, and in whose share of the pool the proof runs.
#[derive(Clone, Copy)]
pub(super) struct FetchTerms {
    pub(super) pays: AccountId,
    pub(super) deadline: Instant,
    pub(super) supplier: Supplier,
}

impl ProvenBlocks {
    /// Keeps nothing where `bytes_max` is 0.
    pub(super) fn new(bytes_max: u64) -> Self {
        let for_places = bytes_max / PLACES_SHARE;
        let for_parts = bytes_max - for_places;
        let parts = usize::try_from(for_parts / PART_BYTES_USUAL).unwrap_or(usize::MAX).max(16);
        let places = for_places / PLACE_BYTES;
        let hasher = DefaultHashBuilder::default();
        Self {
            parts: Store::with(parts, for_parts, PartWeight, hasher, Default::default()),
            // The hasher is keyed: callers choose what is looked up here.
            places: Store::with(
                usize::try_from(places).unwrap_or(usize::MAX).max(16),
                places,
                quick_cache::UnitWeighter,
                RandomState::default(),
                Default::default(),
            ),
            is_on: bytes_max > 0,
            bodies: Flights::default(),
            uncles: Flights::default(),
            receipts: Flights::default(),
        }
    }

    /// The block that a transaction was found in. It need not be canonical any more.
    pub(super) fn place(&self, transaction: &B256) -> Option<BlockRef> {
        self.places.get(transaction)
    }

    fn keep(&self, kind: PartKind, hash: B256, part: Part) {
        if self.is_on {
            self.parts.insert((kind, hash), part);
        }
    }

    pub(super) fn keep_body(&self, body: &Arc<ProvenBody>) {
        if !self.is_on {
            return;
        }
        let block = block_of(body);
        for transaction in body.transactions() {
            self.places.insert(*transaction.tx_hash(), block);
        }
        self.keep(PartKind::Body, block.hash, Part::Body(Arc::clone(body)));
    }

    pub(super) fn keep_uncles(&self, hash: B256, uncles: &Arc<ProvenUncles>) {
        self.keep(PartKind::Uncles, hash, Part::Uncles(Arc::clone(uncles)));
    }

    pub(super) fn keep_receipts(&self, hash: B256, receipts: &Arc<ProvenReceipts>) {
        self.keep(PartKind::Receipts, hash, Part::Receipts(Arc::clone(receipts)));
    }

    pub(super) fn header(&self, hash: B256) -> Option<Arc<ProvenHeader>> {
        match self.parts.get(&(PartKind::Header, hash)) {
            Some(Part::Header(header)) => Some(header),
            _ => None,
        }
    }

    pub(super) fn keep_header(&self, header: Arc<ProvenHeader>) {
        self.keep(PartKind::Header, header.id.hash, Part::Header(header));
    }

    pub(super) fn body(&self, hash: B256) -> Option<Arc<ProvenBody>> {
        match self.parts.get(&(PartKind::Body, hash)) {
            Some(Part::Body(body)) => Some(body),
            _ => None,
        }
    }
}

impl Remote {
    /// Header, transactions and withdrawals of a block.
    pub(super) async fn body(&self, asking: Asking<'_>, block: BlockRef) -> Result<Arc<ProvenBody>, Failure> {
        if let Some(body) = self.blocks.body(block.hash) {
            return Ok(body);
        }
        if let Some(body) = self.kept_body(asking.account, block).await? {
            return Ok(body);
        }
        let key = FetchKey::of(asking, block);
        let fetch = || async {
            let body = self.fetch_body(key.terms(asking.deadline), block).await?;
            self.blocks.keep_body(&body);
            Ok(body)
        };
        self.blocks.bodies.share(key, fetch).await
    }

    /// Fetches a block by its hash, and does not keep it.
    pub(super) async fn fetch_body(
        &self,
        terms: FetchTerms,
        block: BlockRef,
    ) -> Result<Arc<ProvenBody>, Failure> {
        let prove = |delivery: &Bytes| {
            let delivery = delivery.clone();
            self.proving(terms.pays, delivery.len(), move || ProvenBody::prove(&delivery, block.hash))
        };
        let call = self.on_any_branch(block, encode::whole_block(&block));
        let fetched = self.pool.fetch(terms.supplier, &call, &prove, terms.deadline).await;
        fetched.map(Arc::new).map_err(not_fetched)
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
        if let Some(Part::Uncles(uncles)) = self.blocks.parts.get(&(PartKind::Uncles, body.hash())) {
            return Ok(uncles);
        }
        let block = block_of(body);
        if let Some(uncles) = self.kept_uncles(asking.account, block).await? {
            return Ok(uncles);
        }
        let key = FetchKey::of(asking, block);
        let fetch = || async {
            let uncles = self.fetch_uncles(key.terms(asking.deadline), body).await?;
            self.blocks.keep_uncles(block.hash, &uncles);
            Ok(uncles)
        };
        self.blocks.uncles.share(key, fetch).await
    }

    /// Fetches the uncles of a block, which must have some, and does not keep them.
    pub(super) async fn fetch_uncles(
        &self,
        terms: FetchTerms,
        body: &Arc<ProvenBody>,
    ) -> Result<Arc<ProvenUncles>, Failure> {
        let block = block_of(body);
        let uncle = |index| self.on_any_branch(block, encode::uncle(&block, index));
        let calls: Vec<Call> = (0..UNCLES_MAX as u64).map(uncle).collect();
        let prove = |deliveries: Vec<Bytes>| {
            let body = Arc::clone(body);
            self.proving(terms.pays, bytes_of(&deliveries), move || {
                ProvenUncles::prove(deliveries.iter().map(|delivery| &delivery[..]), &body)
            })
        };
        let fetched = self.pool.fetch_together(terms.supplier, &calls, &prove, terms.deadline).await;
        fetched.map(Arc::new).map_err(not_fetched)
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
        if let Some(Part::Receipts(receipts)) = self.blocks.parts.get(&(PartKind::Receipts, body.hash())) {
            return Ok(receipts);
        }
        let block = block_of(body);
        if let Some(receipts) = self.kept_receipts(asking.account, block).await? {
            return Ok(receipts);
        }
        let key = FetchKey::of(asking, block);
        let fetch = || async {
            let receipts = self.fetch_receipts(key.terms(asking.deadline), body).await?;
            self.blocks.keep_receipts(block.hash, &receipts);
            Ok(receipts)
        };
        self.blocks.receipts.share(key, fetch).await
    }

    /// Fetches the receipts of a block, which must have some, and does not keep them.
    pub(super) async fn fetch_receipts(
        &self,
        terms: FetchTerms,
        body: &Arc<ProvenBody>,
    ) -> Result<Arc<ProvenReceipts>, Failure> {
        let block = block_of(body);
        let call = self.on_any_branch(block, encode::block_receipts(&block));
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
        fetched.map(Arc::new).map_err(not_fetched)
    }

    async fn fetch_single_receipts(
        &self,
        terms: FetchTerms,
        body: &Arc<ProvenBody>,
    ) -> Result<ProvenReceipts, NotFetched> {
        let calls: Vec<Call> =
            body.transactions().iter().map(|transaction| encode::receipt(*transaction.tx_hash())).collect();
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
        let Some(threads) = self.threads.as_ref().filter(|_| bytes > PROVEN_AT_ONCE_BYTES_MAX) else {
            let proof = prove();
            count(&proof);
            return Proving::Done(proof);
        };
        Proving::Elsewhere(Box::pin(async move {
            let proof = threads.run(account, prove).await?;
            count(&proof);
            Some(proof)
        }))
    }
}

pub(super) fn block_of(body: &ProvenBody) -> BlockRef {
    BlockRef { number: body.header().number, hash: body.hash() }
}

fn bytes_of(deliveries: &[Bytes]) -> usize {
    deliveries.iter().map(Bytes::len).sum()
}

pub(super) fn not_fetched(reason: NotFetched) -> Failure {
    match reason {
        NotFetched::Unavailable | NotFetched::Lacking | NotFetched::Deadline => Failure::Unavailable,
        NotFetched::Busy => Failure::OverCapacity,
        NotFetched::UnknownType(transaction_type) => Failure::CannotBeProven { transaction_type },
    }
}
