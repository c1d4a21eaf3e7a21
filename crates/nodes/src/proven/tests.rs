//! Deliveries that nobody has changed are proven, and a change on the way never changes the proven data.

use std::collections::HashMap;

use alloy_consensus::constants::KECCAK_EMPTY;
use alloy_consensus::{Header, proofs};
use alloy_primitives::{B256, Bytes};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::*;
use crate::raw::tests::corpora::{chain, corpora, exchanges, written};
use crate::raw::tests::sample::{Sample, rpc_block, sample};

fn proven(sample: &Sample) -> (ProvenBody, ProvenReceipts) {
    let body = ProvenBody::prove(sample.full.as_bytes(), sample.id.hash).unwrap();
    let receipts = ProvenReceipts::prove(sample.receipts.as_bytes(), &body).unwrap();
    (body, receipts)
}

fn same_body(one: &ProvenBody, other: &ProvenBody) -> bool {
    let senders = |body: &ProvenBody| (0..6).map(|index| body.sender(index)).collect::<Vec<_>>();
    one.hash() == other.hash()
        && one.header() == other.header()
        && one.transactions() == other.transactions()
        && one.withdrawals() == other.withdrawals()
        && senders(one) == senders(other)
}

fn same_receipts(one: &ProvenReceipts, other: &ProvenReceipts) -> bool {
    let all = |receipts: &ProvenReceipts| {
        let text = |index| format!("{:?}", receipts.get(index));
        (0..receipts.len()).map(text).collect::<Vec<_>>()
    };
    all(one) == all(other)
}

#[test]
fn every_type_of_transaction_and_its_receipt_are_proven() {
    let sample = sample();
    let (body, receipts) = proven(&sample);
    assert_eq!((body.id(), body.transactions().len(), receipts.len()), (sample.id, 6, 6));
    for (index, hash) in sample.transaction_hashes.iter().enumerate() {
        assert_eq!(body.position(hash), Some(index));
        let written: Value = serde_json::from_str(&sample.transactions[index]).unwrap();
        assert_eq!(json!(body.sender(index)), written["from"]);
        let receipt = receipts.get(index).unwrap();
        assert_eq!((receipt.gas_used, receipt.logs.len()), (50_000, index % 4));
    }
    assert_eq!(receipts.get(3).unwrap().first_log, 3);
    let single = sample.receipt.iter().map(|receipt| receipt.as_bytes());
    assert!(same_receipts(&ProvenReceipts::prove_single(single, &body).unwrap(), &receipts));
}

#[test]
fn null_is_not_there_and_an_unknown_type_proves_nothing_about_the_node() {
    let sample = sample();
    let (body, _) = proven(&sample);
    assert_eq!(ProvenBody::prove(b" null", sample.id.hash).unwrap_err(), Unproven::NotThere);
    assert_eq!(ProvenReceipts::prove(b"null\n", &body).unwrap_err(), Unproven::NotThere);
    let mut block: Value = serde_json::from_str(&sample.full).unwrap();
    block["transactions"][1]["type"] = json!("0x7e");
    let unproven = ProvenBody::prove(block.to_string().as_bytes(), sample.id.hash).unwrap_err();
    assert_eq!(unproven, Unproven::UnknownType(0x7e));
}

/// The check that finds a change of each part of a delivery.
#[test]
fn the_part_that_is_wrong_is_named() {
    let sample = sample();
    let (body, _) = proven(&sample);
    let block = |change: &dyn Fn(&mut Value)| {
        let mut block: Value = serde_json::from_str(&sample.full).unwrap();
        change(&mut block);
        ProvenBody::prove(block.to_string().as_bytes(), sample.id.hash).err()
    };
    let wrong = |failure| Some(Unproven::Wrong(failure));
    assert_eq!(block(&|block| block["gasUsed"] = json!("0x1")), wrong(ProofFailure::HeaderHash));
    let swap = |block: &mut Value| block["transactions"].as_array_mut().unwrap().swap(0, 1);
    assert_eq!(block(&swap), wrong(ProofFailure::TransactionsRoot));
    let withdrawals = |block: &mut Value| block["withdrawals"] = json!([]);
    assert_eq!(block(&withdrawals), wrong(ProofFailure::WithdrawalsRoot));
    assert_eq!(block(&|block| block["miner"] = json!(7)), wrong(ProofFailure::Malformed));
    let receipts = |delivery: &str| ProvenReceipts::prove(delivery.as_bytes(), &body).err();
    let failed = sample.receipts.replace("\"status\":\"0x1\"", "\"status\":\"0x0\"");
    assert_eq!(receipts(&failed), wrong(ProofFailure::ReceiptsRoot));
    assert_eq!(receipts("[]"), Some(Unproven::NotThere), "the node has dropped them");
}

