//! Nodes as a source of answers: proven blocks of their chain, logs, state and fees, and what goes on with it in a file or an archive.
//!
//! `answers` asks it about the chain of the nodes, and `chaingate` makes it from the configuration. It knows no callers, keys or plans:
//! whoever asks brings the account that pays.
//!
//! ```no_run
//! use methods::Network;
//! use remote::settings::PoolConfig;
//! use remote::StartedPool;
//! use resources::Supervisor;
//!
//! /// Begins to watch the nodes of a configuration.
//! fn start(config: &PoolConfig, network: &Network) -> Result<StartedPool, String> {
//!     StartedPool::start(config, network, "chaingate-data".as_ref(), &Supervisor::default(), |_| Ok(()))
//! }
//! ```

pub mod settings; // the configuration
mod pinned_call; // calls whose blocks are pinned
mod policy; // times that no setting changes
mod block_ids; // blocks of the nodes' chain
mod call_context; // what questions to nodes have in common
mod simulation_gas; // how much gas simulations have that nodes run
mod chain_query; // queries that one call to a node answers
mod encode; // queries → calls
mod node_failures; // errors of nodes → failures of ours
mod not_served; // why no node answers
mod fetched; // answers, and how long they may be cached
mod call_key; // which calls and fetches are one while they are under way
mod integrity; // what answers about blocks are made from
mod workers; // work on large answers runs in the pool of threads
mod mined; // proven blocks as JSON

// Who knows the chain of the nodes, one owner each:

mod blocks; // proven blocks and headers, in memory, in a file or from nodes, and where a transaction is
mod fees; // fees from proven blocks
mod state; // state, and everything else that no block proves
mod logs; // log queries
mod follower; // the chain is kept here as it grows

// In which order they are asked:

mod started_pool; // nodes that are watched
mod node_changes; // other nodes in their place
mod known_answers; // answers that nobody has to be asked for
mod partners; // who is asked when no node of the operator can answer
mod pool_source; // all of these, and the nodes

#[cfg(test)]
#[path = "tests/test_blocks.rs"]
mod test_blocks; // blocks without nodes that answer
#[cfg(test)]
#[path = "tests/test_source.rs"]
mod test_source; // a source without nodes that answer

use methods::Network;

pub use blocks::StoredChain;
pub use follower::{
    AlignedChains, AwaitedBlock, ExecutedChain, ExecutionState, FollowState, FollowThread, FollowedChain,
};
pub use integrity::IntegrityPolicy;
pub use node_changes::change_nodes;
pub use partners::Partners;
pub use pinned_call::{HandedBack, PinnedCall, Repetition, Unanswered};
pub use pool_source::PoolSource;
pub use started_pool::{StartedPool, inspect_nodes};
use state::ChainRules;
pub use state::Confirmations;

/// Whether the genesis file that a configuration names can be used.
pub fn check_genesis(network: &Network) -> Result<(), String> {
    ChainRules::open(network).map(|_| ())
}
