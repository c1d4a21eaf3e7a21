//! One digit changed, and the answer is wrong: wherever a check claims to cover a member.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use super::sample::sample;
use super::*;

/// Digits changed in each string. Bloom filters and calldata are long; a few places are enough.
const TRIES: usize = 3;

/// The places of all strings of digits, as JSON pointers.
fn hex_places(value: &Value, at: &str, out: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() > 2 && text.starts_with("0x") => out.push(at.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                hex_places(item, &format!("{at}/{index}"), out);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                hex_places(member, &format!("{at}/{name}"), out);
            }
        }
        _ => {}
    }
}

/// The same answer with another digit at a random place of the string that the pointer names.
fn changed(value: &Value, pointer: &str, rng: &mut StdRng) -> String {
    let mut value = value.clone();
    let target = value.pointer_mut(pointer).unwrap();
    let mut digits = target.as_str().unwrap().as_bytes().to_vec();
    let place = rng.random_range(2..digits.len());
    let others: Vec<u8> = b"0123456789abcdef"
        .iter()
        .copied()
        .filter(|digit| *digit != digits[place].to_ascii_lowercase())
        .collect();
    digits[place] = *others.choose(rng).unwrap();
    *target = Value::String(String::from_utf8(digits).unwrap());
    value.to_string()
}

/// Changes digits of every covered member and returns how many changes were found out.
pub(super) fn all_found_out(expect: &Expect, result: &str, covers: impl Fn(&str, &Value) -> bool) -> usize {
    let value: Value = serde_json::from_str(result).unwrap();
    let (mut places, mut rng) = (Vec::new(), StdRng::seed_from_u64(4));
    hex_places(&value, "", &mut places);
    places.retain(|place| covers(place, &value));
    for place in &places {
        for _ in 0..TRIES {
            let changed = changed(&value, place, &mut rng);
            assert!(lie(expect, &changed).is_some(), "{place} of {changed}");
        }
    }
    places.len() * TRIES
}

fn name(place: &str) -> &str {
    place.rsplit('/').find(|part| part.parse::<usize>().is_err()).unwrap_or_default()
}

/// All that is signed or tied to the block. `gasPrice` is what was paid, unless it is what was signed; a type that we do
/// not know is not judged.
pub(super) fn covered_in_transaction(place: &str, whole: &Value) -> bool {
    let parent = place.rsplit_once('/').map_or("", |(parent, _)| parent);
    let fixed_price =
        whole.pointer(parent).and_then(|tx| tx.get("type")).is_none_or(|kind| kind == "0x0" || kind == "0x1");
    match name(place) {
        "blockTimestamp" | "type" => false,
        "gasPrice" => fixed_price,
        _ => true,
    }
}

pub(super) fn covered_in_block(place: &str, whole: &Value) -> bool {
    match name(place) {
        // Only the hash of the uncles' headers is proven, and of transactions that are not here only their number.
        "size" | "totalDifficulty" | "uncles" | "transactions" => false,
        _ => !place.starts_with("/transactions") || covered_in_transaction(place, whole),
    }
}

/// What the root covers, and the ids.
pub(super) fn covered_in_receipts(place: &str, _: &Value) -> bool {
    let beside_the_root =
        ["effectiveGasPrice", "from", "to", "contractAddress", "blobGasUsed", "blobGasPrice"];
    !beside_the_root.contains(&name(place)) && !["type", "blockTimestamp"].contains(&name(place))
}

/// What one receipt says twice.
pub(super) fn covered_in_receipt(place: &str, _: &Value) -> bool {
    let in_log = place.starts_with("/logs/");
    match name(place) {
        "transactionHash" | "logsBloom" => true,
        "address" | "topics" | "blockHash" | "blockNumber" | "transactionIndex" => in_log,
        _ => false,
    }
}

#[test]
fn a_changed_digit_of_a_block_is_found_out() {
    let sample = sample();
    for full in [true, false] {
        let (expect, result) = sample.block(full);
        assert!(all_found_out(&expect, result, covered_in_block) >= if full { 200 } else { 50 });
    }
}

#[test]
fn a_changed_digit_of_a_transaction_is_found_out() {
    let sample = sample();
    for index in 0..6 {
        let (expect, result) = sample.transaction(index);
        assert!(all_found_out(&expect, result, covered_in_transaction) >= 30);
    }
}

#[test]
fn a_changed_digit_of_a_receipt_is_found_out() {
    let sample = sample();
    for index in 0..6 {
        let (expect, result) = sample.receipt(index);
        assert!(all_found_out(&expect, result, covered_in_receipt) >= 6);
    }
    let (expect, result) = sample.receipts();
    assert!(all_found_out(&expect, result, covered_in_receipts) >= 200);
}
