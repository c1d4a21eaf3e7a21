//! A node's block, read and checked.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{B256, Bloom, U256};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::call::{BlockId, Fault};
use crate::proof_failure::ProofFailure;
use crate::proven::is_root_of_nothing;
use crate::raw::header::RawBlock;
use crate::raw::hex::Hex;
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

/// Why a block of a node cannot be used, with the member that is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReportedBlockFault {
    pub(super) kind: Fault,
    pub(super) problem: Cow<'static, str>,
}

impl ReportedBlockFault {
    fn new(kind: Fault, problem: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, problem: problem.into() }
    }

    pub(super) fn other_block() -> Self {
        Self::new(Fault::Wrong, "it is another block than the one that was asked for")
    }
}

/// The members of a block. Those that are not read are whatever the chain has.
struct BlockMembers<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

impl BlockMembers<'_> {
    fn required<T: DeserializeOwned>(&self, name: &'static str) -> Result<T, ReportedBlockFault> {
        let missing = || ReportedBlockFault::new(Fault::Garbled, format!("it has no `{name}`"));
        self.optional(name)?.ok_or_else(missing)
    }

    fn optional<T: DeserializeOwned>(&self, name: &'static str) -> Result<Option<T>, ReportedBlockFault> {
        let malformed =
            |_| ReportedBlockFault::new(Fault::Garbled, format!("`{name}` has a value that no block has"));
        self.0.get(name).map(|value| serde_json::from_str(value.get()).map_err(malformed)).transpose()
    }
}

/// Reads a block with transaction hashes. `null` is no block.
pub(super) fn read(json: &[u8]) -> Result<Option<SeenBlock>, ReportedBlockFault> {
    if json.len() > BLOCK_BYTES_MAX {
        return Err(ReportedBlockFault::new(
            Fault::TooLarge,
            format!("it has more than {BLOCK_BYTES_MAX} bytes"),
        ));
    }
    let members: Option<BTreeMap<Cow<'_, str>, &RawValue>> = serde_json::from_slice(json)
        .map_err(|_| ReportedBlockFault::new(Fault::Garbled, "it is not an object"))?;
    let Some(members) = members.map(BlockMembers) else { return Ok(None) };
    let number = members.required::<Hex<u64>>("number")?.0;
    let timestamp = members.required::<Hex<u64>>("timestamp")?.0;
    let gas_limit = members.required::<U256>("gasLimit")?.saturating_to();
    let transactions: Vec<B256> = members.required("transactions")?;
    let uncles: Vec<B256> = members.optional("uncles")?.unwrap_or_default();
    let lists =
        [("transactions", transactions.len(), TRANSACTIONS_MAX), ("uncles", uncles.len(), UNCLES_MAX)];
    if let Some((name, ..)) = lists.into_iter().find(|(_, count, most)| count > most) {
        return Err(ReportedBlockFault::new(
            Fault::TooLarge,
            format!("`{name}` has more items than a block can have"),
        ));
    }
    Ok(Some(SeenBlock {
        id: BlockId { number, hash: members.required("hash")? },
        parent: members.required("parentHash")?,
        timestamp,
        gas_limit,
        transactions_root: members.optional("transactionsRoot")?.unwrap_or_default(),
        logs_bloom: members.optional::<Bloom>("logsBloom")?.unwrap_or_default(),
        reported: Arc::new(BlockLists::new(transactions, uncles)),
        agreed: Default::default(),
    }))
}

