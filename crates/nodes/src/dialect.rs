//! What a node means by its errors.
//!
//! Every client and every hosted service has codes and texts of its own for the same few things. Here they become one
//! meaning; the texts themselves go no further, because what a node writes may be meant for somebody to read.

mod table; // patterns and their meaning, one row each
mod revert; // the data of a revert, wherever it hides
mod range; // the numbers in a text about ranges

#[cfg(test)]
mod tests;

use alloy_primitives::Bytes;
use serde_json::Value;

use crate::RpcError;
use table::Says;

/// How much of a text is read. Patterns stand at its beginning; what follows may be a contract's own words.
const TEXT_BYTES_MAX: usize = 1_024;

/// What a node means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The EVM met REVERT. No data if the node gives none.
    Reverted {
        data: Option<Bytes>,
    },
    /// The EVM stopped for another reason, or would not begin.
    Execution(Execution),
    BadParams,
    NoMethod,
    /// It does not have the block, or not yet.
    NoBlock,
    /// It has the block, and not its state.
    NoState,
    /// The query spans more blocks than it allows: at most `most` of them.
    RangeTooWide {
        most: Option<u64>,
        suggested: Option<(u64, u64)>,
    },
    /// The query finds more than it allows.
    TooManyResults {
        suggested: Option<(u64, u64)>,
    },
    /// It gave up on the query.
    QueryTimeout,
    RateLimited,
    Syncing,
    Unauthorised,
    /// Anything else: it cannot, and the same call may succeed elsewhere.
    Internal,
}

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Any node would say so.
    Caller,
    /// The node lacks what is asked for; another one may have it, and this one is well.
    Lacking,
    /// The node is not well, or does not want us.
    Node,
}

impl Meaning {
    pub fn fault(&self) -> Whose {
        match self {
            Self::Reverted { .. } | Self::Execution(_) | Self::BadParams => Whose::Caller,
            Self::RangeTooWide { .. } | Self::TooManyResults { .. } | Self::QueryTimeout => Whose::Caller,
            Self::NoMethod | Self::NoBlock | Self::NoState => Whose::Lacking,
            Self::RateLimited | Self::Syncing | Self::Unauthorised | Self::Internal => Whose::Node,
        }
    }

    /// The name in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reverted { .. } => "reverted",
            Self::Execution(_) => "execution",
            Self::BadParams => "bad_params",
            Self::NoMethod => "no_method",
            Self::NoBlock => "no_block",
            Self::NoState => "no_state",
            Self::RangeTooWide { .. } => "range_too_wide",
            Self::TooManyResults { .. } => "too_many_results",
            Self::QueryTimeout => "query_timeout",
            Self::RateLimited => "rate_limited",
            Self::Syncing => "syncing",
            Self::Unauthorised => "unauthorised",
            Self::Internal => "internal",
        }
    }
}

/// Why the EVM stopped or would not begin, in the words that clients know.
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
    #[error("gas limit too high")]
    GasAboveLimit,
    #[error("gas required exceeds allowance{}", .most.map(|most| format!(" ({most})")).unwrap_or_default())]
    GasAllowance { most: Option<u64> },
    #[error("sender not an eoa")]
    SenderNotEoa,
    #[error("execution aborted (timeout)")]
    Timeout,
    #[error("execution failed")]
    Failed,
}

/// Bytes of an error's `data` that are read. No revert is longer: it would cost its caller more gas than any node gives.
const DATA_BYTES_MAX: usize = 1 << 20;

/// What a node means by the error that it gave to a call of this method.
pub fn read(error: &RpcError, method: &str) -> Meaning {
    let data = error.data.as_ref().filter(|data| data.len() <= DATA_BYTES_MAX);
    let data: Option<Value> = data.and_then(|data| serde_json::from_slice(data).ok());
    let text = text(&error.message, data.as_ref());
    match table::look_up(error.code, &text, method) {
        Says::Reverted => Meaning::Reverted { data: revert::data(data.as_ref(), &error.message) },
        Says::Stopped(Execution::GasAllowance { .. }) => {
            Meaning::Execution(Execution::GasAllowance { most: range::in_parentheses(&text) })
        }
        Says::Stopped(execution) => Meaning::Execution(execution),
        Says::RangeTooWide => Meaning::RangeTooWide {
            most: range::limit(&text),
            suggested: range::suggested(&text, data.as_ref()),
        },
        Says::TooManyResults => Meaning::TooManyResults { suggested: range::suggested(&text, data.as_ref()) },
        Says::BadParams => Meaning::BadParams,
        Says::NoMethod => Meaning::NoMethod,
        Says::NoBlock => Meaning::NoBlock,
        Says::NoState => Meaning::NoState,
        Says::QueryTimeout => Meaning::QueryTimeout,
        Says::RateLimited => Meaning::RateLimited,
        Says::Syncing => Meaning::Syncing,
        Says::Unauthorised => Meaning::Unauthorised,
        Says::Internal => Meaning::Internal,
    }
}

/// What the error says in words, in lower case: the message, and what stands in the data beside it. Some nodes say
/// "invalid params" and put everything that matters into the data.
fn text(message: &str, data: Option<&Value>) -> String {
    let more = data.and_then(words).unwrap_or_default();
    format!("{} {}", beginning(message), beginning(more)).to_lowercase()
}

fn words(data: &Value) -> Option<&str> {
    match data {
        Value::String(said) if !said.starts_with("0x") => Some(said),
        Value::Object(members) => {
            let said = |name: &str| members.get(name).and_then(Value::as_str);
            ["message", "payload", "reason", "details"].into_iter().find_map(said)
        }
        _ => None,
    }
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}
