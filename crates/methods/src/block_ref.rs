//! A block by number and hash.

use alloy_primitives::B256;

/// A known block: a canonical one, or a reorganised one that the caller named by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRef {
    pub number: u64,
    pub hash: B256,
}
