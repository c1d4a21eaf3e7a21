//! What a node may mean by an error.

use crate::call::{Fault, RpcError};
use crate::node::Lack;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Any node would say the same.
    Caller(CallerError),
    /// This node lacks what the call needs.
    NotHere(Lack),
    /// This node searches fewer blocks at once.
    Limit(RangeLimit),
    /// The node is to blame.
    Node(Fault),
}

/// An error of the caller's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerError(pub RpcError);

/// What a node grants for one log query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeLimit {
    /// The widest range, if the node has said.
    pub blocks: Option<u64>,
}
