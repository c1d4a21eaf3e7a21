//! The method table, typed parameters, and the settings of a network. This crate does not know which source answers a call.
//!
//! `gateway` parses calls with it, `callers` reads its queries for the lists of a key, and `answers` answers them:
//!
//! ```
//! let method = methods::MethodId::named("eth_getBalance").unwrap().row();
//! assert_eq!((method.required.len(), method.optional.len()), (1, 1));
//! assert!(methods::why_not_available("eth_sendRawTransaction").is_some());
//! ```

mod table; // one row per method
mod method; // the row type of the table
mod params; // typed queries, their parameters and readers
mod block_ref; // a block by number and hash
mod param; // the parameters that methods have
mod unavailable; // methods that other providers have
mod network; // settings of the network

pub use block_ref::BlockRef;
pub use method::{
    Cacheable, DeadlineKind, Effort, Method, MethodRules, MissingBlock, NetworkFamily, WorkPlacement,
};
pub use network::{Checkpoint, Network};
pub use param::Param;
pub use params::{
    BlockParam, BlockPart, BlockQuery, CallMessage, FeeQuery, GatewayQuery, LogBlocks, LogFilterParams,
    LogsQuery, NextBlockFee, ParamFault, Percentile, Query, SimulationKind, SimulationQuery, StateQuery,
    StateValue, Tag, TransactionPart, TransactionQuery,
};
pub use table::{CLIENT_VERSION, METHODS, MethodId, OPENRPC};
pub use unavailable::why_not_available;
