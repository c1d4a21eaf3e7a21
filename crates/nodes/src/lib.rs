//! The pool: remote nodes of one network behind one question, "what is the answer to this call?".
//!
//! A call goes to a node that is well and has the block asked for; to another one when that fails or is slow; and what comes
//! back is proven, compared, or passed on. What the healthy nodes agree on is the view: the head that this gateway
//! serves, and the hashes below it. Nothing here knows of keys, plans, or the embedded chain.

mod family; // how chains make their hashes
mod call; // what is asked of a node, and what it says
mod outage_log; // what is told about a node that cannot be used

mod transport; // bytes to and from one endpoint
pub mod dialect; // what a node means by its errors
pub mod raw; // what nodes write as JSON
mod proof_failure; // why what a node delivers is not proven
pub mod proven; // block data that its block's hash commits to

mod health; // how well a node is
mod latency; // how long its answers take, by cost class
mod budget; // how many extra calls there may be
mod pick; // which node next

mod left_out; // why a node is not used
mod node; // one node
mod attempt; // one call over several nodes
pub mod view; // the canonical chain as the nodes agree on it
pub mod watch; // following every node's head
mod pool; // all of it together
mod partner; // foreign providers, within their budgets

pub use attempt::{Answered, CallerError, Failed, Judgement, Judging, NODES_MAX, RangeLimit, Said};
pub use budget::Budgets;
pub use call::{Ask, BlockId, Call, Class, Fault, Needs, Reply, RpcError, TlsFailure};
pub use family::Family;
pub use health::{Grade, Health, Sign};
pub use latency::Latency;
pub use node::{Counts, Known, Lack, Node, Standing, fault_kind};
pub use partner::{Allowance, Partner};
pub use pool::{
    NodeAnswer, NotFetched, PartnerSettings, Pool, PoolNode, Proof, Proving, QuorumCall, QuorumEvent, Remote,
    Replies, Settings, Supplier,
};
pub use transport::{
    Client, Endpoint, EndpointError, Limits, REPLY_MEMORY_BYTES, ReplyBuffers, Stats, heads,
};
pub use view::{Canon, View};
