//! Changes of the chain, as a stream: blocks that are removed, blocks that are added, and new marks.
//!
//! Nothing is queued. A reader remembers the blocks that it was told of, and compares them with the chain as it is when it asks for
//! the next change. So whatever has happened meanwhile is one change, memory is bounded, and nobody waits for a slow reader. One
//! that has missed more blocks than are remembered is told so, and reads the chain anew from a view.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;

use methods::BlockRef;
use nodes::CanonicalChain;
use nodes::view::WINDOW_BLOCKS;
use sources::{ChainView, SnapshotSource};
use tokio::sync::watch;

/// A change since the last one, or that it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainEvent {
    Changed(ChainChange),
    /// More than is remembered. The chain has to be read anew from a view.
    Missed,
}

/// A change of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainChange {
    /// Blocks that are not canonical any more, downwards.
    pub removed: Vec<BlockRef>,
    /// Blocks that are canonical now, upwards.
    pub added: Vec<BlockRef>,
    /// The newest block that is safe, after the change.
    pub safe: Option<BlockRef>,
    /// The newest block that is finalized, after the change.
    pub finalized: Option<BlockRef>,
}

/// A reader of the changes of a chain.
pub struct ChainChanges {
    chain: ChangingChain,
    /// `None` while there is no chain.
    told: Option<ToldBlocks>,
}

/// The chain that changes, and the signal of a change.
struct ChangingChain {
    /// The embedded chain, or the archive that stands for the chain of the nodes until they have shown it.
    source: Option<Arc<dyn SnapshotSource>>,
    commits: Option<watch::Receiver<u64>>,
    /// The chain of the nodes, if there are any.
    views: Option<watch::Receiver<Option<Arc<CanonicalChain>>>>,
}

impl ChainChanges {
    pub(crate) fn of(
        source: Option<Arc<dyn SnapshotSource>>,
        views: Option<watch::Receiver<Option<Arc<CanonicalChain>>>>,
    ) -> Self {
        let commits = source.as_ref().filter(|_| views.is_none()).and_then(|source| source.commits());
        let mut chain = ChangingChain { source, commits, views };
        let told = chain.read(ToldBlocks::of);
        Self { chain, told }
    }

    /// Waits for the next change. The future can be dropped and made anew without missing anything.
    pub async fn next(&mut self) -> ChainEvent {
        loop {
            let told = &mut self.told;
            let event = self.chain.read(|chain| match told {
                Some(told) => told.update(chain),
                None => {
                    *told = Some(ToldBlocks::of(chain));
                    Some(ChainEvent::Missed)
                }
            });
            match event {
                Some(Some(event)) => return event,
                Some(None) => {}
                // The nodes have changed to another chain, and have not shown it yet.
                None => self.told = None,
            }
            self.chain.changed().await;
        }
    }
}

impl std::fmt::Debug for ChainChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChainChanges").field("told", &self.told).finish_non_exhaustive()
    }
}

impl ChangingChain {
    /// Reads the chain as it is now. `None` before any node has shown its chain.
    fn read<T>(&mut self, read: impl FnOnce(&dyn ChainView) -> T) -> Option<T> {
        if let Some(chain) = self.views.as_mut().and_then(|views| views.borrow_and_update().clone()) {
            return Some(read(&*chain));
        }
        // Later commits wake the reader again.
        self.commits.iter_mut().for_each(|commits| commits.mark_unchanged());
        self.source.as_ref().map(|source| read(&*source.snapshot()))
    }

    /// Waits until the chain may have changed since it was read.
    async fn changed(&mut self) {
        let is_open = match (&mut self.views, &mut self.commits) {
            (Some(views), _) => views.changed().await.is_ok(),
            (None, Some(commits)) => commits.changed().await.is_ok(),
            (None, None) => false,
        };
        // A chain that nobody can change any more.
        if !is_open {
            pending::<()>().await;
        }
    }
}

/// The newest blocks that a reader was told of, upwards and without gaps, and the marks. Never empty.
#[derive(Debug)]
struct ToldBlocks {
    blocks: VecDeque<BlockRef>,
    safe: Option<BlockRef>,
    finalized: Option<BlockRef>,
}

impl ToldBlocks {
    /// The chain as it is, as far as it is known and remembered.
    fn of(chain: &dyn ChainView) -> Self {
        let mut blocks = VecDeque::from([chain.head()]);
        while blocks.len() < WINDOW_BLOCKS
            && let Some(below) = parent_of(chain, blocks[0])
        {
            blocks.push_front(below);
        }
        Self { blocks, safe: chain.safe(), finalized: chain.finalized() }
    }

