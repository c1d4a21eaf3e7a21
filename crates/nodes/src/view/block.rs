//! A block as the view remembers it.

use std::sync::{Arc, OnceLock};

use alloy_consensus::Header;
use alloy_primitives::map::B256Set;
use alloy_primitives::{B256, Bloom};

use crate::BlockId;

/// The remembered parts of a block that a node has reported.
#[derive(Clone, Debug)]
pub struct SeenBlock {
    pub id: BlockId,
    pub parent: B256,
    /// Seconds since 1970.
    pub timestamp: u64,
    pub gas_limit: u64,
    pub transactions_root: B256,
    pub logs_bloom: Bloom,
    /// The lists as the first node reported them. The header does not prove them.
    pub(crate) reported: Arc<BlockLists>,
    /// The lists that most of the configured nodes report, once they do.
    pub(crate) agreed: OnceLock<Arc<BlockLists>>,
}

impl SeenBlock {
    /// A block that was proven before a restart, with the hash of its header.
    pub fn restored(hash: B256, header: &Header) -> Self {
        Self {
            id: BlockId { number: header.number, hash },
            parent: header.parent_hash,
            timestamp: header.timestamp,
            gas_limit: header.gas_limit,
            transactions_root: header.transactions_root,
            logs_bloom: header.logs_bloom,
            reported: Arc::default(),
            agreed: OnceLock::new(),
        }
    }

    /// The lists that most of the configured nodes report. An answer that contradicts them is not used, but its node is not blamed,
    /// because the header does not prove them.
    pub fn lists(&self) -> Option<&BlockLists> {
        self.agreed.get().map(|lists| &**lists)
    }
}

/// The hashes of a block's transactions and uncles, in the block's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockLists {
    transactions: Vec<B256>,
    uncles: Vec<B256>,
    known: B256Set,
}

impl BlockLists {
    pub(crate) fn new(transactions: Vec<B256>, uncles: Vec<B256>) -> Self {
        let known = transactions.iter().copied().collect();
        Self { transactions, uncles, known }
    }

    pub fn transactions(&self) -> &[B256] {
        &self.transactions
    }

    pub fn uncles(&self) -> &[B256] {
        &self.uncles
    }

    pub(super) fn has_transaction(&self, hash: &B256) -> bool {
        self.known.contains(hash)
    }
}
