//! Finds the data of a revert in an error.

use alloy_primitives::Bytes;
use serde_json::Value;

/// How deeply the data may be nested. hardhat and similar nodes nest it in one or two objects.
const DEPTH_MAX: usize = 4;

/// Members in which nodes put the data.
const MEMBERS: [&str; 6] = ["data", "result", "return", "output", "originalError", "value"];

/// From the error's data, or else from its message: some hosted services append it there.
pub(super) fn data(data: Option<&Value>, message: &str) -> Option<Bytes> {
    data.and_then(|data| find(data, DEPTH_MAX)).or_else(|| in_message(message))
}

fn find(value: &Value, depth: usize) -> Option<Bytes> {
    match value {
        Value::String(text) => decode(text),
        Value::Object(members) if depth > 0 => {
            let known = MEMBERS.iter().filter_map(|name| members.get(*name));
            // ganache names the member by the hash of the transaction.
            let nested = members.iter().filter(|(name, _)| name.starts_with("0x")).map(|(_, value)| value);
            known.chain(nested).find_map(|value| find(value, depth - 1))
        }
        _ => None,
    }
}

/// `0x…`, or `Reverted 0x…` as Parity and Nethermind write it.
fn decode(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let text = text.strip_prefix("Reverted").or_else(|| text.strip_prefix("reverted")).unwrap_or(text).trim();
    let digits = text.strip_prefix("0x")?;
    const_hex::check_raw(digits).then(|| const_hex::decode(digits).ok().map(Bytes::from))?
}

/// The message ends with the data and nothing else: `execution reverted: 0x…`.
fn in_message(message: &str) -> Option<Bytes> {
    let after = message.strip_prefix("execution reverted: ")?.trim();
    // Shorter than a selector would be a contract's own words.
    (after.len() >= 10).then(|| decode(after)).flatten()
}