/// Headers of every fork: each has one more of the members that came with the forks.
fn headers_of_forks() -> Vec<Header> {
    let add: [fn(&mut Header); 8] = [
        |header| header.base_fee_per_gas = Some(7),
        |header| header.withdrawals_root = Some(B256::repeat_byte(1)),
        |header| header.blob_gas_used = Some(0x20000),
        |header| header.excess_blob_gas = Some(0x40000),
        |header| header.parent_beacon_block_root = Some(B256::repeat_byte(2)),
        |header| header.requests_hash = Some(B256::repeat_byte(3)),
        |header| header.block_access_list_hash = Some(B256::repeat_byte(4)),
        |header| header.slot_number = Some(9),
    ];
    let mut header = Header { number: 9, ..Header::default() };
    let mut headers = vec![header.clone()];
    for add in add {
        add(&mut header);
        headers.push(header.clone());
    }
    headers
}

/// A node moved the values of members to later members, which leaves the hash as it is: base fees, withdrawals and requests
/// were not there, or were others, and counted as proven.
#[test]
fn the_values_of_a_header_have_their_names() {
    const NAMES: [&str; 8] = [
        "baseFeePerGas",
        "withdrawalsRoot",
        "blobGasUsed",
        "excessBlobGas",
        "parentBeaconBlockRoot",
        "requestsHash",
        "blockAccessListHash",
        "slotNumber",
    ];
    let mut moved = 0;
    for header in headers_of_forks() {
        let [_, block] = rpc_block(&header, &[], vec![], None);
        let mut block: Value = serde_json::from_str(&block).unwrap();
        assert!(ProvenHeader::prove(block.to_string().as_bytes(), header.hash_slow()).is_ok());
        let members = block.as_object_mut().unwrap();
        let values: Vec<Value> = NAMES.iter().filter_map(|name| members.remove(*name)).collect();
        for places in 0..1_u32 << NAMES.len() {
            let is_true = places == (1 << values.len()) - 1;
            if places.count_ones() as usize != values.len() || is_true {
                continue;
            }
            let mut lie = block.clone();
            let names = NAMES.iter().enumerate().filter(|(place, _)| places >> place & 1 == 1);
            names.zip(&values).for_each(|((_, name), value)| lie[*name] = value.clone());
            let json = lie.to_string();
            let has_same_hash = serde_json::from_str::<Header>(&json)
                .is_ok_and(|other| other.hash_slow() == header.hash_slow());
            moved += u32::from(has_same_hash);
            assert!(ProvenHeader::prove(json.as_bytes(), header.hash_slow()).is_err(), "{json}");
        }
    }
    assert!(moved > 20, "{moved} of the lies have the hash of the truth");
}

/// A node gave some block for every number, which was taken for an answer.
#[test]
fn a_block_of_another_number_is_no_answer_to_a_number() {
    let sample = sample();
    let number = sample.id.number;
    assert!(ProvenHeader::read_of_number(sample.full.as_bytes(), number).is_ok());
    assert!(ProvenBody::read_of_number(sample.full.as_bytes(), number).is_ok());
    let wrong = Unproven::Wrong(ProofFailure::OtherNumber);
    assert_eq!(ProvenHeader::read_of_number(sample.full.as_bytes(), number + 1).unwrap_err(), wrong);
    assert_eq!(ProvenBody::read_of_number(sample.full.as_bytes(), number + 1).unwrap_err(), wrong);
}

