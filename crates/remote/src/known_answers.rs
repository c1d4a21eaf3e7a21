//! Answers that nobody has to be asked for: what the gateway knows itself, cached answers, and receipts that are not there.

mod absent; // receipts that are not there yet

use std::sync::Arc;

use bytes::Bytes;
use methods::{BlockRef, Cacheable, GatewayQuery, Method, Query};
use nodes::{CanonicalChain, Standing, TrustMark};
use resources::AccountId;
use sources::{Answer, Cache, CacheLookup, CachedAnswer, Failure, Origin, Verification};

use super::block_ids::head;
use super::blocks::Blocks;
use super::fetched::{CacheDecision, Fetched, NULL, answer, at_head, cached_answer, holds};
use super::settings::StateMode;
use super::state::State;
use super::workers::COPIED_AT_ONCE_BYTES_MAX;
use crate::call_context::CallContext;
use absent::{AbsentReceipt, AbsentReceipts};

/// Answers that nobody has to be asked for.
pub(crate) struct KnownAnswers {
    cache: Arc<Cache>,
    absent: AbsentReceipts,
    blocks: Arc<Blocks>,
    state: Arc<State>,
}

impl KnownAnswers {
    pub(super) fn new(cache: Arc<Cache>, blocks: Arc<Blocks>, state: Arc<State>) -> Self {
        Self { cache, absent: AbsentReceipts::default(), blocks, state }
    }

    /// The answer to a query whose blocks are pinned to `chain`, if nobody has to be asked for it.
    pub(crate) fn get(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        method: &Method,
        query: &Query<BlockRef>,
    ) -> Option<Result<Answer, Failure>> {
        if let Some(result) = self.of_gateway(head(chain), query) {
            return Some(Ok(answer(Origin::Cache, Some(head(chain)), self.blocks.by_quorum(), result)));
        }
        let asked = CacheLookup { query, head: at_head(chain, method) };
        let Some(cached) = self.cache.get(&asked).filter(|cached| self.is_good(chain, cached)) else {
            let absent = self.absent_receipt(chain, query)?;
            return (self.blocks.pool.standing(absent.trust) == Standing::Good)
                .then(|| Ok(absent_answer(absent)));
        };
        Some(self.lend(account, &cached))
    }

    fn lend(&self, account: AccountId, cached: &CachedAnswer) -> Result<Answer, Failure> {
        let result = self.blocks.workers.memory.of(account).lend(&cached.result, &cached.readers)?;
        Ok(answer(Origin::Cache, cached.block, cached.verified, result))
    }

    /// Whether a cached answer is still valid: the block it depends on is canonical, and what only nodes have said need not be
    /// asked again.
    fn is_good(&self, chain: &CanonicalChain, cached: &CachedAnswer) -> bool {
        holds(chain, cached)
            && cached.trust.is_none_or(|trust| self.blocks.pool.standing(trust) == Standing::Good)
            && cached.block.is_none_or(|block| self.blocks.is_good_number(chain, block.number))
    }

    /// The entry for a receipt that is not there at this head.
    fn absent_receipt(&self, chain: &CanonicalChain, query: &Query<BlockRef>) -> Option<AbsentReceipt> {
        self.absent.get(head(chain), &query.receipt()?)
    }

    /// An answer that was confirmed before and has to be confirmed again, for which too few nodes answer. It is served for a
    /// few seconds before they are asked once more.
    pub(super) fn expired(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        method: &Method,
        query: &Query<BlockRef>,
    ) -> Option<Result<Answer, Failure>> {
        let is_expired = |trust: &TrustMark| self.blocks.pool.standing(*trust) != Standing::Void;
        if let Some(absent) = self.absent_receipt(chain, query).filter(|absent| is_expired(&absent.trust)) {
            let trust = self.blocks.pool.prolonged(absent.trust);
            let prolonged = AbsentReceipt { trust, ..absent };
            self.absent.add(chain.epoch(), head(chain), query.receipt()?, prolonged);
            return Some(Ok(absent_answer(absent)));
        }
        let asked = CacheLookup { query, head: at_head(chain, method) };
        let cached = self.cache.get(&asked).filter(|cached| holds(chain, cached))?;
        if cached.trust.is_none() {
            // It is proven, and which block it is about may have been kept meanwhile.
            return self.is_good(chain, &cached).then(|| self.lend(account, &cached));
        }
        let trust = self.blocks.pool.prolonged(cached.trust.filter(is_expired)?);
        let lent = self.lend(account, &cached);
        self.cache.insert(asked.key(), CachedAnswer { trust: Some(trust), ..cached });
        Some(lent)
    }

