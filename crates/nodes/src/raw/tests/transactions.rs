//! Transactions.

use serde_json::{Value, json};

use super::sample::sample;
use crate::raw::transaction::RawTransaction;

#[test]
fn parity_is_written_in_many_ways() {
    let sample = sample();
    let has_same_hash = |transaction: &Value| {
        let raw: RawTransaction = serde_json::from_str(&transaction.to_string()).unwrap();
        let signed = raw.envelope().ok().flatten();
        signed.is_some_and(|signed| *signed.tx_hash() == sample.transaction_hashes[3])
    };
    let with_v = |v: &str| {
        let mut transaction: Value = serde_json::from_str(&sample.transactions[3]).unwrap();
        transaction["v"] = json!(v);
        transaction
    };
    let parity = with_v("")["yParity"].as_str().unwrap().to_owned();
    let is_odd = parity == "0x1";
    let mut only_v = with_v(&parity);
    only_v.as_object_mut().unwrap().remove("yParity");
    for good in [with_v(&parity), only_v, with_v(if is_odd { "0x1c" } else { "0x1b" })] {
        assert!(has_same_hash(&good), "{good}");
    }
    assert!(!has_same_hash(&with_v(if is_odd { "0x0" } else { "0x1" })));
}
