//! The check of a whole file: every row in use is read, and what cannot be read is named.
//!
//! A damaged page hides the rows that it leads to. The check goes on behind them: it looks for the next key that can be read,
//! first in ever longer steps, and then by halving the last one.

mod key_space; // keys as numbers

use crate::{
    copy::{CopyProgress, rows_of},
    store::{Disk, FileKind, OpenError, StoreError},
    table_list::{TableList, TableVisitor},
};
use alloy_primitives::U512;
use redb::{
    DatabaseError, Key, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition, TableHandle, Value,
};
use std::path::Path;

/// Rows between two reports of progress.
const ROWS_BETWEEN_REPORTS: u64 = 4_096;

/// Damaged ranges of one table that are looked for. After so many the rest of the table counts as one.
const RANGES_MAX: usize = 256;

/// The first step behind a damaged key is this part of all keys that are possible, but at least one.
const FIRST_STEP_SHIFT: usize = 48;

/// How often the last step is halved. The ranges of numbered rows are then exact.
const HALVINGS_MAX: usize = 64;

/// Rows of a table that cannot be read: those between two keys that can. The bytes of keys are those of redb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRange {
    pub table: String,
    /// `None` at the begin of the table.
    pub after: Option<Vec<u8>>,
    /// `None` at the end of the table.
    pub before: Option<Vec<u8>>,
}

/// Reads all rows of a file. Returns what cannot be read; nothing is changed.
pub(crate) fn find_damage<T: TableList>(
    path: &Path,
    kind: FileKind,
    report: &mut dyn FnMut(CopyProgress),
) -> Result<Vec<DamagedRange>, OpenError> {
    let disk = Disk::open(path, kind)?;
    let snapshot = disk.opened().database.begin_read().map_err(StoreError::from)?;
    // Where the roots of tables cannot be read, nothing else can.
    let rows_total = rows_of::<T>(&snapshot).map_err(|cause| OpenError::from_read(path, cause))?;
    drop(snapshot);
    let progress = CopyProgress { rows: 0, rows_total };
    let mut search = DamageSearch { disk, damaged: Vec::new(), progress, report };
    T::visit_all(&mut search).map_err(|cause| OpenError::from_read(path, cause))?;
    (search.report)(search.progress);
    Ok(search.damaged)
}

struct DamageSearch<'a> {
    disk: Disk,
    damaged: Vec<DamagedRange>,
    progress: CopyProgress,
    report: &'a mut dyn FnMut(CopyProgress),
}

impl TableVisitor for DamageSearch<'_> {
    type Error = StoreError;

    fn visit<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
    ) -> Result<(), StoreError> {
        let (mut from, mut last) = (None, None);
        for _ in 0..RANGES_MAX {
            if self.read_from(table, from.as_deref(), &mut last).is_ok() {
                return Ok(());
            }
            from = self.next_readable(table, last.as_deref())?;
            self.add_damage(table.name(), &last, &from);
            if from.is_none() {
                return Ok(());
            }
        }
        self.add_damage(table.name(), &last, &None);
        Ok(())
    }
}

enum FirstKey {
    Key(Vec<u8>),
    /// The table has no more.
    None,
    Unreadable,
}

impl DamageSearch<'_> {
    fn add_damage(&mut self, table: &str, after: &Option<Vec<u8>>, before: &Option<Vec<u8>>) {
        let (table, after, before) = (table.to_owned(), after.clone(), before.clone());
        self.damaged.push(DamagedRange { table, after, before });
    }

    /// Reads all rows from a key on; `last` is the last one that was read.
    fn read_from<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
        from: Option<&[u8]>,
        last: &mut Option<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let rows = self.open(table)?;
        let found = match from {
            Some(key) => rows.range(K::from_bytes(key)..)?,
            None => rows.iter()?,
        };
        for row in found {
            let (key, _) = row?;
            *last = Some(K::as_bytes(&key.value()).as_ref().to_vec());
            self.progress.rows += 1;
            if self.progress.rows.is_multiple_of(ROWS_BETWEEN_REPORTS) {
                (self.report)(self.progress);
            }
        }
        Ok(())
    }

    /// The first key behind a damaged range; `None` if nothing can be read to the end of the table.
    fn next_readable<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
        last: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        if !key_space::has_numbers::<K>() {
            return Ok(None);
        }
        let max = key_space::max::<K>();
        let mut unreadable = last.map_or(U512::ZERO, key_space::number_of::<K>);
        let mut step = (max >> FIRST_STEP_SHIFT).max(U512::ONE);
        let (mut readable, mut found) = loop {
            let probe = unreadable.saturating_add(step).min(max);
            match self.first_from(table, probe)? {
                FirstKey::Unreadable if probe == max => return Ok(None),
                FirstKey::Unreadable => (unreadable, step) = (probe, step << 1),
                first => break (probe, first),
            }
        };
        for _ in 0..HALVINGS_MAX {
            let middle = unreadable + (readable - unreadable) / U512::from(2);
            if middle == unreadable {
                break;
            }
            match self.first_from(table, middle)? {
                FirstKey::Unreadable => unreadable = middle,
                first => (readable, found) = (middle, first),
            }
        }
        Ok(match found {
            FirstKey::Key(key) => Some(key),
            FirstKey::None | FirstKey::Unreadable => None,
        })
    }

    /// The first key from a number on.
    fn first_from<K: Key + 'static, V: Value + 'static>(
        &self,
        table: TableDefinition<'static, K, V>,
        number: U512,
    ) -> Result<FirstKey, StoreError> {
        let rows = self.open(table)?;
        let from = key_space::key_of::<K>(number);
        let first = rows.range(K::from_bytes(&from)..).map(|mut rows| rows.next());
        Ok(match first {
            Ok(Some(Ok((key, _)))) => FirstKey::Key(K::as_bytes(&key.value()).as_ref().to_vec()),
            Ok(None) => FirstKey::None,
            Ok(Some(Err(_))) | Err(_) => FirstKey::Unreadable,
        })
    }

    /// Opens a table, with the database opened anew if the last read has failed.
    fn open<K: Key + 'static, V: Value + 'static>(
        &self,
        table: TableDefinition<'static, K, V>,
    ) -> Result<ReadOnlyTable<K, V>, StoreError> {
        self.disk.reopen(|_| Ok(()))?;
        Ok(self.disk.opened().database.begin_read()?.open_table(table)?)
    }
}

/// Compares everything that is in use with its checksums, those of redb among them, which also tell writes that the disk has dropped.
pub(crate) fn check_pages(path: &Path, kind: FileKind) -> Result<(), OpenError> {
    match Disk::open(path, kind)?.check() {
        Ok(true) => Ok(()),
        Ok(false) | Err(DatabaseError::Storage(redb::StorageError::Corrupted(_))) => {
            Err(OpenError::Damaged(path.to_owned()))
        }
        Err(cause) => Err(OpenError::from_database(path, cause)),
    }
}
