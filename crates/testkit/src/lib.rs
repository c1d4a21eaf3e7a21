//! Tools for the tests of Chaingate; never a dependency of the product.

pub mod asm; // a tiny assembler
pub mod contracts; // contracts of the made-up chains
pub mod chain; // random chains through every fork
pub mod model; // a slow reference for the archive's answers
pub mod blockchain_test; // tests in the format of Ethereum's official suites
pub mod truth; // an archive compared with a model
pub mod heavy; // big chains for benchmarks
pub mod http; // a caller that sends given bytes
pub mod http2; // a caller that writes frames
pub mod node_process; // a node that runs as a process
pub mod anvil; // anvil as a node
pub mod hardhat; // Hardhat as a node
pub mod ganache; // Ganache as a node
pub mod ethereumjs; // EthereumJS as a node
pub mod ports; // ports that stay free
pub mod redis; // a real Redis
pub mod postgres; // a real database
pub mod stalling_proxy; // connections to a database that hang
pub mod proxy; // a real node with faults
pub mod proofs; // proofs of state, and lies about it
pub mod forgery; // lies of nodes
pub mod matrix; // lies against mixes of nodes
pub mod skip; // tests that cannot run here

#[cfg(test)]
mod tests;