    /// The change since the last time. `None` if there is none.
    fn update(&mut self, chain: &dyn ChainView) -> Option<ChainEvent> {
        let Some((kept, added)) = self.compare(chain) else {
            *self = Self::of(chain);
            return Some(ChainEvent::Missed);
        };
        let (safe, finalized) = (chain.safe(), chain.finalized());
        let is_same = kept == self.blocks.len() && added.is_empty();
        if is_same && (safe, finalized) == (self.safe, self.finalized) {
            return None;
        }
        let removed = self.blocks.drain(kept..).rev().collect();
        self.blocks.extend(&added);
        let forgotten = self.blocks.len().saturating_sub(WINDOW_BLOCKS);
        self.blocks.drain(..forgotten);
        (self.safe, self.finalized) = (safe, finalized);
        Some(ChainEvent::Changed(ChainChange { removed, added, safe, finalized }))
    }

    /// How many of the blocks stay, and those that follow them. `None` if the chain has none of these blocks any more, or too many
    /// follow.
    fn compare(&self, chain: &dyn ChainView) -> Option<(usize, Vec<BlockRef>)> {
        let lowest = self.blocks[0].number;
        let (mut block, mut added) = (chain.head(), Vec::new());
        loop {
            let index = usize::try_from(block.number.checked_sub(lowest)?).ok()?;
            if self.blocks.get(index) == Some(&block) {
                added.reverse();
                return Some((index + 1, added));
            }
            if added.len() == WINDOW_BLOCKS {
                return None;
            }
            added.push(block);
            block = parent_of(chain, block)?;
        }
    }
}

/// The canonical block below a canonical one. `None` for block 0, and where it is not known.
fn parent_of(chain: &dyn ChainView, block: BlockRef) -> Option<BlockRef> {
    chain.block_by_number(block.number.checked_sub(1)?).ok().flatten()
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use sources::Failure;

    use super::*;

    /// A chain of which block number n has the n-th of these hashes, and whose mark is a block of it.
    #[derive(Clone, Default)]
    struct TestChain {
        hashes: Vec<B256>,
        finalized: usize,
    }

    impl TestChain {
        fn block(&self, number: usize) -> Option<BlockRef> {
            self.hashes.get(number).map(|hash| BlockRef { number: number as u64, hash: *hash })
        }

        fn blocks(&self) -> Vec<BlockRef> {
            (0..self.hashes.len()).filter_map(|number| self.block(number)).collect()
        }
    }

    impl ChainView for TestChain {
        fn head(&self) -> BlockRef {
            self.block(self.hashes.len() - 1).unwrap()
        }

        fn finalized(&self) -> Option<BlockRef> {
            self.block(self.finalized)
        }

        fn safe(&self) -> Option<BlockRef> {
            None
        }

        fn block_by_number(&self, number: u64) -> Result<Option<BlockRef>, Failure> {
            Ok(self.block(number as usize))
        }

        fn block_by_hash(&self, _: B256) -> Result<Option<BlockRef>, Failure> {
            Ok(None)
        }
    }

    proptest! {
        /// Whoever applies all changes to what it has, and reads anew where it has missed some, has the newest blocks of the chain.
        #[test]
        fn changes_lead_from_one_chain_to_the_next(
            steps in vec((0_usize..300, 0_usize..300, any::<bool>(), any::<bool>()), 1..40)
        ) {
            let mut chain = TestChain { hashes: vec![B256::ZERO], finalized: 0 };
            let mut told = ToldBlocks::of(&chain);
            let (mut known, mut mark, mut hashes) = (chain.blocks(), chain.finalized(), 1_u64..);
            for (removed, added, is_read, is_marked) in steps {
                chain.hashes.truncate(chain.hashes.len().saturating_sub(removed).max(1));
                let new = (&mut hashes).take(added).map(|number| B256::left_padding_from(&number.to_be_bytes()));
                chain.hashes.extend(new);
                chain.finalized = if is_marked { chain.hashes.len() / 2 } else { chain.finalized };
                if !is_read {
                    continue;
                }
                match told.update(&chain) {
                    Some(ChainEvent::Changed(change)) => {
                        for block in change.removed {
                            prop_assert_eq!(known.pop(), Some(block));
                        }
                        known.extend(change.added);
                        mark = change.finalized;
                    }
                    Some(ChainEvent::Missed) => (known, mark) = (chain.blocks(), chain.finalized()),
                    None => {}
                }
                prop_assert_eq!(&known, &chain.blocks());
                prop_assert_eq!(mark, chain.finalized());
                prop_assert!(told.blocks.len() <= WINDOW_BLOCKS);
                prop_assert_eq!(told.update(&chain), None, "nothing has happened");
            }
        }
    }

    #[test]
    fn a_reader_that_is_too_slow_is_told_that_it_has_missed_some() {
        let hash = |number: usize| B256::left_padding_from(&number.to_be_bytes());
        let chain = |blocks: usize| TestChain { hashes: (0..blocks).map(hash).collect(), finalized: 0 };
        let mut told = ToldBlocks::of(&chain(10));
        assert!(matches!(told.update(&chain(10 + WINDOW_BLOCKS)), Some(ChainEvent::Changed(_))));
        let much_later = chain(11 + 2 * WINDOW_BLOCKS);
        assert_eq!(told.update(&much_later), Some(ChainEvent::Missed));
        assert_eq!(told.update(&much_later), None);
    }
}