#[test]
fn too_many_transactions_are_not_read() {
    let sample = sample();
    let mut block: Value = serde_json::from_str(&sample.full).unwrap();
    block["transactions"] = json!(vec![&block["transactions"][0]; body::TRANSACTIONS_MAX + 1]);
    let unproven = ProvenBody::prove(block.to_string().as_bytes(), sample.id.hash).unwrap_err();
    assert_eq!(unproven, Unproven::Wrong(ProofFailure::Malformed));
}

/// A header with these uncles, as a block and as its uncles are delivered.
fn with_uncles(uncles: &[Header]) -> (ProvenBody, Vec<String>) {
    let ommers_hash = proofs::calculate_ommers_root(uncles);
    let empty = proofs::calculate_transaction_root::<SignedTransaction>(&[]);
    let header = Header { number: 9, ommers_hash, transactions_root: empty, ..Header::default() };
    let hashes = uncles.iter().map(Header::hash_slow).collect();
    let [full, _] = rpc_block(&header, &[], hashes, None);
    let body = ProvenBody::prove(full.as_bytes(), header.hash_slow()).unwrap();
    let deliveries = uncles.iter().map(|uncle| rpc_block(uncle, &[], vec![], None)[1].clone());
    (body, deliveries.chain(["null".to_owned()]).collect())
}

#[test]
fn uncles_are_proven_together() {
    let uncle = |number| Header { number, extra_data: Bytes::from_static(b"uncle"), ..Header::default() };
    let uncles = [uncle(7), uncle(8)];
    let (body, deliveries) = with_uncles(&uncles);
    let prove = |deliveries: &[&String]| {
        let proven = ProvenUncles::prove(deliveries.iter().map(|text| text.as_bytes()), &body);
        proven.map(|proven| proven.headers().to_vec())
    };
    let [one, other, null] = &deliveries[..] else { unreachable!() };
    assert_eq!(prove(&[one, other]).as_deref(), Ok(&uncles[..]));
    let wrong = Err(Unproven::Wrong(ProofFailure::UnclesHash));
    for deliveries in [&[other, one][..], &[one, null], &[one, one]] {
        assert_eq!(prove(deliveries), wrong);
    }
    assert_eq!(prove(&[null, one]), Err(Unproven::NotThere), "a node that has none has not lied");
    assert!(ProvenUncles::none(&body).is_none());
    assert!(ProvenUncles::none(&with_uncles(&[]).0).is_some());
}

#[test]
fn a_claim_names_a_block_or_carries_what_was_signed() {
    let sample = sample();
    for (text, hash) in sample.transactions.iter().zip(&sample.transaction_hashes) {
        let claim = LocationClaim::of_transaction(text.as_bytes(), *hash).unwrap();
        assert!(matches!(claim, LocationClaim::Block(block) if block == sample.id));
        let mut pending: Value = serde_json::from_str(text).unwrap();
        for member in ["blockHash", "blockNumber", "transactionIndex"] {
            pending[member] = Value::Null;
        }
        let claim = LocationClaim::of_transaction(pending.to_string().as_bytes(), *hash).unwrap();
        assert!(matches!(claim, LocationClaim::Pending(of) if of.transaction.tx_hash() == hash));
        let other = LocationClaim::of_transaction(pending.to_string().as_bytes(), B256::ZERO);
        assert!(other.is_err(), "it is another transaction");
    }
    let claim = LocationClaim::of_receipt(sample.receipt[0].as_bytes()).unwrap();
    assert!(matches!(claim, LocationClaim::Block(block) if block == sample.id));
    assert!(matches!(LocationClaim::of_receipt(b"null"), Ok(LocationClaim::Nowhere)));
    assert!(LocationClaim::of_receipt(b"{\"blockHash\":null,\"blockNumber\":null}").is_err());
}

/// The places of all values, as JSON pointers.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{at}/{index}"), out));
        }
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| places(member, &format!("{at}/{name}"), out));
        }
        _ => {}
    }
}

