//! What the tests of Chaingate are made with; never a dependency of the product.

pub mod asm; // a tiny assembler
pub mod contracts; // what the made-up chains run
pub mod chain; // random chains through every fork
pub mod model; // what the archive should answer, found the slow way
pub mod blockchain_test; // tests in the format of Ethereum's official suites
pub mod truth; // an archive compared with a model
pub mod heavy; // big chains for benchmarks
pub mod http; // a caller that says exactly what it is told to
pub mod http2; // a caller that writes frames
pub mod node_process; // a node that runs as a process
pub mod anvil; // a real node
pub mod hardhat; // another one
pub mod ganache; // another one
pub mod ethereumjs; // another one
pub mod ports; // ports that stay free
pub mod redis; // a real Redis
pub mod postgres; // a real database
pub mod stalling_proxy; // connections to it that hang
pub mod proxy; // a real node with faults
pub mod proofs; // proofs of state, and lies about it
pub mod forgery; // lies of nodes
pub mod matrix; // lies against mixes of nodes
pub mod skip; // tests that leave themselves out

#[cfg(test)]
mod tests;
