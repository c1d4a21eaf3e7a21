//! Blocks of the nodes' chain, as the other steps name them.

use alloy_primitives::B256;
use methods::BlockRef;
use nodes::proven::ProvenBody;
use nodes::{BlockId, CanonicalChain};

use crate::failure::Failure;
use crate::view::ChainView;

/// The newest block of a chain.
pub(super) fn head(chain: &CanonicalChain) -> BlockRef {
    block_ref(chain.head())
}

pub(super) fn block_id(block: BlockRef) -> BlockId {
    BlockId { number: block.number, hash: block.hash }
}

pub(super) fn block_ref(id: BlockId) -> BlockRef {
    BlockRef { number: id.number, hash: id.hash }
}

pub(super) fn block_of(body: &ProvenBody) -> BlockRef {
    BlockRef { number: body.header().number, hash: body.hash() }
}

impl ChainView for CanonicalChain {
    fn head(&self) -> BlockRef {
        head(self)
    }

    fn finalized(&self) -> Option<BlockRef> {
        Self::finalized(self).map(block_ref)
    }

    fn safe(&self) -> Option<BlockRef> {
        Self::safe(self).map(block_ref)
    }

    fn block_by_number(&self, number: u64) -> Result<Option<BlockRef>, Failure> {
        Ok(self.by_number(number).map(block_ref))
    }

    fn block_by_hash(&self, hash: B256) -> Result<Option<BlockRef>, Failure> {
        Ok(self.by_hash(&hash).map(block_ref))
    }

    fn side_block(&self, hash: B256) -> Option<BlockRef> {
        Self::side_block(self, &hash).map(block_ref)
    }
}
