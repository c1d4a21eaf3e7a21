//! Objects and lists of nodes, with the members that we know and nothing else. They are compared where no block proves them.
//!
//! Nodes write the same in different forms: upper case, leading zeros, `null` for a member that is not there, digits of a fraction.
//! The form in which records are compared has none of these differences; the one that is delivered is as the node has written it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use alloy_primitives::B256;
use bytes::Bytes;
use nodes::raw::read_quantity;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{NoStatement, Statement};

/// The kind of an object, which says which members it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::state) enum RecordKind {
    Block,
    /// Of a block or an uncle.
    Header,
    Transaction,
    Receipt,
    Log,
    Withdrawal,
    Authorization,
    RawTransaction,
    FeeHistory,
}

/// A member of an object.
#[derive(Clone, Copy)]
enum RecordMember {
    /// Text, numbers and lists of them.
    Plain(&'static str),
    /// A number in hexadecimal digits, or a list of them.
    Quantity(&'static str),
    /// A member like `Plain` that one node may know sooner than another.
    Later(&'static str),
    /// A list of objects, or of hashes.
    List(&'static str, RecordKind),
}

use RecordMember::{Later, List, Plain, Quantity};
use methods::BlockRef;

impl RecordKind {
    fn members(self) -> &'static [RecordMember] {
        match self {
            Self::Block => BLOCK,
            Self::Header => HEADER,
            Self::Transaction => TRANSACTION,
            Self::Receipt => RECEIPT,
            Self::Log => LOG,
            Self::Withdrawal => WITHDRAWAL,
            Self::Authorization => AUTHORIZATION,
            Self::RawTransaction => RAW_TRANSACTION,
            Self::FeeHistory => FEE_HISTORY,
        }
    }
}

#[rustfmt::skip]
const HEADER: &[RecordMember] = &[
    Quantity("number"), Plain("hash"), Plain("parentHash"), Plain("nonce"), Plain("mixHash"), Plain("sha3Uncles"),
    Plain("logsBloom"), Plain("transactionsRoot"), Plain("stateRoot"), Plain("receiptsRoot"), Plain("miner"),
    Plain("author"), Quantity("difficulty"), Quantity("totalDifficulty"), Plain("extraData"), Quantity("size"),
    Quantity("gasLimit"), Quantity("gasUsed"), Quantity("timestamp"), Quantity("baseFeePerGas"), Plain("withdrawalsRoot"),
    Quantity("blobGasUsed"), Quantity("excessBlobGas"), Plain("parentBeaconBlockRoot"), Plain("requestsHash"),
    Plain("sealFields"), Plain("uncles"),
];

#[rustfmt::skip]
const BLOCK: &[RecordMember] = &[
    Quantity("number"), Plain("hash"), Plain("parentHash"), Plain("nonce"), Plain("mixHash"), Plain("sha3Uncles"),
    Plain("logsBloom"), Plain("transactionsRoot"), Plain("stateRoot"), Plain("receiptsRoot"), Plain("miner"),
    Plain("author"), Quantity("difficulty"), Quantity("totalDifficulty"), Plain("extraData"), Quantity("size"),
    Quantity("gasLimit"), Quantity("gasUsed"), Quantity("timestamp"), Quantity("baseFeePerGas"), Plain("withdrawalsRoot"),
    Quantity("blobGasUsed"), Quantity("excessBlobGas"), Plain("parentBeaconBlockRoot"), Plain("requestsHash"),
    Plain("sealFields"), Plain("uncles"), List("withdrawals", RecordKind::Withdrawal), List("transactions", RecordKind::Transaction),
    Later("l1BatchNumber"), Later("l1BatchTimestamp"),
];

#[rustfmt::skip]
const TRANSACTION: &[RecordMember] = &[
    Plain("hash"), Quantity("nonce"), Plain("blockHash"), Quantity("blockNumber"), Quantity("blockTimestamp"),
    Quantity("transactionIndex"), Plain("from"), Plain("to"), Quantity("value"), Quantity("gasPrice"), Quantity("gas"),
    Quantity("maxFeePerGas"), Quantity("maxPriorityFeePerGas"), Quantity("maxFeePerBlobGas"), Plain("blobVersionedHashes"),
    Plain("input"), Quantity("type"), Quantity("chainId"), Plain("accessList"), List("authorizationList", RecordKind::Authorization),
    Quantity("v"), Quantity("r"), Quantity("s"), Quantity("yParity"),
    Later("l1BatchNumber"), Later("l1BatchTxIndex"),
];

#[rustfmt::skip]
const RECEIPT: &[RecordMember] = &[
    Plain("transactionHash"), Quantity("transactionIndex"), Plain("blockHash"), Quantity("blockNumber"), Plain("from"),
    Plain("to"), Quantity("cumulativeGasUsed"), Quantity("gasUsed"), Plain("contractAddress"), List("logs", RecordKind::Log),
    Plain("logsBloom"), Quantity("status"), Plain("root"), Quantity("type"), Quantity("effectiveGasPrice"),
    Quantity("blobGasUsed"), Quantity("blobGasPrice"),
    Later("l1BatchNumber"), Later("l1BatchTxIndex"), Later("l2ToL1Logs"),
];

#[rustfmt::skip]
const LOG: &[RecordMember] = &[
    Plain("address"), Plain("topics"), Plain("data"), Plain("blockHash"), Quantity("blockNumber"),
    Quantity("blockTimestamp"), Plain("transactionHash"), Quantity("transactionIndex"), Quantity("logIndex"),
    Quantity("transactionLogIndex"), Plain("logType"), Plain("removed"),
    Later("l1BatchNumber"),
];

const WITHDRAWAL: &[RecordMember] =
    &[Quantity("index"), Quantity("validatorIndex"), Plain("address"), Quantity("amount")];

#[rustfmt::skip]
const AUTHORIZATION: &[RecordMember] = &[
    Quantity("chainId"), Plain("address"), Quantity("nonce"), Quantity("yParity"), Quantity("r"), Quantity("s"),
];

const RAW_TRANSACTION: &[RecordMember] =
    &[Plain("common_data"), Plain("execute"), Plain("received_timestamp_ms"), Plain("raw_bytes")];

#[rustfmt::skip]
const FEE_HISTORY: &[RecordMember] = &[
    Quantity("oldestBlock"), Quantity("reward"), Quantity("baseFeePerGas"), Plain("gasUsedRatio"),
    Quantity("baseFeePerBlobGas"), Plain("blobGasUsedRatio"),
];

/// The block or transaction that an answer must be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::state) enum RecordSubject {
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
pub(in crate::state) struct RecordForm {
    pub(in crate::state) kind: RecordKind,
    pub(in crate::state) is_list: bool,
    /// Whether there may be nothing.
    pub(in crate::state) may_be_null: bool,
    pub(in crate::state) about: RecordSubject,
}

/// An object or a list as it is compared and as it is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::state) struct Record {
    /// In the form in which it is compared: without what may be known to one node sooner than to another.
    pub(in crate::state) settled: Bytes,
    /// In the form in which it is delivered: with it.
    pub(in crate::state) whole: Bytes,
    /// The block that a transaction or a receipt is in. None for a pending one.
    pub(in crate::state) block: Option<BlockRef>,
    /// How many objects a list has.
    pub(in crate::state) count: usize,
}

impl RecordForm {
    pub(in crate::state) fn read(self, result: &Bytes) -> Result<Statement, NoStatement> {
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
        let raw: &RawValue = serde_json::from_slice(result).map_err(|_| NoStatement::Malformed)?;
        let written =
            |form| RecordWriter { form, out: String::with_capacity(result.len()) }.write(raw, self.kind);
        let block = if self.is_list { None } else { block_of(&value) };
        let (settled, whole) = (written(WrittenForm::Compared), written(WrittenForm::Delivered));
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
    read_quantity(object.get(name)?.as_str()?)
}

fn block_of(object: &Value) -> Option<BlockRef> {
    Some(BlockRef { number: number(object, "blockNumber")?, hash: hash(object, "blockHash")? })
}

/// The purpose for which a record is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WrittenForm {
    Compared,
    Delivered,
}

/// Writes a record that is known to be JSON of limited depth.
struct RecordWriter {
    form: WrittenForm,
    out: String,
}

impl RecordWriter {
    /// An object, or a list of objects, of this kind.
    fn write(mut self, record: &RawValue, kind: RecordKind) -> Bytes {
        self.known_items(record, kind);
        self.out.into()
    }

    fn known_items(&mut self, value: &RawValue, kind: RecordKind) {
        match items(value) {
            Some(items) => self.list(items, |this, item| this.known(item, kind)),
            None => self.known(value, kind),
        }
    }

    /// An object with the members that we know, in our order.
    fn known(&mut self, object: &RawValue, kind: RecordKind) {
        let Some(given) = members(object) else { return self.plain(object) };
        let mut separator = '{';
        for member in kind.members() {
            let (Plain(name) | Quantity(name) | Later(name) | List(name, _)) = *member;
            let is_left_out = |value: &RawValue| {
                self.form == WrittenForm::Compared && (matches!(member, Later(_)) || value.get() == "null")
            };
            let Some(value) = given.get(name).copied().filter(|value| !is_left_out(value)) else { continue };
            self.out.push(separator);
            separator = ',';
            self.string(name);
            self.out.push(':');
            match *member {
                Plain(_) | Later(_) => self.plain(value),
                Quantity(_) => self.quantity(value),
                List(_, of) => self.known_items(value, of),
            }
        }
        self.out.push_str(if separator == '{' { "{}" } else { "}" });
    }

    /// A value with its hex digits in lower case, because nodes write addresses in different ways.
    fn plain(&mut self, value: &RawValue) {
        if let Some(items) = items(value) {
            return self.list(items, Self::plain);
        }
        if let Some(given) = members(value) {
            let mut separator = '{';
            for (name, value) in &given {
                self.out.push(separator);
                separator = ',';
                self.string(name);
                self.out.push(':');
                self.plain(value);
            }
            return self.out.push_str(if given.is_empty() { "{}" } else { "}" });
        }
        match serde_json::from_str::<Cow<'_, str>>(value.get()) {
            Ok(text) if text.starts_with("0x") => self.string(&text.to_ascii_lowercase()),
            Ok(text) => self.string(&text),
            Err(_) => self.literal(value.get()),
        }
    }

    /// A number in hexadecimal digits, which some nodes write with leading zeros.
    fn quantity(&mut self, value: &RawValue) {
        if let Some(items) = items(value) {
            return self.list(items, Self::quantity);
        }
        let digits = value.get().strip_prefix("\"0x").and_then(|rest| rest.strip_suffix('"'));
        match digits.filter(|_| self.form == WrittenForm::Compared) {
            Some(digits) if !digits.is_empty() => {
                let significant = digits.trim_start_matches('0').to_ascii_lowercase();
                self.string(&format!(
                    "0x{}",
                    if significant.is_empty() { "0" } else { significant.as_str() }
                ));
            }
            _ => self.plain(value),
        }
    }

    /// A number, a boolean or null. A fraction that is read and written again may lose its last digit.
    fn literal(&mut self, text: &str) {
        match text.parse::<f64>() {
            Ok(number) if self.form == WrittenForm::Compared && text.parse::<u64>().is_err() => {
                self.out.push_str(&number.to_string());
            }
            _ => self.out.push_str(text),
        }
    }

    fn list(&mut self, items: Vec<&RawValue>, write: impl Fn(&mut Self, &RawValue)) {
        self.out.push('[');
        for (place, item) in items.into_iter().enumerate() {
            if place > 0 {
                self.out.push(',');
            }
            write(self, item);
        }
        self.out.push(']');
    }

    fn string(&mut self, text: &str) {
        self.out.push_str(&Value::from(text).to_string());
    }
}

fn items(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

fn members(value: &RawValue) -> Option<BTreeMap<Cow<'_, str>, &RawValue>> {
    serde_json::from_str(value.get()).ok()
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

    /// The last digit of a fraction was changed by reading and writing it, and nodes that write the same number in other forms, or null
    /// for what is not there, contradicted each other.
    #[test]
    fn what_differs_in_form_only_is_equal_and_delivered_as_it_was_written() {
        let form = RecordForm {
            kind: RecordKind::FeeHistory,
            is_list: false,
            may_be_null: false,
            about: RecordSubject::Anything,
        };
        let read = |text: &'static str| match form.read(&Bytes::from_static(text.as_bytes())) {
            Ok(Statement::Record(record)) => record,
            other => panic!("{other:?}"),
        };
        let usual = r#"{"oldestBlock":"0x1","baseFeePerGas":["0xa"],"gasUsedRatio":[0.10000000000000002,0.5,1],"blobGasUsedRatio":[0.16666666666666666]}"#;
        let one = read(usual);
        assert_eq!(one.whole, usual);
        for same in [
            r#"{"oldestBlock":"0x01","baseFeePerGas":["0x0A"],"gasUsedRatio":[0.10000000000000002,5e-1,1.0],"blobGasUsedRatio":[0.16666666666666666],"reward":null}"#,
            r#"{"blobGasUsedRatio":[0.166666666666666660],"gasUsedRatio":[0.10000000000000002,0.50,1.0],"baseFeePerGas":["0xa"],"oldestBlock":"0x1"}"#,
        ] {
            assert_eq!(read(same).settled, one.settled);
        }
        let other = read(
            r#"{"oldestBlock":"0x1","baseFeePerGas":["0xa"],"gasUsedRatio":[0.1,0.5,1],"blobGasUsedRatio":[0.16666666666666666]}"#,
        );
        assert_ne!(other.settled, one.settled);
    }

