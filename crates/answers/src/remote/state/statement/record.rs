//! Objects and lists of nodes, with the members that we know and nothing else. They are compared where no block proves them.

use alloy_primitives::B256;
use bytes::Bytes;
use serde_json::Value;

use super::{NoStatement, Statement};

/// The kind of an object, which says which members it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::remote::state) enum RecordKind {
    Block,
    Uncle,
    Transaction,
    Receipt,
    Log,
    RawTransaction,
    FeeHistory,
}

/// A member of an object.
#[derive(Clone, Copy)]
enum RecordMember {
    /// Text, numbers and lists of them, as the node gives them.
    Plain(&'static str),
    /// A member like `Plain` that one node may know sooner than another.
    Later(&'static str),
    /// A list of objects, or of hashes.
    List(&'static str, RecordKind),
}

use RecordMember::{Later, List, Plain};
use methods::BlockRef;

impl RecordKind {
    fn members(self) -> &'static [RecordMember] {
        match self {
            Self::Block => BLOCK,
            Self::Uncle => HEADER,
            Self::Transaction => TRANSACTION,
            Self::Receipt => RECEIPT,
            Self::Log => LOG,
            Self::RawTransaction => RAW_TRANSACTION,
            Self::FeeHistory => FEE_HISTORY,
        }
    }
}

#[rustfmt::skip]
const HEADER: &[RecordMember] = &[
    Plain("number"), Plain("hash"), Plain("parentHash"), Plain("nonce"), Plain("mixHash"), Plain("sha3Uncles"),
    Plain("logsBloom"), Plain("transactionsRoot"), Plain("stateRoot"), Plain("receiptsRoot"), Plain("miner"),
    Plain("author"), Plain("difficulty"), Plain("totalDifficulty"), Plain("extraData"), Plain("size"),
    Plain("gasLimit"), Plain("gasUsed"), Plain("timestamp"), Plain("baseFeePerGas"), Plain("withdrawalsRoot"),
    Plain("blobGasUsed"), Plain("excessBlobGas"), Plain("parentBeaconBlockRoot"), Plain("requestsHash"),
    Plain("sealFields"), Plain("uncles"),
];

#[rustfmt::skip]
const BLOCK: &[RecordMember] = &[
    Plain("number"), Plain("hash"), Plain("parentHash"), Plain("nonce"), Plain("mixHash"), Plain("sha3Uncles"),
    Plain("logsBloom"), Plain("transactionsRoot"), Plain("stateRoot"), Plain("receiptsRoot"), Plain("miner"),
    Plain("author"), Plain("difficulty"), Plain("totalDifficulty"), Plain("extraData"), Plain("size"),
    Plain("gasLimit"), Plain("gasUsed"), Plain("timestamp"), Plain("baseFeePerGas"), Plain("withdrawalsRoot"),
    Plain("blobGasUsed"), Plain("excessBlobGas"), Plain("parentBeaconBlockRoot"), Plain("requestsHash"),
    Plain("sealFields"), Plain("uncles"), Plain("withdrawals"), List("transactions", RecordKind::Transaction),
    Later("l1BatchNumber"), Later("l1BatchTimestamp"),
];

#[rustfmt::skip]
const TRANSACTION: &[RecordMember] = &[
    Plain("hash"), Plain("nonce"), Plain("blockHash"), Plain("blockNumber"), Plain("blockTimestamp"),
    Plain("transactionIndex"), Plain("from"), Plain("to"), Plain("value"), Plain("gasPrice"), Plain("gas"),
    Plain("maxFeePerGas"), Plain("maxPriorityFeePerGas"), Plain("maxFeePerBlobGas"), Plain("blobVersionedHashes"),
    Plain("input"), Plain("type"), Plain("chainId"), Plain("accessList"), Plain("authorizationList"),
    Plain("v"), Plain("r"), Plain("s"), Plain("yParity"),
    Later("l1BatchNumber"), Later("l1BatchTxIndex"),
];

#[rustfmt::skip]
const RECEIPT: &[RecordMember] = &[
    Plain("transactionHash"), Plain("transactionIndex"), Plain("blockHash"), Plain("blockNumber"), Plain("from"),
    Plain("to"), Plain("cumulativeGasUsed"), Plain("gasUsed"), Plain("contractAddress"), List("logs", RecordKind::Log),
    Plain("logsBloom"), Plain("status"), Plain("root"), Plain("type"), Plain("effectiveGasPrice"),
    Plain("blobGasUsed"), Plain("blobGasPrice"),
    Later("l1BatchNumber"), Later("l1BatchTxIndex"), Later("l2ToL1Logs"),
];

#[rustfmt::skip]
const LOG: &[RecordMember] = &[
    Plain("address"), Plain("topics"), Plain("data"), Plain("blockHash"), Plain("blockNumber"),
    Plain("blockTimestamp"), Plain("transactionHash"), Plain("transactionIndex"), Plain("logIndex"),
    Plain("transactionLogIndex"), Plain("logType"), Plain("removed"),
    Later("l1BatchNumber"),
];

const RAW_TRANSACTION: &[RecordMember] =
    &[Plain("common_data"), Plain("execute"), Plain("received_timestamp_ms"), Plain("raw_bytes")];

#[rustfmt::skip]
const FEE_HISTORY: &[RecordMember] = &[
    Plain("oldestBlock"), Plain("reward"), Plain("baseFeePerGas"), Plain("gasUsedRatio"),
    Plain("baseFeePerBlobGas"), Plain("blobGasUsedRatio"),
];

/// The block or transaction that an answer must be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::remote::state) enum RecordSubject {
    Anything,
    /// The object itself has this hash and number.
    Block(BlockRef),
    /// Every object is in this block.
    InBlock(BlockRef),
    /// The object is, or belongs to, the transaction of this hash.
    Transaction(B256),
}

/// The form of an answer to a query about blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::remote::state) struct RecordForm {
    pub(in crate::remote::state) kind: RecordKind,
    pub(in crate::remote::state) is_list: bool,
    /// Whether there may be nothing.
    pub(in crate::remote::state) may_be_null: bool,
    pub(in crate::remote::state) about: RecordSubject,
}

