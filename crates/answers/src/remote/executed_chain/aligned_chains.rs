//! Archive and view as one request sees them.

use std::ptr::addr_eq;
use std::sync::Arc;

use alloy_primitives::B256;
use methods::{BlockParam, BlockRef, Query, Tag};
use nodes::{CanonicalChain, Pool};

use crate::budget::AnswerBudget;
use crate::failure::Failure;
use crate::provenance::Provenance;
use crate::remote::block_ids::block_ref;
use crate::view::{ChainView, Source};

/// A snapshot of the archive beside a picture of the view.
pub(super) struct AlignedChains {
    snapshot: Arc<dyn Source>,
    /// `None` before any node has shown its chain.
    chain: Option<Arc<CanonicalChain>>,
    /// The newest block that both have; `None` where that is not known.
    common: Option<u64>,
}

impl AlignedChains {
    pub(super) fn new(snapshot: Arc<dyn Source>, chain: Option<Arc<CanonicalChain>>) -> Self {
        let common = chain.as_ref().and_then(|chain| newest_common_block(&*snapshot, chain));
        Self { snapshot, chain, common }
    }

    pub(super) fn is_of(&self, snapshot: &Arc<dyn Source>, chain: Option<&Arc<CanonicalChain>>) -> bool {
        let is_same_chain = match (&self.chain, chain) {
            (Some(ours), Some(other)) => Arc::ptr_eq(ours, other),
            (None, None) => true,
            _ => false,
        };
        // Below the window, whether the archive's head is canonical may become known later.
        let is_settled =
            self.common.is_some() || chain.is_none_or(|chain| self.snapshot.head().number >= chain.lowest());
        is_same_chain && is_settled && addr_eq(Arc::as_ptr(&self.snapshot), Arc::as_ptr(snapshot))
    }

    /// Whether the archive has the newest block of the view, and no other.
    fn is_at_head(&self) -> bool {
        match &self.chain {
            Some(chain) => block_ref(chain.head()) == self.snapshot.head(),
            None => true,
        }
    }

    /// Whether the view goes on where the archive ends.
    fn is_only_behind(&self) -> bool {
        self.common == Some(self.snapshot.head().number)
    }

    /// Whether the archive and the view have the same block of this name.
    fn has(&self, block: BlockParam) -> bool {
        let Some((chain, common)) = self.chain.as_ref().zip(self.common) else { return false };
        let is_common = |mark: Option<nodes::BlockId>| mark.is_some_and(|mark| mark.number <= common);
        match block {
            BlockParam::Number(number) => number <= common,
            BlockParam::Hash { hash, .. } => self
                .snapshot
                .block_by_hash(hash)
                .is_ok_and(|found| found.is_some_and(|at| at.number <= common)),
            BlockParam::Tag(Tag::Earliest) => true,
            BlockParam::Tag(Tag::Finalized) => is_common(chain.finalized()),
            BlockParam::Tag(Tag::Safe) => is_common(chain.safe()),
            BlockParam::Tag(Tag::Latest | Tag::Pending) => false,
        }
    }

    /// Whether a block is named that was reorganised away. The archive does not have it any more.
    fn is_side_block(&self, block: BlockParam) -> bool {
        let BlockParam::Hash { hash, .. } = block else { return false };
        let is_side_block = |chain: &Arc<CanonicalChain>| chain.side_block(&hash).is_some();
        self.chain.as_ref().is_some_and(is_side_block)
            && !self.snapshot.block_by_hash(hash).is_ok_and(|found| found.is_some())
    }

    /// A mark of the view, and never above what was executed.
    fn executed(&self, mark: fn(&CanonicalChain) -> Option<nodes::BlockId>) -> Option<BlockRef> {
        let (mark, head) =
            (block_ref(self.chain.as_ref().and_then(|chain| mark(chain))?), self.snapshot.head());
        Some(if mark.number > head.number { head } else { mark })
    }
}

/// The newest block that the archive and the view have in common.
fn newest_common_block(snapshot: &dyn Source, chain: &CanonicalChain) -> Option<u64> {
    let top = snapshot.head().number.min(chain.head().number);
    let lowest = top.min(chain.lowest());
    (lowest..=top).rev().find(|number| {
        let ours = snapshot.block_by_number(*number).ok().flatten();
        ours.is_some() && chain.by_number(*number).map(block_ref) == ours
    })
}

impl ChainView for AlignedChains {
    fn head(&self) -> BlockRef {
        self.snapshot.head()
    }

    fn finalized(&self) -> Option<BlockRef> {
        self.executed(CanonicalChain::finalized)
    }

    fn safe(&self) -> Option<BlockRef> {
        self.executed(CanonicalChain::safe)
    }

    fn block_by_number(&self, number: u64) -> Result<Option<BlockRef>, Failure> {
        self.snapshot.block_by_number(number)
    }

    fn block_by_hash(&self, hash: B256) -> Result<Option<BlockRef>, Failure> {
        self.snapshot.block_by_hash(hash)
    }
}

impl Source for AlignedChains {
    fn answer(
        &self,
        query: &Query<BlockRef>,
        budget: &AnswerBudget,
        out: &mut Vec<u8>,
    ) -> Result<Provenance, Failure> {
        self.snapshot.answer(query, budget, out)
    }
}

/// The executed chain as one request sees it.
pub(crate) struct ExecutedView {
    chains: Arc<AlignedChains>,
    source: Arc<dyn Source>,
    answers_all: bool,
}

impl ExecutedView {
    pub(super) fn new(chains: Arc<AlignedChains>, pool: &Pool) -> Self {
        // When no node answers, an archive that is a little behind is better than nothing.
        let answers_all = chains.is_at_head() || chains.is_only_behind() && pool.all_unreachable();
        Self { source: Arc::clone(&chains) as Arc<dyn Source>, chains, answers_all }
    }

    /// Who answers a query from the archive, if it has all the blocks that are meant.
    pub(crate) fn source_for(&self, query: &Query<BlockParam>) -> Option<&Arc<dyn Source>> {
        let has_blocks = || {
            let mut blocks = query.blocks().peekable();
            blocks.peek().is_some() && blocks.all(|block| self.chains.has(block))
        };
        let is_ours = self.answers_all && !query.blocks().any(|block| self.chains.is_side_block(block));
        (is_ours || has_blocks()).then_some(&self.source)
    }

    pub(crate) fn canonical_chain(&self) -> Option<&Arc<CanonicalChain>> {
        self.chains.chain.as_ref()
    }

    pub(crate) fn head(&self) -> Option<BlockRef> {
        self.answers_all.then(|| self.source.head())
    }
}

impl std::fmt::Debug for ExecutedView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecutedView")
            .field("head", &self.source.head())
            .field("all", &self.answers_all)
            .finish()
    }
}
