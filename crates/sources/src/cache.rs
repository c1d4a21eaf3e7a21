//! Cached answers, by what they depend on.
//!
//! A key is the whole question with its blocks pinned by hash, so an answer for a block that was reorganised away is not found
//! by a number or a tag: these mean another hash. Two kinds of questions name no block. Those about the head are cached under
//! the head's hash. Those about a transaction are cached together with the block that it is in, and are answers only while that
//! block is canonical. Answers that are proven do not expire by time.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use alloy_primitives::B256;
use bytes::Bytes;
use foldhash::quality::RandomState;
use methods::{BlockRef, GatewayQuery, Query};
use nodes::TrustMark;
use quick_cache::{Equivalent, Lifecycle, Weighter, sync::Cache as Store};
use resources::ChargedReaders;

use crate::provenance::Verification;

/// The key of a cached answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CacheKey {
    /// The question names its blocks, or is about a transaction.
    Query(Query<BlockRef>),
    /// The question is about the head, which is this.
    AtHead(Query<BlockRef>, B256),
}

/// A question that is looked up without being copied.
#[derive(Clone, Copy, Debug)]
pub struct CacheLookup<'a> {
    pub query: &'a Query<BlockRef>,
    /// The head, for questions that are about it.
    pub head: Option<B256>,
}

/// The query of a key of which only the variant matters.
const ANY_QUERY: Query<BlockRef> = Query::Gateway(GatewayQuery::ChainId);

impl Hash for CacheLookup<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As the derived hash of a key does it: the variant first, then its fields.
        match self.head {
            None => {
                std::mem::discriminant(&CacheKey::Query(ANY_QUERY)).hash(state);
                self.query.hash(state);
            }
            Some(head) => {
                std::mem::discriminant(&CacheKey::AtHead(ANY_QUERY, B256::ZERO)).hash(state);
                self.query.hash(state);
                head.hash(state);
            }
        }
    }
}

impl Equivalent<CacheKey> for CacheLookup<'_> {
    fn equivalent(&self, key: &CacheKey) -> bool {
        match (key, self.head) {
            (CacheKey::Query(query), None) => query == self.query,
            (CacheKey::AtHead(query, at), Some(head)) => *at == head && query == self.query,
            _ => false,
        }
    }
}

impl CacheLookup<'_> {
    pub fn key(&self) -> CacheKey {
        match self.head {
            None => CacheKey::Query(self.query.clone()),
            Some(head) => CacheKey::AtHead(self.query.clone(), head),
        }
    }
}

/// An answer in the cache.
#[derive(Clone, Debug)]
pub struct CachedAnswer {
    pub result: Bytes,
    /// The block at which it is true.
    pub block: Option<BlockRef>,
    pub verified: Verification,
    /// How long it is taken for true, if nothing proves it.
    pub trust: Option<TrustMark>,
    /// The epoch in which it was cached, if its block was below the view's window even then. A block that was not may
    /// have lost its place on its way down there.
    pub deep_in: Option<u64>,
    pub readers: ChargedReaders,
}

/// All cached answers, within a bound on their bytes.
pub struct Cache {
    // The hasher is keyed: callers choose what is hashed here.
    store: Store<CacheKey, CachedAnswer, AnswerWeight, RandomState, Evictions>,
    hasher: RandomState,
    /// Hashes of recent look-ups that found nothing, each at the index that it selects.
    missed: Box<[AtomicU64]>,
    counts: Arc<CacheCounts>,
    entry_bytes_max: u64,
}

/// Counters of the cache, for the metrics.
#[derive(Debug, Default)]
pub struct CacheCounts {
    pub hits: AtomicU64,
    pub misses: AtomicU64,
    pub evictions: AtomicU64,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

/// Bytes of an entry beside its text: the key, its slots in the tables, the allocations.
const ENTRY_BYTES: u64 = 400;

/// One answer may take this part of the cache.
const ENTRY_SHARE: u64 = 8;

/// Bytes of a typical answer, which give the first size of the table.
const ENTRY_BYTES_USUAL: u64 = 2_048;

/// Look-ups that found nothing and are remembered: some seconds of a busy gateway.
const MISSES_REMEMBERED: usize = 1 << 16;

impl Cache {
    pub fn new(bytes_max: u64) -> Self {
        let counts = Arc::<CacheCounts>::default();
        let entries = usize::try_from(bytes_max / ENTRY_BYTES_USUAL).unwrap_or(usize::MAX).max(16);
        let evictions = Evictions(Arc::clone(&counts));
        let hasher = RandomState::default();
        let store = Store::with(entries, bytes_max, AnswerWeight, hasher.clone(), evictions);
        let missed = std::iter::repeat_with(AtomicU64::default).take(MISSES_REMEMBERED).collect();
        Self { store, hasher, missed, counts, entry_bytes_max: bytes_max / ENTRY_SHARE }
    }

    /// Whether anything is cached at all.
    pub fn is_on(&self) -> bool {
        self.entry_bytes_max > 0
    }

    pub fn get(&self, asked: &CacheLookup<'_>) -> Option<CachedAnswer> {
        if !self.is_on() {
            return None;
        }
        let found = self.store.get(asked);
        let count = if found.is_some() { &self.counts.hits } else { &self.counts.misses };
        count.fetch_add(1, Relaxed);
        found
    }

