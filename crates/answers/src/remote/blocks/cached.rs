//! Proven blocks in memory, and those that are being fetched.

use std::sync::Arc;

use alloy_primitives::B256;
use foldhash::quality::RandomState;
use methods::BlockRef;
use nodes::proven::{ProvenBody, ProvenHeader, ProvenReceipts, ProvenUncles};
use quick_cache::sync::Cache as Store;
use quick_cache::{DefaultHashBuilder, Weighter};

use crate::flights::Flights;
use crate::remote::asking::FetchKey;
use crate::remote::block_ids::block_of;

/// Transactions whose block is remembered take this part of the memory for proven blocks.
const PLACES_SHARE: u64 = 8;

/// Bytes of a remembered transaction: the key, the block, and their slots in the table.
const PLACE_BYTES: u64 = 128;

/// Bytes of a typical part of a block, which give the first size of the table.
const PART_BYTES_USUAL: u64 = 64 << 10;

/// Proven blocks in memory, and those that are being fetched.
pub(in crate::remote) struct CachedBlocks {
    parts: Store<(PartKind, B256), Part, BlockPartWeight>,
    /// The block of a transaction.
    places: Store<B256, BlockRef, quick_cache::UnitWeighter, RandomState>,
    is_on: bool,
    pub(in crate::remote) body_fetches: Flights<FetchKey, Arc<ProvenBody>>,
    pub(in crate::remote) uncles_fetches: Flights<FetchKey, Arc<ProvenUncles>>,
    pub(in crate::remote) receipts_fetches: Flights<FetchKey, Arc<ProvenReceipts>>,
    /// Headers from a block down to that of a number.
    pub(in crate::remote) header_fetches: Flights<(FetchKey, u64), Arc<[Arc<ProvenHeader>]>>,
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
    pub(in crate::remote) fn new(bytes_max: u64) -> Self {
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
    pub(in crate::remote) fn place(&self, transaction: &B256) -> Option<BlockRef> {
        self.places.get(transaction)
    }

    fn insert(&self, kind: PartKind, hash: B256, part: Part) {
        if self.is_on {
            self.parts.insert((kind, hash), part);
        }
    }

    pub(in crate::remote) fn insert_body(&self, body: &Arc<ProvenBody>) {
        if !self.is_on {
            return;
        }
        let block = block_of(body);
        for transaction in body.transactions() {
            self.places.insert(*transaction.tx_hash(), block);
        }
        self.insert(PartKind::Body, block.hash, Part::Body(Arc::clone(body)));
    }

    pub(in crate::remote) fn insert_uncles(&self, hash: B256, uncles: &Arc<ProvenUncles>) {
        self.insert(PartKind::Uncles, hash, Part::Uncles(Arc::clone(uncles)));
    }

    pub(in crate::remote) fn insert_receipts(&self, hash: B256, receipts: &Arc<ProvenReceipts>) {
        self.insert(PartKind::Receipts, hash, Part::Receipts(Arc::clone(receipts)));
    }

    pub(in crate::remote) fn header(&self, hash: B256) -> Option<Arc<ProvenHeader>> {
        match self.parts.get(&(PartKind::Header, hash)) {
            Some(Part::Header(header)) => Some(header),
            _ => None,
        }
    }

    pub(in crate::remote) fn uncles(&self, hash: B256) -> Option<Arc<ProvenUncles>> {
        match self.parts.get(&(PartKind::Uncles, hash)) {
            Some(Part::Uncles(uncles)) => Some(uncles),
            _ => None,
        }
    }

    pub(in crate::remote) fn receipts(&self, hash: B256) -> Option<Arc<ProvenReceipts>> {
        match self.parts.get(&(PartKind::Receipts, hash)) {
            Some(Part::Receipts(receipts)) => Some(receipts),
            _ => None,
        }
    }

    pub(in crate::remote) fn insert_header(&self, header: Arc<ProvenHeader>) {
        self.insert(PartKind::Header, header.id.hash, Part::Header(header));
    }

    pub(in crate::remote) fn body(&self, hash: B256) -> Option<Arc<ProvenBody>> {
        match self.parts.get(&(PartKind::Body, hash)) {
            Some(Part::Body(body)) => Some(body),
            _ => None,
        }
    }
}
