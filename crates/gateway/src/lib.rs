//! The request path: the steps between the HTTP server and the source of an answer.
//!
//! The steps in their order. Step 1, sockets → requests, is the crate `http_server`; steps 6 and 7, blocks and answers, are
//! the crate `answers`.

// The future of a request contains those of all steps, down to the call of one node.
#![recursion_limit = "256"]

mod route; //        2. head → where it goes
mod authenticate; // 3. key → Caller
mod parse; //        4. bytes → typed calls
mod admit; //        5. Caller, call → Permit
mod shape; //        8. Answer → Answer within limits
mod respond; //      9. outcome → HTTP reply
mod meter; //       10. CallRecord → usage
mod request; //      all of them, one after another

// What the steps use:

mod errors; // the error table
mod request_limits; // limits of one request
mod limits; // all limits of the configuration

// What runs the steps:

pub mod log; // the log, which never blocks a call
mod partner_quotas; // calls to partners per day
mod gateway_state; // what all connections share
mod server; // the listeners
mod operator; // /health, /ready, /status, /metrics, /admin

pub use admit::{NotAdmitted, REFUSED_BYTES, REFUSED_CREDITS, UNKNOWN_METHOD_CREDITS};
pub use errors::ErrorReply;
pub use gateway_state::GatewayState;
pub use limits::GatewayLimits;
pub use operator::{
    AdminService, AllowedHosts, GatewaySnapshot, NodeSnapshot, OperatorPeer, PartnerSnapshot, PoolNodeState,
    StorageKind, StorageSnapshot, TrafficCounters,
};
pub use parse::Unanswerable;
pub use server::{ListenConfig, Server, serve_stream};
pub use shape::ReplyRefused;