    /// Records that it was not found, and says whether the same happened a short while ago. An answer that is requested once, as
    /// by a caller who reads a whole chain, is not worth caching.
    pub fn record_miss(&self, asked: &CacheLookup<'_>) -> bool {
        let hash = self.hasher.hash_one(asked);
        self.missed[hash as usize % self.missed.len()].swap(hash, Relaxed) == hash
    }

    /// Caches an answer, unless it would push out too many others.
    pub fn insert(&self, key: CacheKey, cached: CachedAnswer) {
        if AnswerWeight.weight(&key, &cached) <= self.entry_bytes_max {
            self.store.insert(key, cached);
        }
    }

    pub fn remove(&self, asked: &CacheLookup<'_>) {
        self.store.remove(asked);
    }

    pub fn bytes(&self) -> u64 {
        self.store.weight()
    }

    pub fn counts(&self) -> &CacheCounts {
        &self.counts
    }
}

/// An entry weighs its text and what is around it.
#[derive(Clone, Debug)]
struct AnswerWeight;

impl Weighter<CacheKey, CachedAnswer> for AnswerWeight {
    fn weight(&self, key: &CacheKey, cached: &CachedAnswer) -> u64 {
        ENTRY_BYTES + (key.heap_bytes() + cached.result.len()) as u64
    }
}

impl CacheKey {
    /// Bytes that a key holds on the heap.
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Query(query) | Self::AtHead(query, _) => query.heap_bytes(),
        }
    }
}

/// Counts what is pushed out.
#[derive(Clone, Debug)]
struct Evictions(Arc<CacheCounts>);

impl Lifecycle<CacheKey, CachedAnswer> for Evictions {
    type RequestState = ();

    fn begin_request(&self) {}

    fn on_evict(&self, (): &mut (), _key: CacheKey, _cached: CachedAnswer) {
        self.0.evictions.fetch_add(1, Relaxed);
    }

    fn end_request(&self, (): ()) {}
}

#[cfg(test)]
mod tests {
    use methods::{StateQuery, StateValue};

    use super::*;

    fn storage(position: u8, hash: u8) -> Query<BlockRef> {
        let at = BlockRef { number: 7, hash: B256::repeat_byte(hash) };
        let value = StateValue::Storage { position: B256::repeat_byte(position) };
        Query::State(StateQuery { address: Default::default(), at, value })
    }

    fn cached_answer(text: &str) -> CachedAnswer {
        let result = Bytes::copy_from_slice(text.as_bytes());
        let verified = Verification::None;
        CachedAnswer {
            result,
            block: None,
            verified,
            trust: None,
            deep_in: None,
            readers: ChargedReaders::default(),
        }
    }

    #[test]
    fn a_question_is_found_under_the_key_that_it_makes() {
        let hasher = RandomState::default();
        let query = storage(1, 2);
        for head in [None, Some(B256::repeat_byte(9))] {
            let asked = CacheLookup { query: &query, head };
            assert_eq!(hasher.hash_one(asked), hasher.hash_one(asked.key()));
            assert!(asked.equivalent(&asked.key()));
        }
    }

    #[test]
    fn the_same_question_at_another_block_is_another_question() {
        let cache = Cache::new(1 << 20);
        let (old, new) = (storage(1, 2), storage(1, 3));
        let asked = CacheLookup { query: &old, head: None };
        cache.insert(asked.key(), cached_answer("1"));
        assert_eq!(cache.get(&asked).unwrap().result, "1");
        assert!(cache.get(&CacheLookup { query: &new, head: None }).is_none());
        assert!(cache.get(&CacheLookup { query: &old, head: Some(B256::ZERO) }).is_none());
    }

    #[test]
    fn the_bytes_stay_within_their_bound() {
        let cache = Cache::new(1 << 20);
        for number in 0..50_000_u32 {
            let position = B256::left_padding_from(&number.to_be_bytes());
            let at = BlockRef { number: 7, hash: B256::ZERO };
            let value = StateValue::Storage { position };
            let query = Query::State(StateQuery { address: Default::default(), at, value });
            cache.insert(CacheLookup { query: &query, head: None }.key(), cached_answer(&"x".repeat(100)));
        }
        assert!(cache.bytes() <= 1 << 20);
        assert!(cache.counts().evictions.load(Relaxed) > 40_000);
    }

    #[test]
    fn a_question_is_known_by_its_second_time() {
        let cache = Cache::new(1 << 20);
        let (first, second) = (storage(1, 2), storage(1, 3));
        let missed = |query| cache.record_miss(&CacheLookup { query, head: None });
        assert_eq!([missed(&first), missed(&second), missed(&first)], [false, false, true]);
    }

    #[test]
    fn an_answer_that_would_push_out_most_others_is_not_cached() {
        let cache = Cache::new(1 << 20);
        let query = storage(1, 1);
        let asked = CacheLookup { query: &query, head: None };
        cache.insert(asked.key(), cached_answer(&"x".repeat(1 << 19)));
        assert!(cache.get(&asked).is_none());
    }
}