/// How one value is changed.
#[derive(Clone, Debug)]
enum Change {
    Replace(Value),
    /// Another digit at some place.
    Digit(Index, u8),
    /// Without one of its members or items.
    Drop(Index),
    /// One item or member twice.
    Repeat(Index),
    /// Two items have changed places.
    Swap(Index, Index),
    Add,
}

fn changes() -> impl Strategy<Value = Change> {
    let values =
        [json!(null), json!("0x"), json!("0x0"), json!("0x7e"), json!([]), json!({}), json!(1), json!("0x1")];
    prop_oneof![
        proptest::sample::select(values.to_vec()).prop_map(Change::Replace),
        (any::<Index>(), 0..16_u8).prop_map(|(at, digit)| Change::Digit(at, digit)),
        any::<Index>().prop_map(Change::Drop),
        any::<Index>().prop_map(Change::Repeat),
        any::<(Index, Index)>().prop_map(|(one, other)| Change::Swap(one, other)),
        Just(Change::Add),
    ]
}

fn change(value: &mut Value, change: &Change) {
    match (change, value) {
        (Change::Replace(other), value) => *value = other.clone(),
        (Change::Digit(at, digit), Value::String(text)) if text.len() > 2 => {
            let at = 2 + at.index(text.len() - 2);
            text.replace_range(at..=at, &format!("{digit:x}"));
        }
        (Change::Drop(at), Value::Array(items)) if !items.is_empty() => {
            _ = items.remove(at.index(items.len()));
        }
        (Change::Drop(at), Value::Object(members)) if !members.is_empty() => {
            let name = members.keys().nth(at.index(members.len())).unwrap().clone();
            members.remove(&name);
        }
        (Change::Repeat(at), Value::Array(items)) if !items.is_empty() => {
            let item = items[at.index(items.len())].clone();
            items.push(item);
        }
        (Change::Swap(one, other), Value::Array(items)) if !items.is_empty() => {
            let count = items.len();
            items.swap(one.index(count), other.index(count));
        }
        (Change::Add, Value::Object(members)) => {
            _ = members.insert("note".to_owned(), json!("a note"));
        }
        _ => {}
    }
}

/// A delivery with some of its values changed.
fn changed(text: &str, at: &[(Index, Change)]) -> String {
    let mut value: Value = serde_json::from_str(text).unwrap();
    for (place, with) in at {
        let mut all = Vec::new();
        places(&value, "", &mut all);
        let pointer = &all[place.index(all.len())];
        change(value.pointer_mut(pointer).unwrap(), with);
    }
    value.to_string()
}

