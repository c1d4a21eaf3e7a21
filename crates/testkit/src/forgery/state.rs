//! Lies about what no block contains: accounts, storage, simulations and fees.

use serde_json::{Value, json};

use super::{Forgery, address, hash, list_of, set};

impl Forgery {
    /// Changes an answer about state; says whether it has.
    pub(super) fn forge_state(self, call: &Value, reply: &mut Value) -> bool {
        let method = call["method"].as_str().unwrap_or_default();
        let is_simulated = matches!(method, "eth_call" | "eth_estimateGas");
        let is_error = reply.get("error").is_some();
        match (self, method) {
            (Self::StorageValue, "eth_getStorageAt") => result(reply, json!(format!("0x{:064x}", 0x1234))),
            (Self::StorageZero, "eth_getStorageAt") => result(reply, json!(format!("0x{:064x}", 0))),
            (Self::Balance, "eth_getBalance") => result(reply, json!("0x1234567")),
            (Self::Nonce, "eth_getTransactionCount") => result(reply, json!("0x1234")),
            (Self::Code, "eth_getCode") => result(reply, json!("0x60016002")),
            (Self::CodeGone, "eth_getCode") => result(reply, json!("0x")),
            (Self::CallResult, "eth_call") if !is_error => result(reply, json!(hash())),
            (Self::CallEmpty, "eth_call") if !is_error => result(reply, json!("0x")),
            (Self::FalseRevert, _) if is_simulated && !is_error => revert(reply),
            (Self::RevertHidden, "eth_call") if is_error => result(reply, json!(hash())),
            (Self::RevertHidden, "eth_estimateGas") if is_error => result(reply, json!("0x5208")),
            (Self::RevertReason, _) if is_simulated && is_error => revert(reply),
            (Self::FalseInsufficientFunds, _) if is_simulated => {
                error(
                    reply,
                    -32000,
                    "insufficient funds for gas * price + value: balance 0, tx cost 1, overshot 1",
                );
            }
            (Self::FalseOutOfGas, _) if is_simulated => error(reply, -32000, "out of gas"),
            (Self::EstimateLow, "eth_estimateGas") => result(reply, json!("0x5208")),
            (Self::EstimateHigh, "eth_estimateGas") => result(reply, json!("0x7fffffff")),
            (Self::GasPrice, "eth_gasPrice") => result(reply, json!("0x1234567890")),
            (Self::PriorityFee, "eth_maxPriorityFeePerGas") => result(reply, json!("0x1234567890")),
            (_, "eth_feeHistory") if !is_error => return self.forge_fees(&mut reply["result"]),
            (Self::ProofValues, "eth_getProof") if !is_error => forge_proof(&mut reply["result"]),
            (Self::RawTransactions, "zks_getRawBlockTransactions") if !is_error => {
                let records = reply["result"].as_array_mut().into_iter().flatten();
                records.for_each(|record| record["execute"]["contractAddress"] = json!(address()));
            }
            _ => return false,
        }
        true
    }

    fn forge_fees(self, history: &mut Value) -> bool {
        match self {
            Self::FeeHistoryBaseFees => fill(list_of(history, "baseFeePerGas")),
            Self::FeeHistoryRewards => {
                list_of(history, "reward").into_iter().flatten().for_each(|row| fill(row.as_array_mut()));
            }
            Self::FeeHistoryEmpty => {
                ["baseFeePerGas", "gasUsedRatio", "reward"]
                    .into_iter()
                    .for_each(|name| list_of(history, name).into_iter().for_each(Vec::clear));
            }
            _ => return false,
        }
        true
    }
}

fn fill(fees: Option<&mut Vec<Value>>) {
    fees.into_iter().flatten().for_each(|fee| *fee = json!("0x1234567890"));
}

fn forge_proof(proof: &mut Value) {
    set(proof, "balance", "0x1234567");
    set(proof, "nonce", "0x1234");
    list_of(proof, "storageProof").into_iter().flatten().for_each(|slot| set(slot, "value", "0x1234"));
}

fn result(reply: &mut Value, result: Value) {
    *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "result": result});
}

pub(super) fn error(reply: &mut Value, code: i64, message: &str) {
    *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "error": {"code": code, "message": message}});
}

/// `Error("no")`.
fn revert(reply: &mut Value) {
    let data = format!("0x08c379a0{:064x}{:064x}6e6f{}", 0x20, 2, "0".repeat(60));
    let error = json!({"code": 3, "message": "execution reverted: no", "data": data});
    *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "error": error});
}
