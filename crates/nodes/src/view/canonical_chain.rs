//! The canonical chain at one moment.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use alloy_primitives::map::B256Map;

use super::block::SeenBlock;
use super::deep_blocks::{DeepBlocks, DeepReader};
use crate::{BlockId, TrustMark};

/// The newest blocks, the head included, whose hashes are always known. They cover every reorganisation that a live network has
/// had, and the 128 states that a pruning node keeps.
pub const WINDOW_BLOCKS: usize = 256;

/// Blocks over which the block time is averaged: enough to even out whole seconds.
const BLOCK_TIME_BLOCKS: usize = 32;

/// The canonical chain at one moment. Whoever holds it sees one chain, whatever the nodes report in the meantime.
///
/// Head, window and marks are immutable. Blocks below the window are added when they become known, and are corrected if nodes
/// reported a wrong one.
#[derive(Clone, Debug)]
pub struct CanonicalChain {
    head: BlockId,
    pub(super) safe: Option<BlockId>,
    pub(super) finalized: Option<BlockId>,
    pub(super) genesis: Option<BlockId>,
    epoch: u64,
    /// How often the nodes have changed their mind about the chain in this epoch: by a reorganisation, or by moving a mark back.
    revisions: u64,
    /// The newest blocks, upwards, without gaps, never empty.
    window: Arc<[Arc<SeenBlock>]>,
    numbers: Arc<B256Map<u64>>,
    deep: Arc<DeepBlocks>,
}

impl CanonicalChain {
    /// The first chain of an epoch.
    pub(super) fn first(head: &Arc<SeenBlock>, below: Vec<Arc<SeenBlock>>, epoch: u64) -> Self {
        Self::new(head, below, epoch, Arc::default())
    }

    /// A chain of which only the newest block is known, and perhaps block 0.
    pub fn of_head(head: SeenBlock, genesis: Option<BlockId>) -> Self {
        Self { genesis, ..Self::first(&Arc::new(head), Vec::new(), u64::MAX) }
    }

    /// The chain after this one, with which it has a block in common. Blocks that leave the window or are reorganised away stay known.
    pub(super) fn next(&self, head: &Arc<SeenBlock>, below: Vec<Arc<SeenBlock>>) -> Self {
        let next = Self::new(head, below, self.epoch, Arc::clone(&self.deep));
        let lowest = next.lowest();
        self.window.iter().take_while(|block| block.id.number < lowest).for_each(|block| {
            next.deep.add_linked(block.id);
        });
        let mut revisions = self.revisions;
        if !next.has(&self.head.hash) {
            revisions += 1;
            let lost =
                self.window.iter().filter(|block| block.id.number >= lowest && !next.has(&block.id.hash));
            lost.for_each(|block| next.deep.add_side_block(block.id));
        }
        let Self { safe, finalized, genesis, .. } = *self;
        Self { safe, finalized, genesis, revisions, ..next }
    }

    /// This chain without the blocks above one of its window, after the nodes have gone back to that block.
    pub(super) fn rolled_back_to(&self, head: &BlockId) -> Option<Self> {
        let kept = self.window.iter().position(|block| block.id == *head)?;
        let (kept, removed) = self.window.split_at(kept + 1);
        let downwards = kept.iter().rev().skip(1).cloned().collect();
        let next = Self::new(kept.last()?, downwards, self.epoch, Arc::clone(&self.deep));
        removed.iter().for_each(|block| next.deep.add_side_block(block.id));
        let Self { safe, finalized, genesis, revisions, .. } = *self;
        Some(Self { safe, finalized, genesis, revisions: revisions + 1, ..next })
    }

    /// The chain after this one, with which it has no known block in common. Known numbers of deep blocks are dropped.
    pub(super) fn next_epoch(&self, head: &Arc<SeenBlock>, below: Vec<Arc<SeenBlock>>) -> Self {
        let next = Self::new(head, below, self.epoch + 1, Arc::default());
        Self { genesis: self.genesis, ..next }
    }

    /// `downwards` are the head's ancestors, its parent first.
    fn new(head: &Arc<SeenBlock>, downwards: Vec<Arc<SeenBlock>>, epoch: u64, deep: Arc<DeepBlocks>) -> Self {
        let window: Arc<[_]> =
            downwards.into_iter().take(WINDOW_BLOCKS - 1).rev().chain([Arc::clone(head)]).collect();
        let numbers = window.iter().map(|block| (block.id.hash, block.id.number)).collect();
        let numbers = Arc::new(numbers);
        Self {
            head: head.id,
            safe: None,
            finalized: None,
            genesis: None,
            epoch,
            revisions: 0,
            window,
            numbers,
            deep,
        }
    }

    pub fn head(&self) -> BlockId {
        self.head
    }

    pub fn safe(&self) -> Option<BlockId> {
        self.safe
    }

    pub fn finalized(&self) -> Option<BlockId> {
        self.finalized
    }

    /// Block 0, if the nodes have it.
    pub fn genesis(&self) -> Option<BlockId> {
        self.genesis
    }

    /// Changes when the chain may have changed below the window. Until then a number below it keeps its hash.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Changes when the nodes have changed their mind about the chain.
    pub(crate) fn revisions(&self) -> u64 {
        self.revisions
    }

    /// Sets the marks. One that moves back is a change of mind.
    pub(super) fn mark(&mut self, safe: Option<BlockId>, finalized: Option<BlockId>) {
        let is_back = |before: Option<BlockId>, now: Option<BlockId>| {
            before.zip(now).is_some_and(|(before, now)| now != before && now.number <= before.number)
        };
        self.revisions += u64::from(is_back(self.safe, safe) || is_back(self.finalized, finalized));
        (self.safe, self.finalized) = (safe, finalized);
    }

