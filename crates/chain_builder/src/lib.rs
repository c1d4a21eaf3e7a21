//! Assembles valid blocks on a state in memory, for the demo chain, for tests and for benchmarks. The archive does not know
//! it: what is built here is imported and proven like any other chain.

mod memory; // a state that holds everything in maps
mod header; // fields of a header that follow from its parent
mod predeploys; // contracts that the protocol calls
mod sign; // transactions with a signature
mod fork_schedule; // which fork is when
mod builder; // blocks, one after another

#[cfg(test)]
mod tests;

pub use builder::{BlockPlan, BuildError, BuiltBlock, ChainBuilder, write_blocks};
pub use fork_schedule::{DIFFICULTY_MIN, Era, fork_schedule};
pub use memory::{MemoryState, StoredAccount};
pub use predeploys::system_contracts;
pub use sign::Signer;
