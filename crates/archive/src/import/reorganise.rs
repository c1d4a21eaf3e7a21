//! Reorganisation: replaces the newest blocks of an archive by those of another branch.
//!
//! The file goes back to the newest savepoint below the branch, and the branch is executed in the same transaction.
//! Readers see the old chain until the new one is complete; snapshots that they hold stay what they are.

use super::{
    BlockGroup, GroupEnd, Import, ImportError, ImportProgress, NoProgress, QUEUE_BLOCKS_MAX,
    ReplaceableBlocks, SourceBlock, recover,
};
use crate::{
    archive::Archive,
    chain::Block,
    store::{Savepoint, Savepoints},
};
use std::{sync::mpsc::sync_channel, thread};

impl Archive {
    /// Replaces the blocks after the block `ancestor` by others, as a whole or not at all.
    ///
    /// All of the branch is one transaction, so it should be no longer than a branch of a live chain. Pass the blocks after
    /// it to [`Self::follow_blocks`].
    pub fn reorganise<B>(&self, ancestor: u64, branch: B) -> Result<ImportProgress, ImportError>
    where
        B: IntoIterator<Item = Block, IntoIter: Send>,
    {
        let _only_one = self.begin_import();
        let (snapshot, savepoints) = (self.snapshot(), self.savepoints()?);
        let Some(savepoint) = savepoints.at_or_below(ancestor.min(snapshot.head())) else {
            return Err(ImportError::TooDeep { ancestor, lowest: savepoints.lowest() });
        };
        let stay: Vec<Block> = (savepoint.head + 1..=ancestor)
            .map(|number| snapshot.whole_block(number))
            .collect::<Result<_, _>>()?;
        let blocks = stay.into_iter().chain(branch).map(|block| Ok(SourceBlock { block, bytes_read: 0 }));
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(QUEUE_BLOCKS_MAX);
            let chain = self.chain();
            scope.spawn(move || recover::run(chain, blocks, ReplaceableBlocks::default(), &sender));
            let import = Import::resume(self, &snapshot, savepoint.head, receiver)?;
            drop(snapshot);
            Import { is_replaceable: true, ..import }.replace(savepoint, savepoints.up_to(savepoint))
        })
    }
}

impl Import<'_> {
    /// Takes the file back, stores all blocks of the queue, and shows the result.
    fn replace(
        mut self,
        savepoint: Savepoint,
        savepoints: Savepoints,
    ) -> Result<ImportProgress, ImportError> {
        let mut transaction = self.archive.begin_write()?;
        savepoint.restore(&mut transaction)?;
        {
            let mut group = BlockGroup { until: None, ..BlockGroup::open(&transaction)? };
            if let GroupEnd::Fault(fault) = self.fill(&mut group, &mut NoProgress)? {
                return Err(fault);
            }
            self.finish(&mut group)?;
            let lowest = self.archive.lowest_replaceable(self.progress.head);
            savepoints.keep_from(lowest, &transaction, &mut group.blocks.meta)?;
        }
        self.archive.commit(transaction)?;
        Ok(self.progress)
    }
}