/// An object or a list as it is compared and as it is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::remote::state) struct Record {
    /// Without what may be known to one node sooner than to another.
    pub(in crate::remote::state) settled: Bytes,
    /// With it.
    pub(in crate::remote::state) whole: Bytes,
    /// The block that a transaction or a receipt is in. None for a pending one.
    pub(in crate::remote::state) block: Option<BlockRef>,
    /// How many objects a list has.
    pub(in crate::remote::state) count: usize,
}

impl RecordForm {
    pub(in crate::remote::state) fn read(self, result: &Bytes) -> Result<Statement, NoStatement> {
        let value: Value = serde_json::from_slice(result).map_err(|_| NoStatement::Malformed)?;
        if value.is_null() {
            let nothing = Statement::Result(Bytes::from_static(b"null"));
            return if self.may_be_null { Ok(nothing) } else { Err(NoStatement::NotThere) };
        }
        let objects = match (&value, self.is_list) {
            (Value::Array(items), true) => &items[..],
            (Value::Object(_), false) => std::slice::from_ref(&value),
            _ => return Err(NoStatement::Malformed),
        };
        if !objects.iter().all(|object| object.is_object() && self.is_about(object)) {
            return Err(NoStatement::Malformed);
        }
        let written = |with_later: bool| match (self.is_list, objects) {
            (false, [object]) => known(object, self.kind, with_later).to_string(),
            _ => Value::Array(objects.iter().map(|object| known(object, self.kind, with_later)).collect())
                .to_string(),
        };
        let block = if self.is_list { None } else { block_of(&value) };
        let (settled, whole) = (written(false).into(), written(true).into());
        Ok(Statement::Record(Box::new(Record { settled, whole, block, count: objects.len() })))
    }

    fn is_about(self, object: &Value) -> bool {
        match self.about {
            RecordSubject::Anything => true,
            RecordSubject::Block(block) => {
                hash(object, "hash") == Some(block.hash) && number(object, "number") == Some(block.number)
            }
            RecordSubject::InBlock(block) => block_of(object) == Some(block),
            RecordSubject::Transaction(wanted) => {
                let name = if self.kind == RecordKind::Receipt { "transactionHash" } else { "hash" };
                hash(object, name) == Some(wanted)
            }
        }
    }
}

fn hash(object: &Value, name: &str) -> Option<B256> {
    object.get(name)?.as_str()?.parse().ok()
}