    /// The answer to a query that needs nobody. `None` for all others, and for the chain id before any node has shown it.
    fn of_gateway(&self, head: BlockRef, query: &Query<BlockRef>) -> Option<Bytes> {
        let Query::Gateway(query) = query else { return None };
        Some(match query {
            GatewayQuery::ChainId => format!("\"{:#x}\"", self.blocks.chain_id()?).into(),
            GatewayQuery::NetVersion => format!("\"{}\"", self.blocks.chain_id()?).into(),
            GatewayQuery::BlockNumber => format!("\"{:#x}\"", head.number).into(),
            GatewayQuery::Syncing => Bytes::from_static(b"false"),
            GatewayQuery::ClientVersion => Bytes::from_static(methods::CLIENT_VERSION.as_bytes()),
            GatewayQuery::Discover => Bytes::from_static(methods::OPENRPC.as_bytes()),
        })
    }

    /// Caches what nodes have said, who were asked with this trust mark.
    pub(super) async fn insert(
        &self,
        context: CallContext<'_>,
        method: &Method,
        lookup: CacheLookup<'_>,
        fetched: &Fetched,
        mut asked: TrustMark,
    ) {
        let chain = context.chain;
        // Nobody had this receipt at the same head. Nodes that may lack what is old contradict nothing.
        if fetched.block.is_some()
            && let Some(absent) = self.absent_receipt(chain, lookup.query)
            && absent.verified == self.blocks.by_quorum()
        {
            self.blocks.pool.record_correction(&mut asked);
        }
        match fetched.cache {
            CacheDecision::On(block) if method.rules.cacheable != Cacheable::Never => {
                let cached = cached_answer(chain, &fetched.result, block, fetched.verified, fetched.trust);
                // An answer about a side block would never count as canonical.
                if holds(chain, &cached) {
                    self.cache_answer(context.account, lookup, cached).await;
                }
            }
            CacheDecision::Absent if self.cache.is_on() => {
                if let Some(hash) = lookup.query.receipt() {
                    let absent = AbsentReceipt { verified: fetched.verified, trust: asked };
                    self.absent.add(chain.epoch(), head(chain), hash, absent);
                }
            }
            CacheDecision::On(_) | CacheDecision::Absent | CacheDecision::No => {}
        }
    }

    /// Caches a copy: a result is a slice of all that came with it, whose memory is wanted for the next reply.
    async fn cache_answer(&self, account: AccountId, asked: CacheLookup<'_>, cached: CachedAnswer) {
        if self.cache.is_on() && self.may_cache(cached.verified) {
            let (key, bytes, cache) = (asked.key(), cached.result.len(), Arc::clone(&self.cache));
            let copy = move || {
                let result = Bytes::copy_from_slice(&cached.result);
                cache.insert(key, CachedAnswer { result, ..cached });
            };
            // A caller whose account has used up its share of the pool gets the answer, but it is not cached.
            let _refused =
                self.blocks.workers.run_sized(account, bytes, COPIED_AT_ONCE_BYTES_MAX, copy).await;
        }
    }

    /// Whether answers that are verified as far as this may be cached. Where nodes must agree, the answer of one node may not,
    /// unless one node is the quorum.
    fn may_cache(&self, verified: Verification) -> bool {
        verified > Verification::None
            || self.state.mode == StateMode::Trust
            || !self.blocks.workers.integrity.proves()
            || self.blocks.by_quorum() == Verification::None
    }
}

fn absent_answer(absent: AbsentReceipt) -> Answer {
    answer(Origin::Cache, None, absent.verified, NULL)
}
