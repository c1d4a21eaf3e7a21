//! The chain as a partner tells it, for one request.
//!
//! It stands in where nobody of our own can say which block is meant: before the first head, and for blocks below the
//! view's window during an outage. It ends with the request. Nothing of it becomes part of the view or of the cache.

use std::collections::HashMap;
use std::sync::Arc;

use alloy_primitives::B256;
use bytes::Bytes;
use methods::{BlockParam, BlockRef, Method, Tag};
use nodes::proven::{ProofFailure, Unproven};
use nodes::view::SeenBlock;
use nodes::{CanonicalChain, ChainFamily, Supplier, read_block};
use parking_lot::Mutex;
use resources::AccountId;
use tokio::time::Instant;

use super::block_ids::block_ref;
use super::block_ids::head;
use super::encode;
use super::pool_source::PoolSource;
use crate::failure::Failure;
use crate::view::ChainView;

/// The blocks that a partner has named, added to the chain that is known without it.
#[derive(Debug)]
pub(crate) struct PartnerView {
    /// The chain of our own nodes, or one of which only the partner's head is known. The same for all calls of the request.
    chain: Arc<CanonicalChain>,
    /// Whether `chain` is the partner's, because no node of our own has shown a chain.
    is_of_partner: bool,
    /// What the partner was asked for; `None` for a block that does not exist.
    named: Mutex<HashMap<BlockParam, Option<BlockRef>>>,
}

impl PartnerView {
    /// Begins with the head: our own if we have one, and else the partner's.
    pub(super) async fn begin(
        remote: &PoolSource,
        chain: Option<&Arc<CanonicalChain>>,
        method: &'static Method,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        let chain = match chain {
            Some(chain) => return Ok(Self::of(Arc::clone(chain), false)),
            None => remote.block_at_partner(method, LATEST, deadline).await?.ok_or(Failure::Unavailable)?,
        };
        Ok(Self::of(Arc::new(CanonicalChain::of_head((*chain).clone(), None)), true))
    }

    fn of(chain: Arc<CanonicalChain>, is_of_partner: bool) -> Self {
        Self { chain, is_of_partner, named: Mutex::default() }
    }

    pub(super) fn canonical_chain(&self) -> &Arc<CanonicalChain> {
        &self.chain
    }

    /// The chain of our own nodes, if they have shown one.
    pub(super) fn own(&self) -> Option<&Arc<CanonicalChain>> {
        Some(&self.chain).filter(|_| !self.is_of_partner)
    }

    /// Makes sure that this can say what block is meant, if there is such a block.
    pub(super) async fn learn(
        &self,
        remote: &PoolSource,
        method: &'static Method,
        block: BlockParam,
        deadline: Instant,
    ) -> Result<(), Failure> {
        let block = plain(block);
        if self.knows(block) {
            return Ok(());
        }
        let told = match block {
            BlockParam::Hash { hash, .. } => self.learn_hash(remote, method, hash, deadline).await?,
            other => remote.block_at_partner(method, other, deadline).await?.map(|told| block_ref(told.id)),
        };
        self.named.lock().insert(block, told);
        Ok(())
    }

    fn knows(&self, block: BlockParam) -> bool {
        let is_known = match block {
            BlockParam::Tag(Tag::Latest) => true,
            BlockParam::Tag(_) => !self.is_of_partner,
            // Those of the window, or one that is not there yet.
            BlockParam::Number(number) => self.chain.knows_number(number),
            BlockParam::Hash { hash, .. } => self.chain.by_hash(&hash).is_some(),
        };
        is_known || self.named.lock().contains_key(&block)
    }

    /// A hash proves its block, and says nothing about whether that is on the chain: its number does.
    async fn learn_hash(
        &self,
        remote: &PoolSource,
        method: &'static Method,
        hash: B256,
        deadline: Instant,
    ) -> Result<Option<BlockRef>, Failure> {
        let Some(block) = remote.block_at_partner(method, by_hash(hash), deadline).await? else {
            return Ok(None);
        };
        let block = block_ref(block.id);
        // Whatever is that high and on the chain is known without asking.
        if block.number >= self.chain.lowest() {
            return Ok(None);
        }
        let canonical = match self.chain.by_number(block.number) {
            Some(known) => Some(block_ref(known)),
            None => {
                let told =
                    remote.block_at_partner(method, BlockParam::Number(block.number), deadline).await?;
                told.map(|told| block_ref(told.id))
            }
        };
        Ok(canonical.filter(|canonical| *canonical == block))
    }

    fn named(&self, block: BlockParam) -> Option<BlockRef> {
        self.named.lock().get(&block).copied().flatten()
    }
}

