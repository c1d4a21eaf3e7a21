//! The pool of remote nodes of one network.
//!
//! A call goes to a healthy node that has the block; to another one when that fails or is slow. What comes back is proven, compared,
//! or passed on. The view is what the nodes agree on: the head that this gateway serves, and the hashes below it. Nothing here knows
//! of keys, plans, or the embedded chain.
//!
//! `answers` asks it. What a node delivers is used after it was proven, such as the code of a contract against its hash:
//!
//! ```no_run
//! use alloy_primitives::keccak256;
//!
//! let code = nodes::proven::prove_code(br#""0x6001""#, keccak256([0x60, 0x01])).unwrap();
//! assert_eq!(code[..], [0x60, 0x01]);
//! ```

mod family; // how chains compute their hashes
mod trace_context; // which trace a call belongs to
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
mod trust; // how long what only nodes have said is taken for true
mod node_id; // the identity of a node
mod answering_node; // which node has answered
mod partner; // what nodes of other providers may be asked
mod node; // one node
mod scheduler; // one call over several nodes
pub mod view; // the canonical chain as the nodes agree on it
mod watch; // polling every node's head
mod pool; // all nodes of a network

pub use answering_node::with_answering_node;
pub use call::{BlockId, Class, Fault, Needs, RpcCall, RpcReply};
pub use exclusion::ExclusionReason;
pub use family::ChainFamily;
pub use health::Availability;
pub use node::{Capabilities, HistoryKind, HistoryReach, Node, NodeCounts};
pub use node_fault::NodeFault;
pub use node_id::NodeId;
pub use partner::{DayCalls, NodeRole, PartnerQuota, PartnerTerms};
pub use pool::{
    Absence, AbsenceReplies, NodeSettings, NotFetched, Pool, PoolInspection, PoolNode, PoolSettings, Proving,
    QuorumCall, TooManyNodes,
};
pub use scheduler::{
    AnswersEvent, CallFailure, CallOutcome, CallerError, Judgement, Judging, NODES_MAX, NodeAnswer,
    NodeReply, PoolAnswer, RangeLimit, ResultFinding, ResultJudge, SeveralAnswers,
};
pub use trace_context::{TRACEPARENT, TraceContext};
pub use transport::{Client, Endpoint, EndpointError, REPLY_MEMORY_BYTES, ReplyBuffers, Stats};
pub use trust::{CONFIRMED_FOR, Standing, TrustMark};
pub use view::{CanonicalChain, NodesView, ViewSettings};
pub use watch::{NodeData, NodeFindings, NodeInspection, WatchSettings};
