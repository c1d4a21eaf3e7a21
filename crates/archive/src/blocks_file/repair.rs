//! A file with damaged blocks is replaced by one without them. Whoever follows the chain fetches them again.

use super::{
    BLOCKS_FILE, BlocksFile, BlocksFileLimits, BlocksFileOpenError, BlocksFileSnapshot, rows::EncodedBlock,
};
use crate::{
    copy::CopyProgress,
    store::{StoreError, sync_directory},
};
use std::{fs, path::Path};

/// The folder of the new file while it is written.
const UNFINISHED: &str = "blocks.repair";

/// Bytes of blocks that are written together.
const BATCH_BYTES: usize = 64 << 20;

/// The blocks that are left of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemovedDamage {
    pub kept: u64,
    pub removed: u64,
}

impl BlocksFile {
    /// Replaces the file of a data directory by one that has its whole blocks, as far as they can be read. Bare headers are not taken
    /// over.
    pub fn remove_damage(
        data_dir: &Path,
        report: &mut dyn FnMut(CopyProgress),
    ) -> Result<RemovedDamage, BlocksFileOpenError> {
        let path = data_dir.join(BLOCKS_FILE);
        let read = |cause| BlocksFileOpenError::Read { path: path.clone(), cause };
        let write = |cause| BlocksFileOpenError::Write { path: path.clone(), cause };
        // Its lock is held until the new file has its name.
        let damaged = Self::open_or_create(data_dir, BlocksFileLimits::default())?;
        let folder = data_dir.join(UNFINISHED);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(write)?;
        }
        let repaired = Self::open_or_create(&folder, BlocksFileLimits::default())?;
        let result = damaged.copy_readable(&repaired, report).map_err(read)?;
        drop(repaired);
        fs::rename(folder.join(BLOCKS_FILE), &path).map_err(write)?;
        fs::remove_dir(&folder).and_then(|()| sync_directory(&path)).map_err(write)?;
        Ok(result)
    }

    fn copy_readable(
        &self,
        repaired: &Self,
        report: &mut dyn FnMut(CopyProgress),
    ) -> Result<RemovedDamage, StoreError> {
        let snapshot = self.snapshot();
        if let Some(chain) = snapshot.chain() {
            repaired.set_chain(chain)?;
        }
        let (mut result, mut batch, mut bytes) = (RemovedDamage::default(), Vec::new(), 0);
        let rows_total = snapshot.block_count();
        for number in snapshot.ranges().flatten() {
            // A read that fails makes the snapshot unusable. The next one is of the file as it is open then.
            match self.snapshot().encoded_block(number) {
                Ok(Some(block)) => {
                    result.kept += 1;
                    bytes += block.bytes();
                    batch.push(block);
                }
                Ok(None) | Err(_) => result.removed += 1,
            }
            if bytes >= BATCH_BYTES {
                repaired.put_blocks(&batch)?;
                (batch, bytes) = (Vec::new(), 0);
                report(CopyProgress { rows: result.kept + result.removed, rows_total });
            }
        }
        repaired.put_blocks(&batch)?;
        Ok(result)
    }
}

impl BlocksFileSnapshot {
    /// A whole block as it was put in.
    fn encoded_block(&self, number: u64) -> Result<Option<EncodedBlock>, StoreError> {
        let (Some(header), Some(body), Some(receipts)) =
            (self.header(number)?, self.body(number)?, self.receipts(number)?)
        else {
            return Ok(None);
        };
        let transactions = body.decode()?.body.transactions.iter().map(|sent| *sent.tx_hash()).collect();
        Ok(Some(EncodedBlock { header, body: body.0, receipts: receipts.0, transactions }))
    }
}