    /// Numbers in the lists of a transaction or a block were compared digit by digit.
    #[test]
    fn numbers_in_lists_are_compared_as_numbers() {
        let settled = |kind, text: &str| {
            let about = RecordSubject::Anything;
            let form = RecordForm { kind, is_list: false, may_be_null: false, about };
            match form.read(&Bytes::copy_from_slice(text.as_bytes())) {
                Ok(Statement::Record(record)) => record.settled,
                other => panic!("{other:?}"),
            }
        };
        for (kind, one, other) in [
            (
                RecordKind::Block,
                r#"{"withdrawals":[{"index":"0x1","validatorIndex":"0x2","address":"0xab","amount":"0x3"}]}"#,
                r#"{"withdrawals":[{"amount":"0x03","address":"0xAB","validatorIndex":"0x02","index":"0x01"}]}"#,
            ),
            (
                RecordKind::Transaction,
                r#"{"authorizationList":[{"chainId":"0x1","address":"0xab","nonce":"0x0","yParity":"0x1","r":"0x5","s":"0x6"}]}"#,
                r#"{"authorizationList":[{"chainId":"0x1","address":"0xab","nonce":"0x00","yParity":"0x01","r":"0x05","s":"0x06"}]}"#,
            ),
        ] {
            assert_eq!(settled(kind, one), settled(kind, other));
            assert_ne!(settled(kind, one), settled(kind, &other.replace("0x01", "0x02")));
        }
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
