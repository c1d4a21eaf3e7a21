//! The last few blocks of the chain: all that the checks of the next one look back to.

use alloy_consensus::{Header, Sealed};
use alloy_primitives::{B256, U256};
use std::collections::VecDeque;

/// How many blocks back the parent of an uncle may be, counted from the block that includes the uncle.
pub(crate) const GENERATIONS: usize = 7;

/// The newest block of the chain and the ones before it that uncles can hang on.
///
/// It starts with one block and grows by [`push`](Self::push). To continue a stored chain with head `n`,
/// start at block `n - 6` (or at the genesis) with its total difficulty, and push the blocks up to `n`.
#[derive(Debug, Clone)]
pub struct Ancestry {
    parent: Ancestor,
    /// Newest first.
    older: VecDeque<Ancestor>,
    total_difficulty: U256,
}

/// A block of the chain, as far as uncles of later blocks care.
#[derive(Debug, Clone)]
pub(crate) struct Ancestor {
    pub(crate) header: Sealed<Header>,
    pub(crate) uncle_hashes: Vec<B256>,
}

impl Ancestry {
    /// An ancestry of one block. The total difficulty includes the block's own.
    pub(crate) fn starting_at(
        header: Sealed<Header>,
        uncle_hashes: Vec<B256>,
        total_difficulty: U256,
    ) -> Self {
        let older = VecDeque::with_capacity(GENERATIONS);
        Self { parent: Ancestor { header, uncle_hashes }, older, total_difficulty }
    }

    /// An ancestry that consists of the genesis block.
    pub fn at_genesis(header: Sealed<Header>) -> Self {
        let total_difficulty = header.difficulty;
        Self::starting_at(header, Vec::new(), total_difficulty)
    }

    /// Takes the next block of the chain.
    pub fn push(&mut self, header: Sealed<Header>, uncle_hashes: Vec<B256>) {
        debug_assert_eq!(header.parent_hash, self.parent.header.hash());
        self.total_difficulty = self.total_difficulty.saturating_add(header.difficulty);
        let before = std::mem::replace(&mut self.parent, Ancestor { header, uncle_hashes });
        self.older.push_front(before);
        self.older.truncate(GENERATIONS - 1);
    }

    /// The newest block.
    pub fn parent(&self) -> &Sealed<Header> {
        &self.parent.header
    }

    /// The difficulty of the chain up to and with the newest block.
    pub fn total_difficulty(&self) -> U256 {
        self.total_difficulty
    }

    /// The newest block and those before it.
    pub(crate) fn generations(&self) -> impl Iterator<Item = &Ancestor> {
        std::iter::once(&self.parent).chain(&self.older)
    }
}