/// Reads a block with transaction hashes that did not come from a watched node. With `check_hash`, its hash must be that of its header.
pub(crate) fn read_block(json: &[u8], check_hash: bool) -> Result<Option<SeenBlock>, ProofFailure> {
    let block = read(json).map_err(|_| ProofFailure::Malformed)?;
    match block {
        Some(block) if check_hash && check(json, &block).is_err() => Err(ProofFailure::HeaderHash),
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

/// Checks that the block's hash is that of its header, that it has transactions exactly if the header says so, and not more of them
/// than its gas limit allows. Whatever else is odd in a header with the right hash is decided where it matters.
fn check(json: &[u8], block: &SeenBlock) -> Result<(), ReportedBlockFault> {
    let wrong = |problem: String| ReportedBlockFault::new(Fault::Wrong, problem);
    let raw: RawBlock<'_> =
        serde_json::from_slice(json).map_err(|error| wrong(format!("its header: {error}")))?;
    let header = raw.header_as_named().map_err(|_| {
        wrong(match raw.missing_member() {
            Some(member) => format!("it has no `{member}`"),
            None => "members of its header have the names of others".to_owned(),
        })
    })?;
    let count = block.reported.transactions().len();
    if header.hash_slow() != block.id.hash {
        return Err(ReportedBlockFault::new(Fault::Wrong, "`hash` is not that of its header"));
    }
    if is_root_of_nothing(&block.transactions_root) != (count == 0) {
        return Err(ReportedBlockFault::new(
            Fault::Wrong,
            "`transactions` are not those of its `transactionsRoot`",
        ));
    }
    if count as u64 > block.gas_limit / TRANSACTION_GAS_MIN {
        return Err(ReportedBlockFault::new(
            Fault::Wrong,
            "`transactions` are more than its `gasLimit` pays for",
        ));
    }
    Ok(())
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

    /// Checks a block that a node sent.
    pub(super) fn check(&self, json: &[u8], block: &SeenBlock) -> Result<(), ReportedBlockFault> {
        if self.enforced { check(json, block) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use alloy_consensus::constants::KECCAK_EMPTY;
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
        Some(check(json.as_bytes(), &read).is_ok())
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

    /// anvil could not be used with the forks before Shanghai, nor Hardhat: their first blocks are odd, and have their hashes.
    #[test]
    fn an_odd_header_with_its_hash_is_a_header() {
        let blob_gas = |base_fee| alloy_consensus::Header {
            base_fee_per_gas: base_fee,
            blob_gas_used: Some(0),
            excess_blob_gas: Some(0),
            ..Default::default()
        };
        let of_nothing = alloy_consensus::Header { transactions_root: KECCAK_EMPTY, ..Default::default() };
        for header in [blob_gas(None), blob_gas(Some(7)), of_nothing] {
            let mut block = serde_json::to_value(&header).unwrap();
            block["hash"] = json!(header.hash_slow());
            block["transactions"] = json!([]);
            assert_eq!(judged(&block), Some(true), "{header:?}");
            block["gasUsed"] = json!("0x1");
            assert_eq!(judged(&block), Some(false), "{header:?}");
        }
    }

    /// A header with the number 2^64 - 1 made what follows the chain compute the number after it, and ended its thread.
    #[test]
    fn the_member_that_no_block_has_is_named() {
        for (member, lie) in [
            ("number", json!("0xffffffffffffffff")),
            ("timestamp", json!("0x8000000000000000")),
            ("hash", json!("0x1")),
            ("transactions", json!(7)),
        ] {
            let mut block = block();
            block[member] = lie;
            let fault = read(block.to_string().as_bytes()).err().unwrap();
            assert_eq!(
                (fault.kind, &*fault.problem),
                (Fault::Garbled, &*format!("`{member}` has a value that no block has"))
            );
        }
        let mut block = block();
        block.as_object_mut().unwrap().remove("number");
        let fault = read(block.to_string().as_bytes()).err().unwrap();
        assert_eq!(fault.problem, "it has no `number`");
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
        assert_eq!(
            read(with_spaces(BLOCK_BYTES_MAX + 1).as_bytes()).err().map(|fault| fault.kind),
            Some(Fault::TooLarge)
        );
    }

    #[test]
    fn null_is_no_block_and_a_pending_one_is_garbled() {
        assert!(read(b"null").unwrap().is_none());
        let mut pending = block();
        pending["hash"] = Value::Null;
        assert_eq!(read(pending.to_string().as_bytes()).err().map(|fault| fault.kind), Some(Fault::Garbled));
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
