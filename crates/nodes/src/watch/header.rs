//! A node's block, read and checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_primitives::{B256, Bloom, U64, U256};
use serde::Deserialize;

use crate::view::{SeenBlock, Transactions, View};
use crate::{BlockId, Fault};

/// The members of a block that are kept. Other members are whatever the chain has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    number: U64,
    hash: B256,
    parent_hash: B256,
    timestamp: U64,
    gas_limit: U256,
    base_fee_per_gas: Option<U256>,
    #[serde(default)]
    receipts_root: B256,
    #[serde(default)]
    transactions_root: B256,
    #[serde(default)]
    logs_bloom: Bloom,
    #[serde(default)]
    uncles: Vec<B256>,
    transactions: Vec<B256>,
}

/// Reads a block with transaction hashes. `null` is no block.
pub(super) fn read(json: &[u8]) -> Result<Option<SeenBlock>, Fault> {
    let wire: Option<Wire> = serde_json::from_slice(json).map_err(|_| Fault::Garbled)?;
    Ok(wire.map(|wire| SeenBlock {
        id: BlockId { number: wire.number.to(), hash: wire.hash },
        parent: wire.parent_hash,
        timestamp: wire.timestamp.to(),
        gas_limit: wire.gas_limit.saturating_to(),
        base_fee: wire.base_fee_per_gas.map(|fee| fee.saturating_to()),
        receipts_root: wire.receipts_root,
        transactions_root: wire.transactions_root,
        logs_bloom: wire.logs_bloom,
        uncles: wire.uncles,
        transactions: Transactions::from(wire.transactions),
    }))
}

/// Whether the block's hash is the hash of its header, and it has transactions exactly if the header says so.
fn fits(json: &[u8], block: &SeenBlock) -> bool {
    let header = serde_json::from_slice::<alloy_consensus::Header>(json);
    let is_empty = block.transactions_root == EMPTY_ROOT_HASH;
    is_empty == block.transactions.is_empty()
        && header.is_ok_and(|header| header.hash_slow() == block.id.hash)
}

/// Whether headers are checked.
///
/// On a chain that hashes its headers in another way every node fails every time. When all nodes have failed and none
/// has ever passed, it is the check that is wrong here: it steps back, and says so.
#[derive(Debug)]
pub(super) struct HeaderCheck {
    view: Arc<View>,
    enforced: AtomicBool,
    passed: AtomicBool,
    failed: Vec<AtomicBool>,
}

impl HeaderCheck {
    pub(super) fn new(view: Arc<View>, enforced: bool, nodes: usize) -> Self {
        let failed = (0..nodes).map(|_| AtomicBool::new(false)).collect();
        Self { view, enforced: AtomicBool::new(enforced), passed: AtomicBool::new(false), failed }
    }

    /// Whether the block that a node sent may be believed.
    pub(super) fn believes(&self, node: usize, json: &[u8], block: &SeenBlock) -> bool {
        if !self.enforced.load(Relaxed) {
            return true;
        }
        if fits(json, block) {
            self.passed.store(true, Relaxed);
            return true;
        }
        self.fail(node)
    }

    fn fail(&self, node: usize) -> bool {
        if let Some(failed) = self.failed.get(node) {
            failed.store(true, Relaxed);
        }
        let hopeless = !self.passed.load(Relaxed) && self.failed.iter().all(|failed| failed.load(Relaxed));
        if hopeless && self.enforced.swap(false, Relaxed) {
            self.view.set_odd_headers();
            tracing::warn!("no node has headers that fit their hashes: headers are not checked any more");
        }
        hopeless
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn block() -> Value {
        let header = alloy_consensus::Header { number: 7, base_fee_per_gas: Some(9), ..Default::default() };
        let mut block = serde_json::to_value(&header).unwrap();
        block["hash"] = json!(header.hash_slow());
        block["transactions"] = json!([]);
        block
    }

    fn judged(block: &Value) -> Option<bool> {
        let json = block.to_string();
        let read = read(json.as_bytes()).ok()??;
        Some(fits(json.as_bytes(), &read))
    }

    #[test]
    fn a_header_has_its_hash() {
        let read = read(block().to_string().as_bytes()).unwrap().unwrap();
        assert_eq!((read.id.number, read.base_fee), (7, Some(9)));
        assert_eq!(judged(&block()), Some(true));
    }

    #[test]
    fn whatever_is_changed_in_a_header_is_found_out() {
        for (member, lie) in [
            ("number", json!("0x8")),
            ("parentHash", json!(B256::repeat_byte(1))),
            ("timestamp", json!("0x1")),
            ("gasLimit", json!("0x1")),
            ("baseFeePerGas", json!("0xa")),
            ("receiptsRoot", json!(B256::repeat_byte(1))),
            ("transactions", json!([B256::repeat_byte(1)])),
        ] {
            let mut block = block();
            block[member] = lie;
            assert_eq!(judged(&block), Some(false), "{member}");
        }
    }

    #[test]
    fn null_is_no_block_and_a_pending_one_is_garbled() {
        assert!(read(b"null").unwrap().is_none());
        let mut pending = block();
        pending["hash"] = Value::Null;
        assert_eq!(read(pending.to_string().as_bytes()).err(), Some(Fault::Garbled));
    }

    proptest! {
        #[test]
        fn nothing_that_a_node_sends_panics(junk: Vec<u8>, member in 0_usize..20, text: String) {
            let _read = read(&junk);
            let mut block = block();
            let name = block.as_object().unwrap().keys().nth(member).cloned();
            block[name.unwrap_or_default()] = json!(text);
            let _judged = judged(&block);
        }
    }
}
