//! The method table, typed parameters, and the settings of a network. This crate does not know which source answers a call.

mod params; // typed parameters
mod block_ref; // a block by number and hash
mod param; // the parameters that methods have
mod table; // one row per method
mod unavailable; // methods that other providers have
mod network; // settings of the network

pub use block_ref::BlockRef;
pub use network::{Checkpoint, Network};
pub use param::Param;
pub use params::{BlockParam, CallMessage, LogBlocks, LogFilterParams, ParamFault, Percentile, Query, Tag};
pub use table::{
    Cacheable, DeadlineKind, METHODS, Method, MethodId, MissingBlock, NetworkFamily, OPENRPC, WorkPlacement,
    is_at_pending,
};
pub use unavailable::why_not_available;
