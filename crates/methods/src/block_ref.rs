//! A block by number and hash.

use alloy_primitives::B256;

/// A block that is known: a canonical one, or one that was reorganised away and was named by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRef {
    pub number: u64,
    pub hash: B256,
}
