//! The replies of nodes about old blocks whose transactions, receipts, logs and states they have dropped.

use serde_json::{Value, json};

/// The reply of a node about data that it has dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pruned {
    /// Null, an empty list, or zero.
    Nothing,
    /// Empty lists of receipts, else as [`Self::Nothing`].
    EmptyLists,
    /// An error, in the words of geth.
    Error,
}

/// The result of a call to the true node.
pub(super) type TrueResult<'a> = &'a dyn Fn(&str, Value) -> Value;

impl Pruned {
    /// Changes the reply to a call about a block below this number.
    pub(super) fn apply(self, below: u64, node: TrueResult<'_>, call: &Value, reply: &mut Value) {
        let method = call["method"].as_str().unwrap_or_default();
        let result = &reply["result"];
        let block = match method {
            "eth_getTransactionByHash" | "eth_getTransactionReceipt" => number(&result["blockNumber"]),
            "eth_getBlockReceipts" => number(&result[0]["blockNumber"]),
            "eth_getLogs" => number(&call["params"][0]["fromBlock"]),
            "eth_getBalance" | "eth_getTransactionCount" | "eth_getCode" | "eth_call" => {
                block_of_state(node, &call["params"][1])
            }
            "eth_getStorageAt" => block_of_state(node, &call["params"][2]),
            "eth_getProof" => Some(0),
            _ => None,
        };
        if block.is_none_or(|block| block >= below) {
            return;
        }
        let is_state = !method.contains("Transaction")
            && !matches!(method, "eth_getBlockReceipts" | "eth_getLogs")
            || method == "eth_getTransactionCount";
        let told = match (self, method) {
            (Self::Error, _) | (_, "eth_getProof") => {
                Err(if is_state { "missing trie node" } else { "pruned history unavailable" })
            }
            (_, "eth_getLogs") => Ok(logs_from(below, result)),
            (Self::EmptyLists, "eth_getBlockReceipts") => Ok(json!([])),
            (_, "eth_getBalance" | "eth_getTransactionCount") => Ok(json!("0x0")),
            (_, "eth_getCode" | "eth_call") => Ok(json!("0x")),
            (_, "eth_getStorageAt") => Ok(json!(format!("0x{:064x}", 0))),
            _ => Ok(Value::Null),
        };
        let id = call["id"].clone();
        *reply = match told {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(message) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": 4444, "message": message}}),
        };
    }
}

/// The logs of the blocks that are left.
fn logs_from(below: u64, logs: &Value) -> Value {
    let is_left = |log: &&Value| number(&log["blockNumber"]).is_some_and(|block| block >= below);
    logs.as_array().into_iter().flatten().filter(is_left).cloned().collect()
}

/// The number of the block whose state is asked for, by number or by hash.
pub(super) fn block_of_state(node: TrueResult<'_>, block: &Value) -> Option<u64> {
    let hash = block["blockHash"].as_str();
    match hash {
        Some(hash) => number(&node("eth_getBlockByHash", json!([hash, false]))["number"]),
        None => number(block),
    }
}

pub(super) fn number(quantity: &Value) -> Option<u64> {
    u64::from_str_radix(quantity.as_str()?.strip_prefix("0x")?, 16).ok()
}
