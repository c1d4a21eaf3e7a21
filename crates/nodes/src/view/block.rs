//! A block as the view keeps it: its place in the chain, and the few facts that answers are made from or checked with.

use std::ops::Deref;

use alloy_primitives::map::B256Set;
use alloy_primitives::{B256, Bloom};

use crate::BlockId;

/// What is kept of a block that a node has shown.
#[derive(Clone, Debug)]
pub struct SeenBlock {
    pub id: BlockId,
    pub parent: B256,
    /// Seconds since 1970.
    pub timestamp: u64,
    pub gas_limit: u64,
    pub base_fee: Option<u64>,
    pub receipts_root: B256,
    pub transactions_root: B256,
    pub logs_bloom: Bloom,
    /// Hashes of its uncles, in their order.
    pub uncles: Vec<B256>,
    pub transactions: Transactions,
}

/// The hashes of a block's transactions, in the block's order.
///
/// They came beside a checked header and are not proven by it. That is enough to doubt a null, and not enough to
/// answer from.
#[derive(Clone, Debug, Default)]
pub struct Transactions {
    in_order: Vec<B256>,
    known: B256Set,
}

impl Transactions {
    pub fn contains(&self, hash: &B256) -> bool {
        self.known.contains(hash)
    }
}

impl From<Vec<B256>> for Transactions {
    fn from(in_order: Vec<B256>) -> Self {
        let known = in_order.iter().copied().collect();
        Self { in_order, known }
    }
}

impl Deref for Transactions {
    type Target = [B256];

    fn deref(&self) -> &[B256] {
        &self.in_order
    }
}
