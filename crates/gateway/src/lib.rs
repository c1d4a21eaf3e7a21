//! The request path: the steps between the HTTP server and the source of an answer.
//!
//! The steps in their order. Step 1, sockets → requests, is the crate `http_server`; steps 6 and 7, blocks and answers, are
//! the crate `answers`.

// The future of a request contains those of all steps, down to the call of one node.
#![recursion_limit = "256"]

mod route; //            2. head → where it goes
pub mod authenticate; // 3. key → Caller
pub mod parse; //        4. bytes → typed calls
pub mod admit; //        5. Caller, call → Permit
pub mod shape; //        8. Answer → Answer within limits
mod respond; //          9. outcome → HTTP reply
pub mod meter; //       10. CallRecord → usage
mod request; //          all of them, one after another

// What the steps use:

pub mod errors; // the error table
mod request_limits; // limits of one request
pub mod limits; // all limits of the configuration

// What runs the steps:

pub mod log; // the log, which never blocks a call
pub mod gateway_state; // what all connections share
pub mod server; // the listeners
pub mod operator; // /health, /ready, /status, /metrics, /admin

pub use gateway_state::GatewayState;
pub use server::{Server, serve_stream};
