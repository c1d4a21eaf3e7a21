//! The interface to whoever holds the chain. A [`Source`] is synchronous: it writes the result as JSON text into a buffer that
//! it is given, and says at which block it is true. Its caller decides on which thread it runs.

use std::sync::Arc;

use alloy_primitives::B256;
use methods::{BlockRef, Query};
use nodes::{BlockId, CanonicalChain};
use tokio::sync::watch;

use crate::budget::AnswerBudget;
use crate::failure::Failure;
use crate::limits::AnswerLimits;
use crate::provenance::Provenance;

/// The canonical chain as it is known at one moment. Asked for almost every call: a look-up in memory.
pub trait ChainView: Send + Sync {
    /// The newest canonical block.
    fn head(&self) -> BlockRef;

    fn finalized(&self) -> Option<BlockRef>;

    fn safe(&self) -> Option<BlockRef>;

    /// `Ok(None)` if there is no such block, an error if that is not known.
    fn block_by_number(&self, number: u64) -> Result<Option<BlockRef>, Failure>;

    /// `None` also for a block that is known but not canonical.
    fn block_by_hash(&self, hash: B256) -> Result<Option<BlockRef>, Failure>;

    /// A block that was canonical and was reorganised away.
    fn side_block(&self, _hash: B256) -> Option<BlockRef> {
        None
    }
}

/// A chain of our own that answers calls.
///
/// It must only be asked about blocks that its view has named; one that has gone since is `Failure::Unavailable`.
pub trait Source: ChainView + 'static {
    /// Appends the result to `out` as JSON text (`"0x1"`, `{…}`, `null`) and says where it came from.
    ///
    /// On failure, what was appended is thrown away. Pooled work asks `budget.stopped()` now and then and ends with a
    /// timeout when it says so. Where `budget.is_brief()`, it ends so at once when it can tell that it will take longer
    /// than a moment, and begins nothing that cannot be stopped.
    fn answer(
        &self,
        query: &Query<BlockRef>,
        budget: &AnswerBudget,
        out: &mut Vec<u8>,
    ) -> Result<Provenance, Failure>;
}

/// A chain of our own that grows. Every request takes one snapshot of it, so that all its calls see the same chain.
pub trait SnapshotSource: Send + Sync + 'static {
    /// The chain as it is now. It does not change any more.
    fn snapshot(&self) -> Arc<dyn Source>;

    /// Notifies of each commit. `None` if the chain never changes.
    fn commits(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Questions that begin from now on have these limits.
    fn change_limits(&self, _limits: &AnswerLimits) {}

    /// The archive that holds it, if one does.
    fn own_archive(&self) -> Option<&Arc<archive::Archive>> {
        None
    }
}

/// The chain of nodes.
impl ChainView for CanonicalChain {
    fn head(&self) -> BlockRef {
        block_ref(Self::head(self))
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

/// A block of nodes, as queries name it.
pub fn block_ref(id: BlockId) -> BlockRef {
    BlockRef { number: id.number, hash: id.hash }
}
