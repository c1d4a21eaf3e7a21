//! Answers that were fetched, and how long they may be cached.

use alloy_primitives::B256;
use bytes::Bytes;
use methods::{BlockRef, Cacheable, Method};
use nodes::{CanonicalChain, TrustMark};
use resources::ChargedReaders;
use sources::{Answer, CachedAnswer, Json, Origin, Provenance, Verification};

use super::block_ids::{block_ref, head};

/// An answer, and how far it is verified.
pub(super) struct Fetched {
    pub(super) result: Bytes,
    /// The block at which it is true.
    pub(super) block: Option<BlockRef>,
    pub(super) verified: Verification,
    pub(super) cache: CacheDecision,
    /// How long it is taken for true, if nothing proves it.
    pub(super) trust: Option<TrustMark>,
}

impl Fetched {
    /// An answer that the hash of this block commits to. It may be cached as long as the block is canonical.
    pub(super) fn proven(result: Bytes, block: Option<BlockRef>) -> Self {
        Self { result, block, verified: Verification::Proven, cache: CacheDecision::On(block), trust: None }
    }
}

/// Whether an answer may be cached.
pub(super) enum CacheDecision {
    No,
    /// As long as this block is canonical; without a block, the key of the answer is enough.
    On(Option<BlockRef>),
    /// It says that there is nothing, and will until the next head.
    Absent,
}

pub(super) const NULL: Bytes = Bytes::from_static(b"null");

/// A result in a buffer of its own.
pub(super) fn written(write: impl FnOnce(&mut Json<'_>)) -> Bytes {
    let mut out = Vec::new();
    write(&mut Json(&mut out));
    out.into()
}

/// An answer as it is cached.
pub(super) fn cached_answer(
    chain: &CanonicalChain,
    result: &Bytes,
    block: Option<BlockRef>,
    verified: Verification,
    trust: Option<TrustMark>,
) -> CachedAnswer {
    let (result, deep_in, readers) = (result.clone(), deep_in(chain, block), ChargedReaders::default());
    CachedAnswer { result, block, verified, trust, deep_in, readers }
}

/// The head, if answers of this method depend on it.
pub(super) fn at_head(chain: &CanonicalChain, method: &Method) -> Option<B256> {
    (method.rules.cacheable == Cacheable::Head).then(|| head(chain).hash)
}

/// Whether the block of a cached answer is still canonical.
pub(super) fn holds(chain: &CanonicalChain, cached: &CachedAnswer) -> bool {
    let Some(block) = cached.block else { return true };
    match chain.by_number(block.number) {
        Some(canonical) => block_ref(canonical) == block,
        // Nobody remembers which block has this number. What nodes said of it expires, and the rest is proven again.
        None => cached.trust.is_some() && cached.deep_in == Some(chain.epoch()),
    }
}

/// The epoch in which the number of a block cannot change any more, if it is that deep.
fn deep_in(chain: &CanonicalChain, block: Option<BlockRef>) -> Option<u64> {
    block.filter(|block| block.number < chain.lowest()).map(|_| chain.epoch())
}

/// An answer whose bytes are shared.
pub(super) fn answer(
    origin: Origin,
    block: Option<BlockRef>,
    verified: Verification,
    result: Bytes,
) -> Answer {
    Answer { provenance: Provenance { origin, block, verified, node: None }, shared: Some(result) }
}
