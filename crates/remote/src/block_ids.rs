//! Blocks of the nodes' chain, as the other steps name them.

use methods::BlockRef;
use nodes::proven::ProvenBody;
use nodes::{BlockId, CanonicalChain};
pub(super) use sources::block_ref;

/// The newest block of a chain.
pub(super) fn head(chain: &CanonicalChain) -> BlockRef {
    block_ref(chain.head())
}

pub(super) fn block_id(block: BlockRef) -> BlockId {
    BlockId { number: block.number, hash: block.hash }
}

pub(super) fn block_of(body: &ProvenBody) -> BlockRef {
    BlockRef { number: body.header().number, hash: body.hash() }
}
