//! Chaingate: a JSON-RPC 2.0 gateway to one blockchain network.
//!
//! The life of a request, in its order:

pub mod listen; //       1. sockets → connections
pub mod http; //         2. connection → body within the limit
pub mod authenticate; // 3. key → Caller
pub mod parse; //        4. bytes → typed calls
pub mod admit; //        5. Caller, call → Permit
pub mod resolve; //      6. tags → blocks of the view
pub mod answer; //       7. Permit, call → Answer
pub mod shape; //        8. Answer → Answer within limits
pub(crate) mod respond; //  9. outcome → HTTP reply
pub mod meter; //       10. ticket → usage
mod request; //             all of them, one after another

// What the steps are told by:

pub mod methods; // the method table
pub mod params; // typed parameters
pub mod errors; // the error table
pub mod limits; // every limit by name
pub mod callers; // accounts, keys, plans
pub mod network; // what is particular to this network
mod fair_share; // how accounts share what is bounded
mod memory; // what bodies and replies may take
pub mod clock; // time, read once and handed on

// What runs them:

pub mod cli; // the command line
pub mod config; // one file, all mistakes at once
pub mod docs; // the documents that are made from the tables
pub mod demo; // the chain that a start without configuration makes
pub mod source; // who holds the chain
mod import_socket; // imports into an archive that is being served
mod log; // lines that never hold up a call
pub mod edge; // what all connections share
pub mod operator; // /health, /ready, /status, /metrics
