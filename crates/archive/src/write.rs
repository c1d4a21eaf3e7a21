//! The rows of proven blocks, written into one open transaction.

mod genesis; // block 0
mod group; // several blocks, one commit
mod roots; // state roots over the tries of the file

pub(crate) use genesis::store_genesis;
pub(crate) use group::{BlockTables, LatestState, NewBlock, ProvenExecution, StateTables};
pub(crate) use roots::Tries;
