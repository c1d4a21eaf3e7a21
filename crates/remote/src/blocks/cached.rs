//! Proven blocks in memory, and those that are being fetched.

use std::sync::Arc;

use alloy_primitives::B256;
use foldhash::quality::RandomState;
use methods::BlockRef;
use nodes::proven::{ProvenBody, ProvenHeader, ProvenReceipts, ProvenUncles};
use quick_cache::sync::Cache as Store;
use quick_cache::{DefaultHashBuilder, Weighter};
use sources::Flights;

use crate::block_ids::block_of;
use crate::call_key::CallKey;

/// Transactions whose block is remembered take this part of the memory for proven blocks.
const PLACES_SHARE: u64 = 8;

/// Bytes of a remembered transaction: the key, the block, and their slots in the table.
const PLACE_BYTES: u64 = 128;

/// Bytes of a typical part of a block, which give the first size of the table.
const PART_BYTES_USUAL: u64 = 64 << 10;

/// Proven blocks in memory, and those that are being fetched.
pub(crate) struct CachedBlocks {
    parts: Store<(PartKind, B256), Part, BlockPartWeight>,
    /// The block of a transaction.
    places: Store<B256, BlockRef, quick_cache::UnitWeighter, RandomState>,
    is_on: bool,
    pub(crate) body_fetches: Flights<CallKey, Arc<ProvenBody>>,
    pub(crate) uncles_fetches: Flights<CallKey, Arc<ProvenUncles>>,
    pub(crate) receipts_fetches: Flights<CallKey, Arc<ProvenReceipts>>,
    /// Headers from a block down to that of a number.
    pub(crate) header_fetches: Flights<(CallKey, u64), Arc<[Arc<ProvenHeader>]>>,
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
struct BlockPartWeight;

impl Weighter<(PartKind, B256), Part> for BlockPartWeight {
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

impl CachedBlocks {
    /// Caches nothing where `bytes_max` is 0.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let for_places = bytes_max / PLACES_SHARE;
        let for_parts = bytes_max - for_places;
        let parts = usize::try_from(for_parts / PART_BYTES_USUAL).unwrap_or(usize::MAX).max(16);
        let places = for_places / PLACE_BYTES;
        let hasher = DefaultHashBuilder::default();
        Self {
            parts: Store::with(parts, for_parts, BlockPartWeight, hasher, Default::default()),
            // The hasher is keyed: callers choose what is looked up here.
            places: Store::with(
                usize::try_from(places).unwrap_or(usize::MAX).max(16),
                places,
                quick_cache::UnitWeighter,
                RandomState::default(),
                Default::default(),
            ),
            is_on: bytes_max > 0,
            body_fetches: Flights::default(),
            uncles_fetches: Flights::default(),
            receipts_fetches: Flights::default(),
            header_fetches: Flights::default(),
        }
    }

    /// The block that a transaction was found in. It need not be canonical any more.
    pub(crate) fn place(&self, transaction: &B256) -> Option<BlockRef> {
        self.places.get(transaction)
    }

    fn insert(&self, kind: PartKind, hash: B256, part: Part) {
        if self.is_on {
            self.parts.insert((kind, hash), part);
        }
    }

    pub(crate) fn insert_body(&self, body: &Arc<ProvenBody>) {
        if !self.is_on {
            return;
        }
        let block = block_of(body);
        for transaction in body.transactions() {
            self.places.insert(*transaction.tx_hash(), block);
        }
        self.insert(PartKind::Body, block.hash, Part::Body(Arc::clone(body)));
    }

    pub(crate) fn insert_uncles(&self, hash: B256, uncles: &Arc<ProvenUncles>) {
        self.insert(PartKind::Uncles, hash, Part::Uncles(Arc::clone(uncles)));
    }

    pub(crate) fn insert_receipts(&self, hash: B256, receipts: &Arc<ProvenReceipts>) {
        self.insert(PartKind::Receipts, hash, Part::Receipts(Arc::clone(receipts)));
    }

    pub(crate) fn header(&self, hash: B256) -> Option<Arc<ProvenHeader>> {
        match self.parts.get(&(PartKind::Header, hash)) {
            Some(Part::Header(header)) => Some(header),
            _ => None,
        }
    }

    pub(crate) fn uncles(&self, hash: B256) -> Option<Arc<ProvenUncles>> {
        match self.parts.get(&(PartKind::Uncles, hash)) {
            Some(Part::Uncles(uncles)) => Some(uncles),
            _ => None,
        }
    }

    pub(crate) fn receipts(&self, hash: B256) -> Option<Arc<ProvenReceipts>> {
        match self.parts.get(&(PartKind::Receipts, hash)) {
            Some(Part::Receipts(receipts)) => Some(receipts),
            _ => None,
        }
    }

    pub(crate) fn insert_header(&self, header: Arc<ProvenHeader>) {
        self.insert(PartKind::Header, header.id.hash, Part::Header(header));
    }

    pub(crate) fn body(&self, hash: B256) -> Option<Arc<ProvenBody>> {
        match self.parts.get(&(PartKind::Body, hash)) {
            Some(Part::Body(body)) => Some(body),
            _ => None,
        }
    }
}
