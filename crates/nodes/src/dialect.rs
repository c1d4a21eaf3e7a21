//! The meanings of the errors of nodes.
//!
//! Every client and every hosted service has its own codes and texts for the same few errors. Here they are mapped to one meaning. The
//! texts themselves are not passed on, because a node could write anything into them.

mod table; // patterns and their meanings, one row each
mod revert; // the data of a revert
mod range; // the numbers in a text about ranges

#[cfg(test)]
mod tests;

use alloy_primitives::Bytes;
use serde_json::Value;

use crate::call::RpcError;
use table::PatternMeaning;

/// How much of a text is read. Patterns are at its beginning; what follows may be a text of a contract.
const TEXT_BYTES_MAX: usize = 1_024;

/// The meaning of a node's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The call reverted. `data` is `None` if the node gives none.
    Reverted {
        data: Option<Bytes>,
    },
    /// The EVM stopped for another reason, or did not start.
    Execution(Execution),
    BadParams,
    NoMethod,
    /// The node does not have the block, or not yet.
    NoBlock,
    /// The node has the block, but not its state.
    NoState,
    /// The query spans more than `most` blocks, which is the most that the node allows.
    RangeTooWide {
        most: Option<u64>,
    },
    /// The query has more results than the node allows.
    TooManyResults,
    /// The node gave up on the query.
    QueryTimeout,
    RateLimited,
    Syncing,
    Unauthorised,
    /// Anything else. The same call may succeed on another node.
    Internal,
}

/// Why the EVM stopped or did not start, in the words that clients know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Execution {
    #[error("out of gas")]
    OutOfGas,
    #[error("invalid opcode")]
    InvalidOpcode,
    #[error("invalid jump destination")]
    InvalidJump,
    #[error("stack underflow")]
    StackUnderflow,
    #[error("stack limit reached")]
    StackOverflow,
    #[error("write protection")]
    WriteProtection,
    #[error("max call depth exceeded")]
    CallDepth,
    #[error("max code size exceeded")]
    CodeSize,
    #[error("max initcode size exceeded")]
    InitcodeSize,
    #[error("contract address collision")]
    AddressCollision,
    #[error("insufficient funds for gas * price + value")]
    InsufficientFunds,
    #[error("intrinsic gas too low")]
    IntrinsicGas,
    #[error("max fee per gas less than block base fee")]
    FeeCapBelowBaseFee,
    #[error("max priority fee per gas higher than max fee per gas")]
    TipAboveFeeCap,
    #[error("nonce too low")]
    NonceTooLow,
    #[error("nonce too high")]
    NonceTooHigh,
    /// The node grants calls at most this much gas.
    #[error("gas limit too high{}", .most.map(|most| format!(" (cap: {most})")).unwrap_or_default())]
    GasAboveLimit { most: Option<u64> },
    #[error("gas required exceeds allowance{}", .most.map(|most| format!(" ({most})")).unwrap_or_default())]
    GasAllowance { most: Option<u64> },
    #[error("sender not an eoa")]
    SenderNotEoa,
    #[error("execution aborted (timeout)")]
    Timeout,
    #[error("execution failed")]
    Failed,
}

/// The most bytes of an error's `data` that are read. A longer revert would cost more gas than any node grants.
const DATA_BYTES_MAX: usize = 1 << 20;

/// Interprets the error of a node to a call of this method.
pub(crate) fn read(error: &RpcError, method: &str) -> Meaning {
    let data = error.data.as_ref().filter(|data| data.len() <= DATA_BYTES_MAX);
    let data: Option<Value> = data.and_then(|data| serde_json::from_slice(data).ok());
    let text = text(&error.message, data.as_ref());
    match table::look_up(error.code, &text, method) {
        PatternMeaning::Reverted => Meaning::Reverted { data: revert::data(data.as_ref(), &error.message) },
        PatternMeaning::Stopped(Execution::GasAllowance { .. }) => {
            Meaning::Execution(Execution::GasAllowance { most: range::in_parentheses(&text) })
        }
        PatternMeaning::Stopped(Execution::GasAboveLimit { .. }) => {
            Meaning::Execution(Execution::GasAboveLimit { most: range::gas_cap(&text) })
        }
        PatternMeaning::Stopped(execution) => Meaning::Execution(execution),
        PatternMeaning::RangeTooWide => Meaning::RangeTooWide { most: range::limit(&text) },
        PatternMeaning::TooManyResults => Meaning::TooManyResults,
        PatternMeaning::BadParams => Meaning::BadParams,
        PatternMeaning::NoMethod => Meaning::NoMethod,
        PatternMeaning::NoBlock => Meaning::NoBlock,
        PatternMeaning::NoState => Meaning::NoState,
        PatternMeaning::QueryTimeout => Meaning::QueryTimeout,
        PatternMeaning::RateLimited => Meaning::RateLimited,
        PatternMeaning::Syncing => Meaning::Syncing,
        PatternMeaning::Unauthorised => Meaning::Unauthorised,
        PatternMeaning::Internal => Meaning::Internal,
    }
}

/// The texts of an error in lower case: its message, and the text in its data. Some nodes write "invalid params" as the message
/// and the reason into the data.
fn text(message: &str, data: Option<&Value>) -> String {
    let more = data.and_then(data_text).unwrap_or_default();
    format!("{} {}", beginning(message), beginning(more)).to_lowercase()
}

fn data_text(data: &Value) -> Option<&str> {
    match data {
        Value::String(text) if !text.starts_with("0x") => Some(text),
        Value::Object(members) => {
            let text = |name: &str| members.get(name).and_then(Value::as_str);
            ["message", "payload", "reason", "details"].into_iter().find_map(text)
        }
        _ => None,
    }
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}
