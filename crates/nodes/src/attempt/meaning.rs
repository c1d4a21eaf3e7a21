//! What follows from a node's error.

use crate::call::{Call, Class, Fault, RpcError};
use crate::dialect::{self, Meaning as Words};
use crate::node::Lack;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ErrorMeaning {
    /// Any node would say the same.
    Caller(CallerError),
    /// This node lacks what the call needs.
    NotHere(Lack),
    /// This node searches fewer blocks at once, or returns fewer logs.
    Limit(RangeLimit),
    /// It cannot, and a caller may have brought that about: nobody is to blame.
    Unclear,
    /// The node is to blame.
    Node(Fault),
}

/// An error of the caller's own, without the node's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerError(pub Words);

/// What a node grants for one log query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeLimit {
    /// The widest range, if the node has said.
    pub blocks: Option<u64>,
}

/// Reads a node's error.
pub(crate) fn read(error: &RpcError, call: &Call) -> ErrorMeaning {
    match dialect::read(error, call.method) {
        Words::RangeTooWide { most, .. } if call.class == Class::Logs => {
            ErrorMeaning::Limit(RangeLimit { blocks: most })
        }
        Words::TooManyResults { .. } | Words::QueryTimeout if call.class == Class::Logs => {
            ErrorMeaning::Limit(RangeLimit { blocks: None })
        }
        words @ (Words::Reverted { .. } | Words::Execution(_)) if call.class == Class::Evm => {
            ErrorMeaning::Caller(CallerError(words))
        }
        Words::NoMethod => ErrorMeaning::NotHere(Lack::Method),
        Words::NoBlock => ErrorMeaning::NotHere(Lack::Block),
        Words::NoState => ErrorMeaning::NotHere(Lack::State),
        // What callers simulate is theirs, and nodes have more words for what is wrong with it than we know.
        Words::BadParams | Words::Internal if call.class == Class::Evm => ErrorMeaning::Unclear,
        Words::RateLimited => ErrorMeaning::Node(Fault::RateLimited),
        // What was asked is well-formed, so a node that says otherwise does not understand it.
        _ => ErrorMeaning::Node(Fault::Refused),
    }
}