impl ChainView for PartnerView {
    fn head(&self) -> BlockRef {
        head(&self.chain)
    }

    fn finalized(&self) -> Option<BlockRef> {
        let known = self.chain.finalized().map(block_ref);
        known.or_else(|| self.named(BlockParam::Tag(Tag::Finalized)))
    }

    fn safe(&self) -> Option<BlockRef> {
        let known = self.chain.safe().map(block_ref);
        known.or_else(|| self.named(BlockParam::Tag(Tag::Safe)))
    }

    fn block_by_number(&self, number: u64) -> Result<Option<BlockRef>, Failure> {
        let known = self.chain.by_number(number).map(block_ref);
        Ok(known.or_else(|| self.named(BlockParam::Number(number))))
    }

    fn block_by_hash(&self, hash: B256) -> Result<Option<BlockRef>, Failure> {
        let known = self.chain.by_hash(&hash).map(block_ref);
        Ok(known.or_else(|| self.named(by_hash(hash))))
    }
}

impl PoolSource {
    /// The block that a partner names; `None` if it says that there is none. `method` is what the caller asks.
    async fn block_at_partner(
        &self,
        method: &'static Method,
        block: BlockParam,
        deadline: Instant,
    ) -> Result<Option<Arc<SeenBlock>>, Failure> {
        let ask = || self.ask_for_block(method, block, deadline);
        self.partner_lookups.share((method.name, block), deadline, ask).await
    }

    async fn ask_for_block(
        &self,
        method: &Method,
        block: BlockParam,
        deadline: Instant,
    ) -> Result<Option<Arc<SeenBlock>>, Failure> {
        let check_hash = self.family == ChainFamily::Ethereum;
        let checkpoint = self.pool.view().checkpoint();
        let prove = |delivery: &Bytes| {
            let delivery = delivery.clone();
            self.proving(AccountId::NONE, delivery.len(), move || {
                let told = read_block(&delivery, check_hash)?;
                let is_asked_for = |told: &SeenBlock| match block {
                    BlockParam::Hash { hash, .. } => told.id.hash == hash,
                    BlockParam::Number(number) => told.id.number == number,
                    BlockParam::Tag(_) => true,
                };
                let contradicts = |told: &SeenBlock| {
                    checkpoint.is_some_and(|sure| sure.number == told.id.number && sure != told.id)
                };
                match told {
                    // Numbers are asked for only below the head: the partner has dropped it.
                    None if matches!(block, BlockParam::Number(_)) => Err(Unproven::NotThere),
                    Some(told) if !is_asked_for(&told) || contradicts(&told) => {
                        Err(Unproven::Wrong(ProofFailure::HeaderHash))
                    }
                    told => Ok(told.map(Arc::new)),
                }
            })
        };
        let supplier = Supplier::Partners { method: method.name };
        let told = self.pool.fetch(supplier, &encode::lookup(block), &prove, deadline).await;
        told.map_err(|_| Failure::Unavailable)
    }
}

const LATEST: BlockParam = BlockParam::Tag(Tag::Latest);

fn by_hash(hash: B256) -> BlockParam {
    BlockParam::with_hash(hash)
}

/// One name for what callers may write in several ways.
fn plain(block: BlockParam) -> BlockParam {
    match block {
        BlockParam::Tag(Tag::Pending) => LATEST,
        BlockParam::Tag(Tag::Earliest) => BlockParam::Number(0),
        BlockParam::Hash { hash, .. } => by_hash(hash),
        other => other,
    }
}
