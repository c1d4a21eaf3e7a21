//! Errors in place of answers.

use serde_json::Value;

use super::Forgery;
use super::state::error;

impl Forgery {
    pub(super) fn forge_error(self, call: &Value, reply: &mut Value) {
        let method = call["method"].as_str().unwrap_or_default();
        let is_logs = method == "eth_getLogs";
        let is_state = matches!(
            method,
            "eth_getStorageAt"
                | "eth_getBalance"
                | "eth_getTransactionCount"
                | "eth_getCode"
                | "eth_call"
                | "eth_estimateGas"
                | "eth_getProof"
        );
        // Calls that poll the head or identify the node are answered.
        let is_greeting = matches!(
            method,
            "eth_chainId" | "net_version" | "eth_syncing" | "eth_blockNumber" | "web3_clientVersion"
        );
        match self {
            Self::TooManyResults if is_logs => {
                error(reply, -32005, "query returned more than 10000 results");
            }
            Self::RangeLimit if is_logs => error(reply, -32602, "eth_getLogs is limited to a 1 blocks range"),
            Self::LogTimeout if is_logs => error(reply, -32005, "query timeout exceeded"),
            Self::NoState if is_state => {
                error(reply, -32000, "missing trie node 12345678 (path ) state 0x12345678 is not available");
            }
            Self::NoHeader if is_state => error(reply, -32000, "header not found"),
            Self::NoMethod if matches!(method, "eth_getBlockReceipts" | "eth_getBlockByHash") => {
                error(reply, -32601, "the method does not exist/is not available");
            }
            Self::InvalidParams if !is_greeting => {
                error(reply, -32602, "invalid argument 0: hex string without 0x prefix");
            }
            Self::InternalError if !is_greeting => error(reply, -32603, "internal error"),
            _ => {}
        }
    }
}
