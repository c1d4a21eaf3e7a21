//! A node's block, read and checked.

use std::sync::Arc;

use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_primitives::{B256, Bloom, U64, U256};
use serde::Deserialize;

use crate::call::{BlockId, Fault};
use crate::proof_failure::ProofFailure;
use crate::raw::header::has_gap;
use crate::view::{BlockLists, SeenBlock};

/// The least gas that a transaction uses. A block cannot have more of them than its gas limit pays for.
const TRANSACTION_GAS_MIN: u64 = 21_000;

/// Transactions of one block, for chains whose gas limit is no bound: many times what any chain puts into a block.
const TRANSACTIONS_MAX: usize = 65_536;

/// Transactions of a block whose hashes are held in memory, at some 100 bytes each. They are hints, and one node may show as
/// many blocks of its own as the view remembers: with this they take 260 MB for three nodes.
const LISTED_MAX: usize = 2_048;

/// The most bytes of a block with the hashes of its transactions: about 100,000 of them. It is parsed on the thread of a
/// connection, or on that of the watchers.
const BLOCK_BYTES_MAX: usize = 8 << 20;

/// A block names at most two uncles.
const UNCLES_MAX: usize = 2;

/// The members of a block that are read. Other members are whatever the chain has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReportedBlock {
    number: U64,
    hash: B256,
    parent_hash: B256,
    timestamp: U64,
    gas_limit: U256,
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
    if json.len() > BLOCK_BYTES_MAX {
        return Err(Fault::TooLarge);
    }
    let fields: Option<ReportedBlock> = serde_json::from_slice(json).map_err(|_| Fault::Garbled)?;
    let is_too_long = |fields: &ReportedBlock| {
        fields.transactions.len() > TRANSACTIONS_MAX || fields.uncles.len() > UNCLES_MAX
    };
    if fields.as_ref().is_some_and(is_too_long) {
        return Err(Fault::TooLarge);
    }
    Ok(fields.map(|fields| SeenBlock {
        id: BlockId { number: fields.number.to(), hash: fields.hash },
        parent: fields.parent_hash,
        timestamp: fields.timestamp.to(),
        gas_limit: fields.gas_limit.saturating_to(),
        transactions_root: fields.transactions_root,
        logs_bloom: fields.logs_bloom,
        reported: Arc::new(BlockLists::new(fields.transactions, fields.uncles)),
        agreed: Default::default(),
    }))
}

/// Reads a block with transaction hashes that did not come from a watched node. With `check_hash`, its hash must be that of its header.
pub fn read_block(json: &[u8], check_hash: bool) -> Result<Option<SeenBlock>, ProofFailure> {
    let block = read(json).map_err(|_| ProofFailure::Malformed)?;
    match block {
        Some(block) if check_hash && !fits(json, &block) => Err(ProofFailure::HeaderHash),
        block => Ok(block.map(without_long_lists)),
    }
}

/// Drops the lists of a block if they are too long to be held in memory.
pub(super) fn without_long_lists(block: SeenBlock) -> SeenBlock {
    match block.reported.transactions().len() > LISTED_MAX {
        true => SeenBlock { reported: Arc::default(), ..block },
        false => block,
    }
}

/// Whether the block's hash is that of its header, it has transactions exactly if the header says so, and not more of them than its
/// gas limit allows.
fn fits(json: &[u8], block: &SeenBlock) -> bool {
    let header = serde_json::from_slice::<alloy_consensus::Header>(json);
    let is_empty = block.transactions_root == EMPTY_ROOT_HASH;
    let transactions = block.reported.transactions();
    is_empty == transactions.is_empty()
        && transactions.len() as u64 <= block.gas_limit / TRANSACTION_GAS_MIN
        && header.is_ok_and(|header| !has_gap(&header) && header.hash_slow() == block.id.hash)
}

/// Whether headers are checked. That depends on the family of the chain, never on how often the check fails: otherwise a node that
/// sends bad headers could switch it off.
#[derive(Debug)]
pub(super) struct HeaderCheck {
    enforced: bool,
}

impl HeaderCheck {
    pub(super) fn new(enforced: bool) -> Self {
        Self { enforced }
    }

    /// Whether a block that a node sent is accepted.
    pub(super) fn accepts(&self, json: &[u8], block: &SeenBlock) -> bool {
        !self.enforced || fits(json, block)
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
        assert_eq!(read.id.number, 7);
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

    /// The base fee was believed under another name, because the hash of the header stays the same.
    #[test]
    fn a_value_under_the_name_of_a_later_member_is_found_out() {
        for name in ["blobGasUsed", "excessBlobGas", "slotNumber"] {
            let mut block = block();
            let fee = block.as_object_mut().and_then(|members| members.remove("baseFeePerGas"));
            block[name] = fee.unwrap();
            assert_eq!(judged(&block), Some(false), "{name}");
        }
    }

    /// A node could fill the memory with blocks of its own that list as many transactions as it likes.
    #[test]
    fn long_lists_are_dropped() {
        for (transactions, listed) in [(LISTED_MAX, LISTED_MAX), (LISTED_MAX + 1, 0)] {
            let mut block = block();
            block["transactions"] = json!(vec![B256::repeat_byte(1); transactions]);
            let read = read_block(block.to_string().as_bytes(), false).unwrap().unwrap();
            assert_eq!(read.reported.transactions().len(), listed);
        }
    }

    /// The thread of all watchers parsed replies of up to 64 MiB.
    #[test]
    fn a_block_that_is_too_large_is_not_parsed() {
        let with_spaces =
            |bytes: usize| format!("{}{}", block(), " ".repeat(bytes - block().to_string().len()));
        assert!(read(with_spaces(BLOCK_BYTES_MAX).as_bytes()).is_ok());
        assert_eq!(read(with_spaces(BLOCK_BYTES_MAX + 1).as_bytes()).err(), Some(Fault::TooLarge));
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
