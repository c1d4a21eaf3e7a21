//! One moment of the canonical chain.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use alloy_primitives::map::B256Map;

use super::block::SeenBlock;
use super::learned::{Deep, Learned};
use crate::BlockId;

/// Blocks below the head, and it, whose hashes are always known. Enough for every reorganisation that a live
/// network has shown, and for the 128 states that a pruning node keeps.
pub const WINDOW_BLOCKS: usize = 256;

/// Blocks over which the time between two of them is measured: enough to even out whole seconds and missed slots.
const BLOCK_TIME_BLOCKS: usize = 32;

/// An immutable picture: whoever holds it sees one chain, whatever the nodes say in the meantime.
///
/// Only the knowledge of deep blocks grows in it, and that cannot contradict what was there.
#[derive(Clone, Debug)]
pub struct Canon {
    head: BlockId,
    pub(super) safe: Option<BlockId>,
    pub(super) finalized: Option<BlockId>,
    pub(super) genesis: Option<BlockId>,
    epoch: u64,
    /// Upwards, without gaps, never empty.
    window: Arc<[Arc<SeenBlock>]>,
    numbers: Arc<B256Map<u64>>,
    learned: Arc<Learned>,
}

impl Canon {
    /// The first picture.
    pub(super) fn first(head: &Arc<SeenBlock>, below: Vec<Arc<SeenBlock>>, epoch: u64) -> Self {
        Self::picture(head, below, epoch, Arc::default())
    }

    /// A chain of which nothing but its newest block is known. What is known of the chain of the nodes is not true of it.
    pub fn of_head(head: SeenBlock) -> Self {
        Self::first(&Arc::new(head), Vec::new(), u64::MAX)
    }

    /// The picture after this one, on a chain that has a block in common with it. What leaves the window or is reorganised away
    /// stays known.
    pub(super) fn next(&self, head: &Arc<SeenBlock>, below: Vec<Arc<SeenBlock>>) -> Self {
        let next = Self::picture(head, below, self.epoch, Arc::clone(&self.learned));
        let lowest = next.lowest();
        self.window.iter().take_while(|block| block.id.number < lowest).for_each(|block| {
            next.learned.add(block.id);
        });
        if !next.has(&self.head.hash) {
            let lost =
                self.window.iter().filter(|block| block.id.number >= lowest && !next.has(&block.id.hash));
            lost.for_each(|block| next.learned.add_side_block(block.id));
        }
        Self { safe: self.safe, finalized: self.finalized, genesis: self.genesis, ..next }
    }

    /// The picture after this one, when no block in common is known: all that was known of numbers is void.
    pub(super) fn next_epoch(&self, head: &Arc<SeenBlock>, below: Vec<Arc<SeenBlock>>) -> Self {
        let next = Self::picture(head, below, self.epoch + 1, Arc::default());
        Self { genesis: self.genesis, ..next }
    }

    /// `downwards` are the head's ancestors from its parent on.
    fn picture(
        head: &Arc<SeenBlock>,
        downwards: Vec<Arc<SeenBlock>>,
        epoch: u64,
        learned: Arc<Learned>,
    ) -> Self {
        let window: Arc<[_]> =
            downwards.into_iter().take(WINDOW_BLOCKS - 1).rev().chain([Arc::clone(head)]).collect();
        let numbers = window.iter().map(|block| (block.id.hash, block.id.number)).collect();
        let numbers = Arc::new(numbers);
        Self { head: head.id, safe: None, finalized: None, genesis: None, epoch, window, numbers, learned }
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

    /// The canonical block of a number. `None` above the head, and below the window for numbers not learned yet.
    pub fn by_number(&self, number: u64) -> Option<BlockId> {
        self.numbered(number, &mut None)
    }

    /// Whether one of these blocks has a number that is another block's on this chain.
    pub fn contradicts(&self, blocks: &[BlockId]) -> bool {
        let mut deep = None;
        blocks.iter().any(|block| self.numbered(block.number, &mut deep).is_some_and(|ours| ours != *block))
    }

    /// `deep` is what is known below the window; it is locked when it is first needed.
    fn numbered<'a>(&'a self, number: u64, deep: &mut Option<Deep<'a>>) -> Option<BlockId> {
        if let Some(block) = self.block(number) {
            return Some(block.id);
        }
        if number >= self.lowest() {
            return None;
        }
        let genesis = self.genesis.filter(|_| number == 0);
        let learned = |hash| BlockId { number, hash };
        genesis.or_else(|| deep.get_or_insert_with(|| self.learned.deep()).by_number(number).map(learned))
    }

    /// The canonical block of a hash. `None` does not say that there is none: it may be deep and not learned.
    pub fn by_hash(&self, hash: &B256) -> Option<BlockId> {
        let window = self.numbers.get(hash).copied();
        let number = window.or_else(|| self.genesis.filter(|genesis| genesis.hash == *hash).map(|_| 0));
        let number = number.or_else(|| self.learned.by_hash(hash))?;
        Some(BlockId { number, hash: *hash })
    }

    /// A block that was on the chain of this epoch and is not on this one. `None` does not say that there is none: only the
    /// newest of them are remembered.
    pub fn side_block(&self, hash: &B256) -> Option<BlockId> {
        self.learned.side_block(hash).filter(|_| self.by_hash(hash).is_none())
    }

    /// Forgets a side block, because no node has it any more.
    pub fn forget_side_block(&self, hash: &B256) {
        self.learned.forget_side_block(hash);
    }

    /// The block of the window that lists this transaction, as most nodes report it. A node that does not know it lags
    /// behind; `None` says nothing about older blocks, nor about those whose lists are not agreed on.
    pub fn contains_transaction(&self, hash: &B256) -> Option<BlockId> {
        let lists_it =
            |block: &&Arc<SeenBlock>| block.lists().is_some_and(|lists| lists.has_transaction(hash));
        self.window.iter().rev().find(lists_it).map(|block| block.id)
    }

    /// Whether it is known which block has this number, if there is such a block.
    pub fn knows_number(&self, number: u64) -> bool {
        number >= self.lowest() || self.by_number(number).is_some()
    }

    /// Remembers a block below the window that is known to be on this chain. What belongs to an older epoch is
    /// remembered there and does no harm.
    pub fn learn(&self, block: BlockId) {
        if block.number < self.lowest() {
            self.learned.add(block);
        }
    }

    /// Remembers a block below the window in place of the one that had its number until now, because nodes told a wrong one.
    pub(crate) fn correct(&self, block: BlockId) {
        if block.number < self.lowest() {
            self.learned.correct(block);
        }
    }

    /// The time between two blocks, as their timestamps tell it.
    pub fn block_time(&self) -> Option<Duration> {
        let newest = self.window.last()?;
        let older = self.window.get(self.window.len().saturating_sub(BLOCK_TIME_BLOCKS + 1))?;
        let seconds = u32::try_from(newest.timestamp.checked_sub(older.timestamp)?).ok()?;
        let blocks = u32::try_from(newest.id.number - older.id.number).ok().filter(|&blocks| blocks > 0)?;
        Some(Duration::from_secs(u64::from(seconds)) / blocks)
    }

    /// Whether the window has this block.
    pub(super) fn has(&self, hash: &B256) -> bool {
        self.numbers.contains_key(hash)
    }
}
