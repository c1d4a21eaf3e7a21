//! What nodes do differently, and what no check must fall for.

use serde_json::{Value, json};

use super::sample::{sample, word};
use super::*;

fn tree(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The answer with one member set, or taken away by null.
fn with(text: &str, pointer: &str, value: Value) -> String {
    let mut tree = tree(text);
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    tree.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(name.to_owned(), value);
    tree.to_string()
}

fn verdict(expect: &Expect, result: &str, family: Family) -> Verdict {
    check(expect, result.as_bytes(), family)
}

#[test]
fn the_answer_to_another_question_is_found_out() {
    let sample = sample();
    let other = BlockId { hash: word(99), ..sample.id };
    let block = |hash, number, full| Expect::Block { hash, number, full };
    let transaction = |hash, block, index| Expect::Transaction { hash, block, index };
    let (tx, receipt) = (&sample.transactions[1], &sample.receipt[1]);
    for (expect, result, expected) in [
        (block(Some(word(99)), None, true), &sample.full, Lie::OtherBlock),
        (block(None, Some(1), true), &sample.full, Lie::OtherBlock),
        (block(None, None, false), &sample.full, Lie::Shape),
        (block(None, None, true), &sample.hashes, Lie::Shape),
        (transaction(Some(word(99)), None, None), tx, Lie::OtherTransaction),
        (transaction(None, Some(other), Some(1)), tx, Lie::OtherBlock),
        (transaction(None, Some(sample.id), Some(2)), tx, Lie::OtherIndex),
        (Expect::Receipt { transaction: word(99) }, receipt, Lie::OtherTransaction),
        (Expect::Receipts { block: other, header: None }, &sample.receipts, Lie::OtherBlock),
    ] {
        assert_eq!(lie(&expect, result), Some(expected), "{expect:?}");
    }
}

#[test]
fn transactions_cannot_be_left_out_of_a_block() {
    let sample = sample();
    let (expect, full) = sample.block(true);
    let mut block = tree(full);
    block["transactions"].as_array_mut().unwrap().pop();
    assert_eq!(lie(&expect, &block.to_string()), Some(Lie::TransactionsRoot));
    let (expect, hashes) = sample.block(false);
    assert_eq!(lie(&expect, &with(hashes, "/transactions", json!([]))), Some(Lie::TransactionsRoot));
    let twice = json!([word(1), word(1)]);
    assert_eq!(lie(&expect, &with(hashes, "/transactions", twice)), Some(Lie::TransactionsRoot));
    assert_eq!(lie(&expect, &with(hashes, "/withdrawals", json!([]))), Some(Lie::WithdrawalsRoot));
    assert_eq!(lie(&expect, &with(hashes, "/withdrawals", Value::Null)), Some(Lie::WithdrawalsRoot));
    assert_eq!(lie(&expect, &with(hashes, "/uncles", json!([word(1)]))), Some(Lie::Uncles));
}

#[test]
fn receipts_cannot_be_left_out_or_emptied() {
    let sample = sample();
    let (expect, receipts) = sample.receipts();
    let mut fewer = tree(receipts);
    fewer.as_array_mut().unwrap().pop();
    assert_eq!(lie(&expect, &fewer.to_string()), Some(Lie::ReceiptsRoot));
    assert_eq!(lie(&expect, "[]"), Some(Lie::ReceiptsRoot));
    let unknown = Expect::Receipts { block: sample.id, header: None };
    assert_eq!(verdict(&unknown, "[]", Family::Ethereum), Verdict::Empty);
    let facts = sound(&unknown, receipts);
    assert_eq!((facts.count, facts.proven), (6, false));
    let mut emptied = tree(receipts);
    emptied[3]["logs"] = json!([]);
    assert_eq!(lie(&unknown, &emptied.to_string()), Some(Lie::Bloom));
}

#[test]
fn a_member_that_occurs_twice_is_refused() {
    let sample = sample();
    for (expect, result) in [sample.block(true), sample.transaction(0), sample.receipt(1)] {
        let twice = result.replacen('{', &format!("{{\"blockHash\":\"{}\",\"hash\":null,", word(1)), 1);
        assert_eq!(lie(&expect, &twice), Some(Lie::Shape));
    }
}

#[test]
fn foreign_transactions_are_judged_by_their_ids_only() {
    let sample = sample();
    let (expect, result) = sample.transaction(3);
    for foreign in ["0x7e", "0x71", "0xff"] {
        let foreign = with(result, "/type", json!(foreign));
        assert!(!sound(&expect, &foreign).proven);
        let elsewhere = with(&foreign, "/transactionIndex", json!("0x9"));
        assert_eq!(lie(&expect, &elsewhere), Some(Lie::OtherIndex));
    }
    let (expect, block) = sample.block(true);
    let mut deposit = tree(block);
    deposit["transactions"][0]["type"] = json!("0x7e");
    assert!(!sound(&expect, &deposit.to_string()).proven);
}

#[test]
fn parity_is_written_in_many_ways() {
    let sample = sample();
    let (expect, result) = sample.transaction(3);
    let parity = tree(result)["yParity"].as_str().unwrap().to_owned();
    let both = with(result, "/v", json!(parity));
    let mut only_v = tree(&both);
    only_v.as_object_mut().unwrap().remove("yParity");
    let high_v = with(result, "/v", json!(if parity == "0x1" { "0x1c" } else { "0x1b" }));
    for good in [both.clone(), only_v.to_string(), high_v] {
        sound(&expect, &good);
    }
    let torn = with(&both, "/v", json!(if parity == "0x1" { "0x0" } else { "0x1" }));
    assert!(lie(&expect, &torn).is_some());
}

#[test]
fn a_pending_transaction_has_no_block() {
    let sample = sample();
    let mut pending = tree(&sample.transactions[0]);
    for name in ["blockHash", "blockNumber", "transactionIndex"] {
        pending[name] = Value::Null;
    }
    let expect = Expect::Transaction { hash: Some(sample.transaction_hashes[0]), block: None, index: None };
    assert_eq!(sound(&expect, &pending.to_string()).block, None);
    pending["blockNumber"] = json!("0x1");
    assert_eq!(lie(&expect, &pending.to_string()), Some(Lie::Shape));
}

#[test]
fn zksync_answers_are_judged_by_their_ids_only() {
    let sample = sample();
    let (zksync, hash) = (Family::Zksync, json!(word(99)));
    let (expect, block) = sample.block(true);
    let odd = with(block, "/stateRoot", hash.clone());
    assert!(matches!(verdict(&expect, &odd, zksync), Verdict::Sound(facts) if !facts.proven));
    assert_eq!(verdict(&expect, &with(block, "/hash", hash), zksync), Verdict::Wrong(Lie::OtherBlock));
    let (expect, tx) = sample.transaction(1);
    assert!(matches!(verdict(&expect, &with(tx, "/value", json!("0x9")), zksync), Verdict::Sound(_)));
    let (expect, receipt) = sample.receipt(1);
    let odd = with(receipt, "/cumulativeGasUsed", json!("0x0"));
    assert!(matches!(verdict(&expect, &odd, zksync), Verdict::Sound(_)));
    let (expect, receipts) = sample.receipts();
    assert!(matches!(verdict(&expect, receipts, zksync), Verdict::Sound(_)));
}

#[test]
fn nothing_that_a_node_sends_makes_a_check_panic() {
    let sample = sample();
    let asked = [
        sample.block(true),
        sample.block(false),
        sample.transaction(5),
        sample.receipt(3),
        sample.receipts(),
    ];
    for (expect, result) in asked {
        for end in (0..result.len()).step_by(7) {
            lie(&expect, &result[..end]);
        }
        for other in ["null", "[]", "{}", "[{}]", "1", "\"\"", "[null]", "[[[[", "{\"logs\":[{}]}"] {
            lie(&expect, other);
        }
    }
}