    /// The lowest number of the window.
    pub fn lowest(&self) -> u64 {
        self.window.first().map_or(self.head.number, |block| block.id.number)
    }

    /// The blocks of the window, upwards; the last one is the head.
    pub fn window(&self) -> &[Arc<SeenBlock>] {
        &self.window
    }

    pub fn head_block(&self) -> Option<&Arc<SeenBlock>> {
        self.window.last()
    }

    /// A block of the window.
    pub fn block(&self, number: u64) -> Option<&Arc<SeenBlock>> {
        let at = number.checked_sub(self.lowest())?;
        self.window.get(usize::try_from(at).ok()?)
    }

    /// The canonical block of a number. `None` above the head, and below the window if it is not known.
    pub fn by_number(&self, number: u64) -> Option<BlockId> {
        Some(self.numbered(number, &mut None)?.0)
    }

    /// Whether this chain has another block of the same number as one of these. What nodes have said about old blocks does not
    /// count once it has to be asked again.
    pub fn contradicts(&self, blocks: &[BlockId]) -> bool {
        let mut reader = None;
        blocks.iter().any(|block| {
            self.numbered(block.number, &mut reader)
                .is_some_and(|(ours, trust)| ours != *block && !trust.is_some_and(TrustMark::is_over))
        })
    }

    /// How far to trust that nodes reported the right block of this number; `None` if the head commits to the block.
    pub fn trust(&self, number: u64) -> Option<TrustMark> {
        self.numbered(number, &mut None)?.1
    }

    /// Whether the head commits to the block of this number: it is an ancestor of the head, by the hashes of parents.
    pub fn is_linked(&self, number: u64) -> bool {
        let is_genesis = number == 0 && self.genesis.is_some() && self.lowest() > 0;
        !is_genesis && self.numbered(number, &mut None).is_some_and(|(_, trust)| trust.is_none())
    }

    /// A block, and how far nodes are trusted that it has this number. `reader` locks the deep blocks when they are first needed.
    fn numbered<'a>(
        &'a self,
        number: u64,
        reader: &mut Option<DeepReader<'a>>,
    ) -> Option<(BlockId, Option<TrustMark>)> {
        if let Some(block) = self.block(number) {
            return Some((block.id, None));
        }
        if number >= self.lowest() {
            return None;
        }
        if let Some(genesis) = self.genesis.filter(|_| number == 0) {
            return Some((genesis, None));
        }
        reader.get_or_insert_with(|| self.deep.reader()).by_number(number)
    }

    /// The canonical block of a hash. `None` does not mean that there is none: it may be deep and not known.
    pub fn by_hash(&self, hash: &B256) -> Option<BlockId> {
        let window = self.numbers.get(hash).copied();
        let number = window.or_else(|| self.genesis.filter(|genesis| genesis.hash == *hash).map(|_| 0));
        let number = number.or_else(|| self.deep.by_hash(hash))?;
        Some(BlockId { number, hash: *hash })
    }

    /// A block that was canonical in this epoch and is not any more. `None` does not mean that there is none: only the newest are
    /// remembered.
    pub fn side_block(&self, hash: &B256) -> Option<BlockId> {
        self.deep.side_block(hash).filter(|_| self.by_hash(hash).is_none())
    }

    /// Forgets a side block, because no node has it any more.
    pub fn forget_side_block(&self, hash: &B256) {
        self.deep.forget_side_block(hash);
    }

    /// The block of the window that lists this transaction, as most nodes report it. `None` says nothing about older blocks, nor about
    /// those whose lists are not agreed on.
    pub fn contains_transaction(&self, hash: &B256) -> Option<BlockId> {
        let lists_it =
            |block: &&Arc<SeenBlock>| block.lists().is_some_and(|lists| lists.has_transaction(hash));
        self.window.iter().rev().find(lists_it).map(|block| block.id)
    }

    /// Whether it is known which block has this number, if there is such a block.
    pub fn knows_number(&self, number: u64) -> bool {
        number >= self.lowest() || self.by_number(number).is_some()
    }

    /// Adds a block below the window that is an ancestor of the head.
    pub fn add_linked_block(&self, block: BlockId) {
        if block.number < self.lowest() {
            self.deep.add_linked(block);
        }
    }

    /// Adds a block below the window that nodes have reported, in place of another one that nodes have reported before.
    pub fn add_reported_block(&self, block: BlockId, trust: TrustMark) {
        if block.number < self.lowest() {
            self.deep.add_reported(block, trust);
        }
    }

    /// Forgets which block below the window has a number, because those who reported it are not believed any more.
    pub fn forget_reported_block(&self, number: u64) {
        self.deep.forget_reported(number);
    }

    /// The usual time between two blocks: the average of the middle half of the times between the newest blocks, by their
    /// timestamps. A pause between two blocks does not count: the genesis block of a new chain may be years old, and chains that
    /// mine on demand stand still for hours.
    pub(super) fn block_time(&self) -> Option<Duration> {
        let newest = &self.window[self.window.len().saturating_sub(BLOCK_TIME_BLOCKS + 1)..];
        let times = newest.windows(2).map(|pair| pair[1].timestamp.saturating_sub(pair[0].timestamp));
        let mut times: Vec<_> = times.map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX)).collect();
        times.sort_unstable();
        let middle = &times[times.len() / 4..times.len() - times.len() / 4];
        let sum = middle.iter().map(|seconds| u64::from(*seconds)).sum();
        let count = u32::try_from(middle.len()).ok().filter(|&count| count > 0)?;
        Some(Duration::from_secs(sum) / count)
    }

    /// Whether the window has this block.
    pub(super) fn has(&self, hash: &B256) -> bool {
        self.numbers.contains_key(hash)
    }
}
