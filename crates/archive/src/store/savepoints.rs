//! Savepoints: earlier states of the file that it can be taken back to when the chain is reorganised.
//!
//! A transaction that stores blocks which can be replaced begins with a savepoint of redb, which is a root page and
//! nothing else: the pages that it leads to stay where they are, because redb copies pages to change them. What it costs
//! is that pages which have been replaced since the oldest savepoint are not used again before it is deleted. Therefore
//! there are savepoints only for the newest blocks of a chain that is followed.

use super::StoreError;
use crate::tables::META_SAVEPOINTS;
use redb::{ReadableTable, Table, WriteTransaction};

/// How many of the newest blocks can be replaced, at least: two epochs of Ethereum, after which blocks are finalized.
pub const REPLACEABLE_BLOCKS_MIN: u64 = 64;

/// How many can be replaced, at most, while blocks are not finalized: the pages that each of them replaced stay in the file, so
/// that a chain on which nothing is finalized would make it grow without end.
const REPLACEABLE_BLOCKS_MAX: u64 = 255;

/// The lowest block whose successors can be replaced when `head` is the newest: those that are not finalized, within the
/// bounds.
pub(crate) fn lowest_replaceable(head: u64, finalized: Option<u64>) -> u64 {
    let at_least = head.saturating_sub(REPLACEABLE_BLOCKS_MIN);
    let at_most = head.saturating_sub(REPLACEABLE_BLOCKS_MAX);
    finalized.map_or(at_least, |finalized| at_least.min(finalized)).max(at_most)
}

/// Bytes of a savepoint in that row: its head, and redb's number for it.
const ENTRY: usize = 16;

/// The file as it was when some block was its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Savepoint {
    pub(crate) head: u64,
    id: u64,
}

/// The savepoints of a file, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Savepoints(Vec<Savepoint>);

impl Savepoint {
    /// Makes a savepoint of the file as the last commit left it. No table must be open in the transaction yet.
    pub(crate) fn make(transaction: &WriteTransaction, head: u64) -> Result<Self, StoreError> {
        Ok(Self { head, id: transaction.persistent_savepoint()? })
    }

    /// Takes the file back to what it was. Readers see it when the transaction is committed.
    pub(crate) fn restore(self, transaction: &mut WriteTransaction) -> Result<(), StoreError> {
        let savepoint = transaction.get_persistent_savepoint(self.id)?;
        Ok(transaction.restore_savepoint(&savepoint)?)
    }
}

impl Savepoints {
    pub(crate) fn read(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<Self, StoreError> {
        let Some(row) = meta.get(META_SAVEPOINTS)? else { return Ok(Self::default()) };
        let (entries, rest) = row.value().as_chunks::<ENTRY>();
        if !rest.is_empty() {
            return Err(StoreError::MissingRow("the end of the list of savepoints"));
        }
        let read = |bytes: &[u8; ENTRY]| {
            let (entry, mask) = (u128::from_be_bytes(*bytes), u128::from(u64::MAX));
            Savepoint { head: (entry >> 64) as u64, id: (entry & mask) as u64 }
        };
        Ok(Self(entries.iter().map(read).collect()))
    }

    fn write(&self, meta: &mut Table<'_, &'static str, &'static [u8]>) -> Result<(), StoreError> {
        let entry = |savepoint: &Savepoint| u128::from(savepoint.head) << 64 | u128::from(savepoint.id);
        let row: Vec<u8> = self.0.iter().flat_map(|savepoint| entry(savepoint).to_be_bytes()).collect();
        meta.insert(META_SAVEPOINTS, row.as_slice())?;
        Ok(())
    }

    /// The newest one at which this block was there.
    pub(crate) fn at_or_below(&self, number: u64) -> Option<Savepoint> {
        self.0.iter().copied().rfind(|savepoint| savepoint.head <= number)
    }

    /// The lowest block whose successors can be replaced.
    pub(crate) fn lowest(&self) -> Option<u64> {
        self.0.first().map(|oldest| oldest.head)
    }

    /// The same without those that are newer than one of them.
    pub(crate) fn up_to(mut self, last: Savepoint) -> Self {
        self.0.retain(|savepoint| savepoint.head <= last.head);
        self
    }

    /// The same with a new one.
    pub(crate) fn with(mut self, savepoint: Savepoint) -> Self {
        self.0.push(savepoint);
        self
    }

    /// Deletes those that are older than the newest one at which the block `lowest` was there, and writes the others down.
    pub(crate) fn keep_from(
        mut self,
        lowest: u64,
        transaction: &WriteTransaction,
        meta: &mut Table<'_, &'static str, &'static [u8]>,
    ) -> Result<(), StoreError> {
        let obsolete = self.0.iter().rposition(|savepoint| savepoint.head <= lowest).unwrap_or(0);
        for savepoint in self.0.drain(..obsolete) {
            transaction.delete_persistent_savepoint(savepoint.id)?;
        }
        self.write(meta)
    }

    /// Deletes all of them.
    pub(crate) fn delete(
        mut self,
        transaction: &WriteTransaction,
        meta: &mut Table<'_, &'static str, &'static [u8]>,
    ) -> Result<(), StoreError> {
        if self.0.is_empty() {
            return Ok(());
        }
        for savepoint in self.0.drain(..) {
            transaction.delete_persistent_savepoint(savepoint.id)?;
        }
        self.write(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_not_finalized_can_be_replaced_within_bounds() {
        for (head, finalized, lowest) in [
            (1_000, None, 936),
            (1_000, Some(990), 936),
            (1_000, Some(900), 900),
            (1_000, Some(100), 745),
            (1_000, Some(2_000), 936),
            (50, Some(40), 0),
            (100, Some(0), 0),
        ] {
            assert_eq!(lowest_replaceable(head, finalized), lowest, "{head} {finalized:?}");
        }
    }
}
