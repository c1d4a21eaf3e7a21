//! Lies about the state, and about what calls come to.

use serde_json::{Value, json};

/// What a lying node changes in its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateForgery {
    Storage,
    Balance,
    Nonce,
    /// Contracts have another code.
    Code,
    /// There is no contract.
    NoCode,
    /// Calls return something else.
    CallResult,
    /// Calls and estimates revert, with a reason.
    FalseRevert,
    /// What reverts returns something.
    NoRevert,
    /// Calls and estimates fail for want of funds.
    InsufficientFunds,
    LowEstimate,
    HighEstimate,
}

impl StateForgery {
    pub const ALL: [Self; 11] = [
        Self::Storage,
        Self::Balance,
        Self::Nonce,
        Self::Code,
        Self::NoCode,
        Self::CallResult,
        Self::FalseRevert,
        Self::NoRevert,
        Self::InsufficientFunds,
        Self::LowEstimate,
        Self::HighEstimate,
    ];

    /// Changes the reply to a call.
    pub(crate) fn apply(self, call: &Value, reply: &mut Value) {
        let is_call = call["method"] == "eth_call" || call["method"] == "eth_estimateGas";
        let failed = reply.get("error").is_some();
        let result = match (call["method"].as_str().unwrap_or_default(), self) {
            ("eth_getStorageAt", Self::Storage) => format!("0x{}", "ab".repeat(32)),
            ("eth_getBalance", Self::Balance) => "0x1234567".to_owned(),
            ("eth_getTransactionCount", Self::Nonce) => "0x4d2".to_owned(),
            ("eth_getCode", Self::Code) => "0x600160015500".to_owned(),
            ("eth_getCode", Self::NoCode) => "0x".to_owned(),
            ("eth_call", Self::CallResult) if !failed => format!("0x{}", "cd".repeat(32)),
            ("eth_call", Self::NoRevert) if failed => "0x".to_owned(),
            ("eth_estimateGas", Self::LowEstimate) if !failed => "0x5209".to_owned(),
            ("eth_estimateGas", Self::HighEstimate) if !failed => "0xffffff".to_owned(),
            (_, Self::FalseRevert) if is_call => {
                return fail(reply, 3, "execution reverted: sorry", Some(SORRY));
            }
            (_, Self::InsufficientFunds) if is_call => {
                return fail(reply, -32000, "insufficient funds for gas * price + value", None);
            }
            _ => return,
        };
        *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "result": result});
    }
}

/// `Error("sorry")`.
const SORRY: &str = "0x08c379a000000000000000000000000000000000000000000000000000000000000000200000000000000000000000000000000000000000000000000000000000000005736f727279000000000000000000000000000000000000000000000000000000";

fn fail(reply: &mut Value, code: i64, message: &str, data: Option<&str>) {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = json!(data);
    }
    *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "error": error});
}
