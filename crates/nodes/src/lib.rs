//! The pool of remote nodes of one network.
//!
//! A call goes to a healthy node that has the block; to another one when that fails or is slow. What comes back is proven, compared,
//! or passed on. The view is what the nodes agree on: the head that this gateway serves, and the hashes below it. Nothing here knows
//! of keys, plans, or the embedded chain.

mod family; // how chains compute their hashes
mod call; // calls to a node, its replies and faults
mod node_fault; // a fault as people are told it
mod outage_log; // when to log that a node cannot be used

mod transport; // the client of one endpoint
pub mod dialect; // meanings of the errors of nodes
pub mod raw; // JSON as nodes write it
mod proof_failure; // why a delivery is not proven
pub mod proven; // block data that its block's hash commits to

mod health; // the health of a node
mod latency; // how long its answers take, by cost class
mod budget; // budgets for retries and hedges
mod pick; // the choice of a node

mod exclusion; // why a node is excluded
mod given_by; // who said what nothing proves, and how long it is taken for true
mod node; // one node
mod attempt; // one call, asked of one node after the other
pub mod view; // the canonical chain as the nodes agree on it
mod watch; // polling every node's head
mod pool; // all nodes of a network
mod partner; // foreign providers, within their quotas

pub use attempt::{
    CallFailure, CallOutcome, CallerError, Judgement, Judging, NODES_MAX, NodeReply, PoolAnswer, RangeLimit,
    ResultFinding, ResultJudge,
};
pub use call::{BlockId, Class, Fault, Needs, RpcCall, RpcReply};
pub use exclusion::ExclusionReason;
pub use family::ChainFamily;
pub use given_by::{BeforeAsking, CONFIRMED_FOR, GivenBy, Standing};
pub use health::Availability;
pub use node::{Capabilities, HistoryKind, HistoryReach, Node, NodeCounts};
pub use node_fault::NodeFault;
pub use partner::{DayCalls, Partner, PartnerQuota};
pub use pool::{
    Absence, AbsenceReplies, EndpointSettings, NodeAnswer, NotFetched, PartnerSettings, Pool, PoolNode,
    PoolSettings, Proving, QuorumCall, QuorumEvent, Replies, Supplier,
};
pub use transport::{Client, Endpoint, EndpointError, REPLY_MEMORY_BYTES, ReplyBuffers, Stats};
pub use view::{CanonicalChain, NodesView, ViewSettings};
pub use watch::{WatchSettings, read_block};
