//! Archive and view as one request sees them.

use std::ptr::addr_eq;
use std::sync::Arc;

use alloy_primitives::B256;
use methods::{BlockParam, BlockRef, Query, Tag};
use nodes::{CanonicalChain, Pool};
use sources::{AnswerBudget, ChainView, Failure, Provenance, Source};

use crate::block_ids::block_ref;

/// A snapshot of the archive beside a picture of the view.
pub struct AlignedChains {
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

    /// The chain of the nodes; `None` before any node has shown it.
    pub fn canonical_chain(&self) -> Option<&Arc<CanonicalChain>> {
        self.chain.as_ref()
    }

    /// Whether the archive answers everything. When no node answers, one that is a little behind is better than nothing.
    pub fn answers_all(&self, pool: &Pool) -> bool {
        self.is_at_head() || self.is_only_behind() && pool.all_unreachable()
    }

    /// Whether the archive has all the blocks that a query means.
    pub fn has_blocks(&self, query: &Query<BlockParam>) -> bool {
        let mut blocks = query.blocks().peekable();
        blocks.peek().is_some() && blocks.all(|block| self.has(block))
    }

    /// Whether a query names a block that was reorganised away. The archive does not have it any more.
    pub fn is_about_side_block(&self, query: &Query<BlockParam>) -> bool {
        query.blocks().any(|block| self.is_side_block(block))
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

impl std::fmt::Debug for AlignedChains {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AlignedChains").field("head", &self.head()).finish_non_exhaustive()
    }
}
