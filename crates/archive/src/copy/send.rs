//! The sending side.

use super::{BUFFER_BYTES, END_OF_TABLE, FAILED, ROW};
use crate::{
    store::StoreError,
    table_list::{TableList, TableVisitor},
};
use redb::{Key, ReadTransaction, ReadableTable, ReadableTableMetadata, TableDefinition, TableHandle, Value};
use std::{
    io::{self, BufWriter, Write},
    marker::PhantomData,
};

/// Why not all rows were sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The file cannot be read. The receiver has been told.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the receiver is gone: {0}")]
    Stream(#[from] io::Error),
}

/// Sends all rows that a snapshot has.
pub(crate) fn send<T: TableList>(
    snapshot: &ReadTransaction,
    version: u32,
    out: impl Write,
) -> Result<(), SendError> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    out.write_all(&version.to_be_bytes())?;
    let sent = send_tables::<T>(snapshot, &mut out);
    if let Err(SendError::Store(cause)) = &sent {
        let message = cause.to_string();
        out.write_all(&[FAILED])?;
        out.write_all(&(message.len() as u32).to_be_bytes())?;
        out.write_all(message.as_bytes())?;
    }
    out.flush()?;
    sent
}

fn send_tables<T: TableList>(snapshot: &ReadTransaction, out: &mut impl Write) -> Result<(), SendError> {
    // The receiver sees at once that it is served, also where the tables are large.
    out.write_all(&rows_of::<T>(snapshot)?.to_be_bytes())?;
    out.flush()?;
    T::visit_all(&mut RowSender { snapshot, out, tables: PhantomData::<T> })
}

/// How many rows all tables have together.
pub(crate) fn rows_of<T: TableList>(snapshot: &ReadTransaction) -> Result<u64, StoreError> {
    let mut counter = RowCounter { snapshot, rows: 0 };
    T::visit_all(&mut counter)?;
    Ok(counter.rows)
}

struct RowCounter<'a> {
    snapshot: &'a ReadTransaction,
    rows: u64,
}

impl TableVisitor for RowCounter<'_> {
    type Error = StoreError;

    fn visit<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
    ) -> Result<(), StoreError> {
        self.rows += self.snapshot.open_table(table)?.len()?;
        Ok(())
    }
}

struct RowSender<'a, W, T> {
    snapshot: &'a ReadTransaction,
    out: &'a mut W,
    tables: PhantomData<T>,
}

impl<W: Write, T: TableList> TableVisitor for RowSender<'_, W, T> {
    type Error = SendError;

    fn visit<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
    ) -> Result<(), SendError> {
        let rows = self.snapshot.open_table(table).map_err(StoreError::from)?;
        for row in rows.iter().map_err(StoreError::from)? {
            let (key, value) = row.map_err(StoreError::from)?;
            let (key, value) = (key.value(), value.value());
            let (key, value) = (K::as_bytes(&key), V::as_bytes(&value));
            let (key, value) = (key.as_ref(), value.as_ref());
            if T::is_in_copies(table.name(), key) {
                self.out.write_all(&[ROW])?;
                self.out.write_all(&(key.len() as u32).to_be_bytes())?;
                self.out.write_all(&(value.len() as u32).to_be_bytes())?;
                self.out.write_all(key)?;
                self.out.write_all(value)?;
            }
        }
        Ok(self.out.write_all(&[END_OF_TABLE])?)
    }
}
