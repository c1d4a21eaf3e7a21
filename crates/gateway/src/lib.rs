//! The request path: the steps between the HTTP server and the source of an answer.
//!
//! The steps in their order. Step 1, sockets → requests, is mostly the crate `http_server`; steps 5 and 6, blocks and answers,
//! are the crate `answers`.
//!
//! `chaingate` starts it, and `console` shows what it does:
//!
//! ```no_run
//! fn nodes_that_are_up(gateway: &gateway::GatewayState) -> usize {
//!     let nodes = gateway.snapshot().remote.map(|remote| remote.nodes.each).unwrap_or_default();
//!     nodes.iter().filter(|node| node.state == gateway::PoolNodeState::Up).count()
//! }
//! ```

// The future of a request contains those of all steps, down to the call of one node.
#![recursion_limit = "256"]

mod route; //        1. head → where it goes
mod authenticate; // 2. key → Caller
mod parse; //        3. bytes → typed calls
mod admit; //        4. Caller, call → Permit
mod shape; //        7. Answer → Answer within limits
mod respond; //         outcome → HTTP reply
mod meter; //           CallRecord → usage
mod request; //      all of them, one after another

// Used by the steps:

mod policy; // times and limits that no setting changes
mod errors; // the error table
mod request_limits; // limits of one request
mod limits; // all limits of the configuration

// Running the steps:

mod background_writer; // a writer that never blocks its callers
pub mod log; // the log, which never blocks a call
mod access_log; // a line per call
mod observation; // when each step of a call ended, who asked and who answered
mod partner_quotas; // calls to partners per day
mod allowed_hosts; // host names of the pages for people
mod gateway_state; // state that all connections share
mod server; // the listeners
mod operator; // /health, /ready, /status, /metrics, /admin

pub use access_log::{AccessLog, AccessLogConfig};
pub use admit::NotAdmitted;
pub use allowed_hosts::AllowedHosts;
pub use errors::ErrorReply;
pub use gateway_state::GatewayState;
pub use limits::GatewayLimits;
pub use operator::{
    AdminService, BlockSnapshot, ExecutedSnapshot, FollowSnapshot, GatewaySnapshot, MetricDescription,
    MetricGroup, NodeLimits, NodeSnapshot, NodesSnapshot, OperatorPeer, PartnerAnswer, PartnerSnapshot,
    PoolNodeState, RemoteSnapshot, SharedLimitsSnapshot, TaskSnapshot, TrafficCounters, metric_groups,
};
pub use parse::Unanswerable;
pub use policy::{REFUSED_BYTES, REFUSED_CREDITS, UNKNOWN_METHOD_CREDITS};
pub use server::{GatewaySockets, ListenConfig, Server, serve_stream};
pub use shape::ReplyRefused;