fn number(object: &Value, name: &str) -> Option<u64> {
    u64::from_str_radix(object.get(name)?.as_str()?.strip_prefix("0x")?, 16).ok()
}

fn block_of(object: &Value) -> Option<BlockRef> {
    Some(BlockRef { number: number(object, "blockNumber")?, hash: hash(object, "blockHash")? })
}

/// An object with the members that we know, in our order.
fn known(object: &Value, kind: RecordKind, with_later: bool) -> Value {
    let Some(given) = object.as_object() else { return plain(object) };
    let mut members = serde_json::Map::new();
    for member in kind.members() {
        let (name, value) = match *member {
            Plain(name) => (name, given.get(name).map(plain)),
            Later(name) => (name, given.get(name).filter(|_| with_later).map(plain)),
            List(name, of) => (name, given.get(name).map(|list| known_items(list, of, with_later))),
        };
        if let Some(value) = value {
            members.insert(name.to_owned(), value);
        }
    }
    Value::Object(members)
}

fn known_items(list: &Value, kind: RecordKind, with_later: bool) -> Value {
    match list {
        Value::Array(items) => Value::Array(items.iter().map(|item| known(item, kind, with_later)).collect()),
        other => plain(other),
    }
}

/// A value with its hex digits in lower case. Nodes write addresses in different ways.
fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("0x") => Value::String(text.to_ascii_lowercase()),
        Value::Array(items) => Value::Array(items.iter().map(plain).collect()),
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(form: RecordForm, value: &Value) -> Result<Record, NoStatement> {
        match form.read(&Bytes::from(value.to_string()))? {
            Statement::Record(record) => Ok(*record),
            other => panic!("{other:?}"),
        }
    }

    const RECEIPT_OF: RecordForm = RecordForm {
        kind: RecordKind::Receipt,
        is_list: false,
        may_be_null: true,
        about: RecordSubject::Transaction(B256::repeat_byte(0xab)),
    };

    fn receipt(batch: Value) -> Value {
        json!({
            "transactionHash": B256::repeat_byte(0xab), "blockHash": B256::repeat_byte(1), "blockNumber": "0x7",
            "from": "0xABcd", "l1BatchNumber": batch, "note": "visit example.org",
            "logs": [{"data": "0x", "address": "0xAB", "note": 1, "l1BatchNumber": batch}],
        })
    }

    #[test]
    fn unknown_members_are_left_out_and_the_way_of_writing_does_not_matter() {
        let record = read(RECEIPT_OF, &receipt(Value::Null)).unwrap();
        let text = std::str::from_utf8(&record.whole).unwrap();
        assert!(
            !text.contains("note") && text.contains("\"0xabcd\"") && text.contains("\"address\":\"0xab\""),
            "{text}"
        );
        assert_eq!(record.block, Some(BlockRef { number: 7, hash: B256::repeat_byte(1) }));
    }

    /// In which batch a block is proven on layer 1 is known some time after the block.
    #[test]
    fn what_nodes_learn_later_is_told_apart() {
        let [early, late] =
            [Value::Null, json!("0x5")].map(|batch| read(RECEIPT_OF, &receipt(batch)).unwrap());
        assert_eq!(early.settled, late.settled);
        assert_ne!(early.whole, late.whole);
    }

    #[test]
    fn what_is_about_something_else_is_no_answer() {
        let other = RecordForm { about: RecordSubject::Transaction(B256::ZERO), ..RECEIPT_OF };
        assert_eq!(read(other, &receipt(Value::Null)), Err(NoStatement::Malformed));
        let elsewhere = RecordSubject::InBlock(BlockRef { number: 8, hash: B256::repeat_byte(1) });
        assert_eq!(
            read(RecordForm { about: elsewhere, ..RECEIPT_OF }, &receipt(Value::Null)),
            Err(NoStatement::Malformed)
        );
        assert_eq!(
            read(RecordForm { is_list: true, ..RECEIPT_OF }, &receipt(Value::Null)),
            Err(NoStatement::Malformed)
        );
        let must_be_there = RecordForm { may_be_null: false, ..RECEIPT_OF };
        assert_eq!(must_be_there.read(&Bytes::from_static(b"null")), Err(NoStatement::NotThere));
    }
}
