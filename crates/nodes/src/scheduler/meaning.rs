//! The consequence of a node's error for a call.

use crate::call::{Class, Fault, RpcCall, RpcError};
use crate::dialect::{self, Meaning};
use crate::node::MissingCapability;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ErrorMeaning {
    /// The caller's fault: any node would return it.
    Caller(CallerError),
    /// This node lacks the method, the block or the state of the call.
    NotHere(MissingCapability),
    /// This node searches fewer blocks at once, or returns fewer logs.
    Limit(RangeLimit),
    /// The caller may have caused it, so nobody is blamed.
    Unclear,
    /// The node's fault.
    Node(Fault),
}

/// An error that is the caller's fault, without the node's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerError(pub Meaning);

/// The limits of a node for one log query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeLimit {
    /// The widest range, if the node has named it.
    pub blocks: Option<u64>,
}

/// Interprets a node's error.
pub(crate) fn read(error: &RpcError, call: &RpcCall) -> ErrorMeaning {
    match dialect::read(error, call.method) {
        Meaning::RangeTooWide { most } if call.class == Class::Logs => {
            ErrorMeaning::Limit(RangeLimit { blocks: most })
        }
        Meaning::TooManyResults | Meaning::QueryTimeout if call.class == Class::Logs => {
            ErrorMeaning::Limit(RangeLimit { blocks: None })
        }
        meaning @ (Meaning::Reverted { .. } | Meaning::Execution(_)) if call.class == Class::Evm => {
            ErrorMeaning::Caller(CallerError(meaning))
        }
        Meaning::NoMethod => ErrorMeaning::NotHere(MissingCapability::Method),
        Meaning::NoBlock => ErrorMeaning::NotHere(MissingCapability::Block),
        Meaning::NoState => ErrorMeaning::NotHere(MissingCapability::State),
        // Simulations fail for reasons of the caller in more ways than the dialect knows.
        Meaning::BadParams | Meaning::Internal if call.class == Class::Evm => ErrorMeaning::Unclear,
        Meaning::RateLimited => ErrorMeaning::Node(Fault::RateLimited),
        // The call is well-formed, so a node that rejects it does not understand it.
        _ => ErrorMeaning::Node(Fault::Refused),
    }
}
