//! Block data that has failed its proof, and that nobody has delivered with its proof. A chain may have blocks that cannot be proven
//! here, and an operator must be told which, and why.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::Pool;
use crate::call::RpcCall;
use crate::node_id::NodeId;
use crate::proof_failure::ProofFailure;

/// The most blocks that are remembered, the highest ones.
const BLOCKS_MAX: usize = 256;

/// A delivery that has failed its proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UnprovenDelivery {
    node: NodeId,
    method: &'static str,
    failure: ProofFailure,
}

/// The last such delivery of each block.
#[derive(Debug, Default)]
pub(super) struct UnprovenBlocks(Mutex<BTreeMap<u64, UnprovenDelivery>>);

impl UnprovenBlocks {
    /// Returns whether that is new.
    fn add(&self, block: u64, delivery: UnprovenDelivery) -> bool {
        let mut blocks = self.0.lock();
        let is_new = blocks.insert(block, delivery) != Some(delivery);
        if blocks.len() > BLOCKS_MAX {
            blocks.pop_first();
        }
        is_new
    }
}

impl Pool {
    /// Records that nobody delivers the data of a block with its proof. The log says so once.
    pub(super) fn record_unproven(&self, call: &RpcCall, node: NodeId, failure: ProofFailure) {
        let (Some(block), Some(sender)) = (call.needs.block, self.node(node)) else {
            return;
        };
        if self.unproven.add(block, UnprovenDelivery { node, method: call.method, failure }) {
            tracing::warn!(
                node = sender.name(),
                method = call.method,
                block,
                %failure,
                "block data fails its proof and is not used; no node delivers it with its proof"
            );
        }
    }

    /// Forgets that data of a block has failed its proof, because it was delivered with its proof, or by nobody.
    pub(super) fn clear_unproven(&self, call: &RpcCall) {
        if let Some(block) = call.needs.block {
            let mut blocks = self.unproven.0.lock();
            if blocks.get(&block).is_some_and(|delivery| delivery.method == call.method) {
                blocks.remove(&block);
            }
        }
    }

    /// Why the data of a block cannot be proven, with the node, its method and the member. `None` if nothing was ever wrong.
    pub fn why_unproven(&self, block: u64) -> Option<String> {
        let UnprovenDelivery { node, method, failure } = *self.unproven.0.lock().get(&block)?;
        let node = self.node(node)?;
        let name = node.name();
        Some(format!("what node {name} returns to {method} for block {block} fails its proof: {failure}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_blocks_are_remembered_and_told_once() {
        let (blocks, delivery) = (UnprovenBlocks::default(), |failure| UnprovenDelivery {
            node: NodeId::new(0),
            method: "eth_getBlockReceipts",
            failure,
        });
        assert!(blocks.add(7, delivery(ProofFailure::ReceiptsRoot)));
        assert!(!blocks.add(7, delivery(ProofFailure::ReceiptsRoot)));
        assert!(blocks.add(7, delivery(ProofFailure::GasUsed)), "another cause");
        (8..8 + BLOCKS_MAX as u64).for_each(|block| _ = blocks.add(block, delivery(ProofFailure::GasUsed)));
        assert_eq!(blocks.0.lock().first_key_value().map(|(block, _)| *block), Some(8));
    }
}
