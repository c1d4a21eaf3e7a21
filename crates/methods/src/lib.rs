//! What a call may ask: the method table, typed parameters, and what is particular to one network. Knows nothing of who
//! answers.

mod params; // typed parameters
mod block_ref; // a block by number and hash
mod param; // the parameters that methods have
mod table; // one row per method
mod unavailable; // methods that others have
mod network; // what is particular to this network

pub use block_ref::BlockRef;
pub use network::{Checkpoint, Network};
pub use param::Param;
pub use params::{BlockParam, Blocks, LogFilter, Message, Overrides, ParamFault, Percentile, Query, Tag};
pub use table::{
    Cacheable, Deadline, Family, METHODS, Method, MethodId, Missing, OPENRPC, Work, is_at_pending,
};
pub use unavailable::why_not_available;