fn some_changes() -> impl Strategy<Value = Vec<(Index, Change)>> {
    prop::collection::vec((any::<Index>(), changes()), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever a node changes in a block is refused, or changes nothing that is proven.
    #[test]
    fn no_change_of_a_block_changes_what_is_proven(changes in some_changes()) {
        let sample = sample();
        let (truth, _) = proven(&sample);
        let delivery = changed(&sample.full, &changes);
        if let Ok(body) = ProvenBody::prove(delivery.as_bytes(), sample.id.hash) {
            prop_assert!(same_body(&body, &truth), "{delivery}");
        }
    }

    #[test]
    fn no_change_of_receipts_changes_what_is_proven(changes in some_changes()) {
        let sample = sample();
        let (body, truth) = proven(&sample);
        let delivery = changed(&sample.receipts, &changes);
        if let Ok(receipts) = ProvenReceipts::prove(delivery.as_bytes(), &body) {
            prop_assert!(same_receipts(&receipts, &truth), "{delivery}");
        }
    }

    /// Bytes that are no delivery at all are refused without a panic.
    #[test]
    fn anything_may_be_delivered(delivery in prop::collection::vec(any::<u8>(), 0..200)) {
        let sample = sample();
        let (body, _) = proven(&sample);
        prop_assert!(ProvenBody::prove(&delivery, sample.id.hash).is_err());
        prop_assert!(ProvenReceipts::prove(&delivery, &body).is_err());
        let _claim = LocationClaim::of_transaction(&delivery, B256::ZERO);
    }
}

/// Every block of the recorded chains, and every list of receipts that was recorded with them.
#[test]
fn recorded_blocks_and_receipts_are_proven() {
    for corpus in corpora() {
        let mut bodies = HashMap::new();
        for block in chain(&corpus) {
            let hash = block.header.hash_slow();
            let [full, _] = written(&block);
            let body = ProvenBody::prove(full.as_bytes(), hash).unwrap();
            assert_eq!(body.header(), &block.header);
            assert_eq!(body.transactions(), &block.body.transactions);
            assert!((0..body.transactions().len()).all(|index| body.sender(index).is_some()));
            bodies.insert(json!(hash), body);
        }
        let receipts =
            exchanges(&corpus).into_iter().filter(|exchange| exchange.method == "eth_getBlockReceipts");
        for exchange in receipts {
            let list = exchange.result.as_array().cloned().unwrap_or_default();
            let Some(body) = list.first().and_then(|receipt| bodies.get(&receipt["blockHash"])) else {
                continue;
            };
            let proven = ProvenReceipts::prove(exchange.result.to_string().as_bytes(), body).unwrap();
            assert_eq!(proven.len(), list.len());
        }
    }
}

#[test]
fn every_failure_is_counted_under_a_name_of_its_own() {
    for (place, failure) in ProofFailure::ALL.into_iter().enumerate() {
        assert_eq!(failure as usize, place, "{failure:?}");
        let same_name = ProofFailure::ALL.into_iter().filter(|other| other.name() == failure.name());
        assert_eq!(same_name.count(), 1, "{failure:?}");
    }
}

/// An empty block with this header, as a node writes it.
fn empty_block(header: &Header) -> Value {
    let mut block = serde_json::to_value(header).unwrap();
    block["hash"] = json!(header.hash_slow());
    block["transactions"] = json!([]);
    block
}

/// The first blocks of anvil with forks before Shanghai were called wrong, and with them every node that had delivered them. Their hashes
/// do not say which members they have, so that a quorum must.
#[test]
fn a_header_with_a_gap_is_odd_and_one_with_moved_members_is_wrong() {
    let london = Header { number: 7, base_fee_per_gas: Some(9), ..Header::default() };
    let odd = Header { blob_gas_used: Some(0), excess_blob_gas: Some(0), ..london.clone() };
    let hash = odd.hash_slow();
    let text = empty_block(&odd).to_string();
    assert_eq!(ProvenBody::prove(text.as_bytes(), hash).unwrap_err(), Unproven::OddHeader);
    let header = ProvenHeader::prove(text.as_bytes(), hash).unwrap();
    assert!(header.fees.has_gap && header.id.number == 7);
    assert!(!ProvenHeader::of(london.hash_slow(), &london).fees.has_gap);

    let mut moved = empty_block(&london);
    let fee = moved.as_object_mut().and_then(|members| members.remove("baseFeePerGas")).unwrap();
    moved["slotNumber"] = fee;
    let (text, hash) = (moved.to_string(), london.hash_slow());
    let malformed = Unproven::Wrong(ProofFailure::Malformed);
    assert_eq!(ProvenBody::prove(text.as_bytes(), hash).unwrap_err(), malformed);
    assert_eq!(ProvenHeader::prove(text.as_bytes(), hash).unwrap_err(), malformed);
    assert_eq!(prove_header(text.as_bytes(), hash).unwrap_err(), malformed);
}

/// Hardhat hashes nothing at all in its first block, where others hash an empty list.
#[test]
fn an_empty_block_may_have_the_hash_of_nothing_as_its_root() {
    let header = Header { transactions_root: KECCAK_EMPTY, receipts_root: KECCAK_EMPTY, ..Header::default() };
    let mut block = empty_block(&header);
    let body = ProvenBody::prove(block.to_string().as_bytes(), header.hash_slow()).unwrap();
    assert!(body.transactions().is_empty() && ProvenReceipts::none(&body).is_some());
    let sample: Value = serde_json::from_str(&sample().full).unwrap();
    block["transactions"] = sample["transactions"].clone();
    let listed = ProvenBody::prove(block.to_string().as_bytes(), header.hash_slow());
    assert_eq!(listed.unwrap_err(), Unproven::Wrong(ProofFailure::TransactionsRoot));
}
