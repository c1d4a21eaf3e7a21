//! How chains compute their hashes.

/// How a chain computes its hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainFamily {
    Ethereum,
    /// Blocks and transactions are not hashed in an encoding that we know, so nothing in a block can be proven.
    Zksync,
}
