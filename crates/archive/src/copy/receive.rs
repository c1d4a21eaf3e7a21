//! The receiving side.

use super::{BUFFER_BYTES, END_OF_TABLE, FAILED, ROW, ROW_PART_BYTES_MAX};
use crate::{
    store::{Disk, FileKind, OpenError, StoreError},
    table_list::{TableList, TableVisitor},
};
use redb::{Key, Table, TableDefinition, Value};
use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

/// Bytes of rows that are written in one transaction, which has to keep track of its pages in memory.
const TRANSACTION_BYTES_MAX: usize = 256 << 20;

/// Rows between two reports of progress.
const ROWS_BETWEEN_REPORTS: u64 = 4_096;

/// How far a copy is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyProgress {
    pub rows: u64,
    pub rows_total: u64,
}

/// Why no copy was made.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error("its sender has gone before the last row: {0}")]
    Stream(io::Error),
    #[error("it cannot be read: {0}")]
    Sender(String),
    #[error(
        "it has format version {sent}, and this program has version {own}: \
         use the program that the gateway runs, or restart the gateway"
    )]
    OtherVersion { sent: u32, own: u32 },
    #[error("what its sender has sent is no copy")]
    Malformed,
    #[error(transparent)]
    Create(OpenError),
    #[error(transparent)]
    Write(#[from] StoreError),
}

impl From<OpenError> for ReceiveError {
    fn from(cause: OpenError) -> Self {
        match cause {
            OpenError::Store(cause) => Self::Write(cause),
            other => Self::Create(other),
        }
    }
}

/// Makes a new file of the rows of a stream. It is on the disk when this returns.
pub(crate) fn receive<T: TableList>(
    from: impl Read,
    path: &Path,
    kind: FileKind,
    report: &mut dyn FnMut(CopyProgress),
) -> Result<(), ReceiveError> {
    let mut from = BufReader::with_capacity(BUFFER_BYTES, from);
    let sent = u32::from_be_bytes(read_array(&mut from)?);
    if sent != kind.version {
        return Err(ReceiveError::OtherVersion { sent, own: kind.version });
    }
    let rows_total = u64::from_be_bytes(read_array(&mut from)?);
    let disk = Disk::create(path, kind)?;
    let progress = CopyProgress { rows: 0, rows_total };
    let mut receiver = RowReceiver { from, disk, key: Vec::new(), value: Vec::new(), progress, report };
    T::visit_all(&mut receiver)?;
    (receiver.report)(receiver.progress);
    drop(receiver);
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|cause| StoreError::from(redb::Error::Io(cause)).into())
}

struct RowReceiver<'a, R> {
    from: R,
    disk: Disk,
    key: Vec<u8>,
    value: Vec<u8>,
    progress: CopyProgress,
    report: &'a mut dyn FnMut(CopyProgress),
}

/// The end of a run of rows: why the next row is not written with them.
#[derive(PartialEq, Eq)]
enum RowsEnd {
    Table,
    /// The transaction is large enough.
    Transaction,
}

impl<R: Read> TableVisitor for RowReceiver<'_, R> {
    type Error = ReceiveError;

    fn visit<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
    ) -> Result<(), ReceiveError> {
        loop {
            let mut transaction = self.disk.opened().database.begin_write().map_err(StoreError::from)?;
            // The file can then be opened without reading all of it, also if its last bytes could not be written when it was closed.
            transaction.set_quick_repair(true);
            let end = self.fill(&mut transaction.open_table(table).map_err(StoreError::from)?)?;
            transaction.commit().map_err(StoreError::from)?;
            if end == RowsEnd::Table {
                return Ok(());
            }
        }
    }
}

impl<R: Read> RowReceiver<'_, R> {
    fn fill<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: &mut Table<'_, K, V>,
    ) -> Result<RowsEnd, ReceiveError> {
        let mut bytes = 0;
        while bytes < TRANSACTION_BYTES_MAX {
            if !self.next_row()? {
                return Ok(RowsEnd::Table);
            }
            if !is_well_formed::<K>(&self.key) || !is_well_formed::<V>(&self.value) {
                return Err(ReceiveError::Malformed);
            }
            let inserted = table.insert(K::from_bytes(&self.key), V::from_bytes(&self.value));
            inserted.map(drop).map_err(StoreError::from)?;
            bytes += self.key.len() + self.value.len();
            self.progress.rows += 1;
            if self.progress.rows.is_multiple_of(ROWS_BETWEEN_REPORTS) {
                (self.report)(self.progress);
            }
        }
        Ok(RowsEnd::Transaction)
    }

    /// Reads a row; false at the end of the table.
    fn next_row(&mut self) -> Result<bool, ReceiveError> {
        match read_array(&mut self.from)? {
            [ROW] => {}
            [END_OF_TABLE] => return Ok(false),
            [FAILED] => {
                let length = u32::from_be_bytes(read_array(&mut self.from)?);
                read_part(&mut self.from, length, &mut self.value)?;
                return Err(ReceiveError::Sender(String::from_utf8_lossy(&self.value).into_owned()));
            }
            _ => return Err(ReceiveError::Malformed),
        }
        let key_length = u32::from_be_bytes(read_array(&mut self.from)?);
        let value_length = u32::from_be_bytes(read_array(&mut self.from)?);
        read_part(&mut self.from, key_length, &mut self.key)?;
        read_part(&mut self.from, value_length, &mut self.value)?;
        Ok(true)
    }
}

fn read_array<const N: usize>(from: &mut impl Read) -> Result<[u8; N], ReceiveError> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).map_err(ReceiveError::Stream)?;
    Ok(bytes)
}

fn read_part(from: &mut impl Read, length: u32, part: &mut Vec<u8>) -> Result<(), ReceiveError> {
    if length > ROW_PART_BYTES_MAX {
        return Err(ReceiveError::Malformed);
    }
    part.clear();
    from.take(length.into()).read_to_end(part).map_err(ReceiveError::Stream)?;
    match part.len() == length as usize {
        true => Ok(()),
        false => Err(ReceiveError::Stream(io::ErrorKind::UnexpectedEof.into())),
    }
}

/// Whether these bytes are a value of the type, which redb takes for granted.
fn is_well_formed<T: Value>(bytes: &[u8]) -> bool {
    let is_text = T::type_name() == <&str>::type_name();
    T::fixed_width().is_none_or(|width| width == bytes.len())
        && (!is_text || std::str::from_utf8(bytes).is_ok())
}
