//! Changes of results.

use serde_json::{Value, json};

/// Adds one to every block number in a result.
pub(super) fn off_by_one(result: &mut Value) {
    match result {
        Value::Array(items) => items.iter_mut().for_each(off_by_one),
        Value::Object(members) => {
            for name in ["number", "blockNumber"] {
                let number =
                    members.get(name).and_then(Value::as_str).and_then(|text| text.strip_prefix("0x"));
                if let Some(number) = number.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
                    members.insert(name.to_owned(), json!(format!("{:#x}", number + 1)));
                }
            }
        }
        _ => {}
    }
}

/// Gives every transaction of a list another hash.
pub(super) fn tamper(transactions: &mut Value) {
    for hash in transactions.as_array_mut().into_iter().flatten() {
        let reversed =
            hash.as_str().map(|text| text.trim_start_matches("0x").chars().rev().collect::<String>());
        *hash = json!(reversed.map(|digits| format!("0x{digits}")));
    }
}

/// A success becomes a failure and the other way round, and the logs are gone.
pub(super) fn upside_down(result: &mut Value) {
    match result {
        Value::Array(items) => items.iter_mut().for_each(upside_down),
        Value::Object(members) => {
            let status = if members.get("status") == Some(&json!("0x1")) { "0x0" } else { "0x1" };
            members.insert("status".to_owned(), json!(status));
            members.insert("logs".to_owned(), json!([]));
        }
        _ => {}
    }
}
