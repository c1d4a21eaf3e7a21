//! How chains make their hashes.

/// How a chain makes its hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Ethereum,
    /// Hashes of blocks and transactions are not those of an encoding we know, so that nothing in a block can be proven.
    Zksync,
}
