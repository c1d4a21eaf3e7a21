//! The local copy of accounts and keys, with which a gateway starts while the store cannot be reached.
//!
//! Like the store it has keyed hashes, never keys or secrets, and only the owner can read it. It begins with all rows and goes on
//! with changed ones, each with a checksum. A load replaces the file as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use store::{AccountRecord, AccountStatus, HASH_BYTES, HashKey, KeyRecord, KeyStatus};
use twox_hash::XxHash3_64;

use super::apply::{RowApplier, StoredRow};

const FILE_NAME: &str = "callers.copy";

/// The first bytes of the file; the number is the version of its format.
const HEADER: &[u8] = b"chaingate callers copy 1\n";

/// A longer record can only be damage: settings have at most 64 KiB, which escaping can at most multiply by six.
const RECORD_BYTES_MAX: usize = 512 << 10;

/// Bytes before the payload of a record: its length twice, and its checksum.
const RECORD_HEAD_BYTES: usize = 16;

/// Rows that are applied together: 32 MiB, if all are keys with the longest settings.
const BATCH_ROWS: usize = 500;

/// Changed rows after which the file is written anew, if they are also more than its other rows.
const CHANGED_ROWS_MAX: u64 = 10_000;

/// Bytes of changed rows after which the file is written anew: a row can have 64 KiB of settings.
const CHANGED_BYTES_MAX: u64 = 16 << 20;

/// One record of the file.
#[derive(Debug, Serialize, Deserialize)]
enum CopyRecord {
    HashKey(String),
    /// Id, name, plan, whether it is suspended, time of creation.
    Account(i64, String, String, bool, i64),
    /// Handle, account, name, prefix, hash, time of creation, expiry, whether it is revoked, settings.
    Key(String, i64, String, String, String, i64, Option<i64>, bool, String),
}

pub(super) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE_NAME)
}

fn temporary_path(path: &Path) -> PathBuf {
    path.with_extension("copy.new")
}

/// Removes a copy that is out of date. A failure has no remedy: the disk is at fault, and that is logged already.
pub(super) fn remove(path: &Path) {
    let _failed = fs::remove_file(path);
    let _failed = fs::remove_file(temporary_path(path));
}

/// Writes the copy.
#[derive(Debug)]
pub(super) struct CopyWriter {
    path: PathBuf,
    file: BufWriter<File>,
    /// What the load that began the file has written.
    loaded: CopySize,
    /// What was added since.
    changed: CopySize,
    is_replaced: bool,
}

/// The size of a part of the copy.
#[derive(Clone, Copy, Debug, Default)]
struct CopySize {
    rows: u64,
    bytes: u64,
}

impl CopyWriter {
    /// Begins a new file beside the old one.
    pub(super) fn create(path: &Path, hash_key: &HashKey) -> io::Result<Self> {
        let temporary = temporary_path(path);
        let mut options = OpenOptions::new();
        let file = options.create(true).write(true).truncate(true).mode(0o600).open(temporary)?;
        let mut file = BufWriter::new(file);
        file.write_all(HEADER)?;
        write_record(&mut file, &CopyRecord::HashKey(const_hex::encode(hash_key.bytes())))?;
        let (path, loaded, changed) = (path.to_owned(), CopySize::default(), CopySize::default());
        Ok(Self { path, file, loaded, changed, is_replaced: false })
    }

    pub(super) fn append(&mut self, rows: &[StoredRow]) -> io::Result<()> {
        let size = if self.is_replaced { &mut self.changed } else { &mut self.loaded };
        for row in rows {
            size.bytes += write_record(&mut self.file, &record_of(row))?;
            size.rows += 1;
        }
        Ok(())
    }

    /// Makes the new file the copy.
    pub(super) fn replace_old(self) -> io::Result<Self> {
        let mut written = self.sync()?;
        fs::rename(temporary_path(&written.path), &written.path)?;
        written.is_replaced = true;
        Ok(written)
    }

    /// Waits until the disk has everything.
    pub(super) fn sync(mut self) -> io::Result<Self> {
        self.file.flush()?;
        self.file.get_ref().sync_data()?;
        Ok(self)
    }

    /// Whether a new file would be shorter.
    pub(super) fn is_long(&self) -> bool {
        self.changed.rows > self.loaded.rows.max(CHANGED_ROWS_MAX)
            || self.changed.bytes > self.loaded.bytes.max(CHANGED_BYTES_MAX)
    }
}

fn record_of(row: &StoredRow) -> CopyRecord {
    match row.clone() {
        StoredRow::Account(AccountRecord { id, name, plan, status, created_at }) => {
            CopyRecord::Account(id, name, plan, status == AccountStatus::Suspended, created_at)
        }
        StoredRow::Key(key) => CopyRecord::Key(
            key.id,
            key.account_id,
            key.name,
            key.prefix,
            const_hex::encode(key.hash),
            key.created_at,
            key.expires_at,
            key.status == KeyStatus::Revoked,
            key.settings,
        ),
    }
}

/// Returns how many bytes the record has.
fn write_record(file: &mut impl Write, record: &CopyRecord) -> io::Result<u64> {
    let payload = serde_json::to_vec(record)?;
    let length = u32::try_from(payload.len()).map_err(|_| ErrorKind::InvalidData)?;
    // The length is there twice, so that a damaged one is not taken for the end of the file.
    file.write_all(&length.to_le_bytes())?;
    file.write_all(&(!length).to_le_bytes())?;
    file.write_all(&XxHash3_64::oneshot(&payload).to_le_bytes())?;
    file.write_all(&payload)?;
    Ok(RECORD_HEAD_BYTES as u64 + payload.len() as u64)
}

/// Loads the copy into memory. `false`: there is none.
pub(super) fn read_copy(path: &Path, applier: &mut RowApplier) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        opened => BufReader::new(opened?),
    };
    let mut header = [0; HEADER.len()];
    file.read_exact(&mut header)?;
    if header != *HEADER {
        return Err(damaged("unknown format"));
    }
    let Some(CopyRecord::HashKey(hash_key)) = read_record(&mut file)? else {
        return Err(damaged("no hash key"));
    };
    applier.begin_load(HashKey::from_bytes(bytes_of(&hash_key)?));
    let mut rows = Vec::with_capacity(BATCH_ROWS);
    while let Some(record) = read_record(&mut file)? {
        rows.push(row_of(record)?);
        if rows.len() == BATCH_ROWS {
            applier.apply(std::mem::take(&mut rows));
        }
    }
    applier.apply(rows);
    applier.finish_load();
    Ok(true)
}

fn row_of(record: CopyRecord) -> io::Result<StoredRow> {
    Ok(match record {
        CopyRecord::HashKey(_) => return Err(damaged("two hash keys")),
        CopyRecord::Account(id, name, plan, is_suspended, created_at) => {
            let status = if is_suspended { AccountStatus::Suspended } else { AccountStatus::Active };
            StoredRow::Account(AccountRecord { id, name, plan, status, created_at })
        }
        CopyRecord::Key(id, account_id, name, prefix, hash, created_at, expires_at, is_revoked, settings) => {
            let status = if is_revoked { KeyStatus::Revoked } else { KeyStatus::Active };
            let hash = bytes_of(&hash)?;
            let last_used_at = None;
            StoredRow::Key(KeyRecord {
                id,
                account_id,
                name,
                prefix,
                hash,
                created_at,
                last_used_at,
                expires_at,
                status,
                settings,
            })
        }
    })
}

/// The next record; `None` at the end, also if the last record was not written completely.
fn read_record(file: &mut impl Read) -> io::Result<Option<CopyRecord>> {
    let mut head = [0; RECORD_HEAD_BYTES];
    if !is_filled(file, &mut head)? {
        return Ok(None);
    }
    let [a, b, c, d, e, f, g, h, checksum @ ..] = head;
    let (length, inverted) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    if length != !inverted || length as usize > RECORD_BYTES_MAX {
        return Err(damaged("the length of a record is wrong"));
    }
    let mut payload = vec![0; length as usize];
    if !is_filled(file, &mut payload)? {
        return Ok(None);
    }
    if XxHash3_64::oneshot(&payload) != u64::from_le_bytes(checksum) {
        return Err(damaged("a checksum is wrong"));
    }
    serde_json::from_slice(&payload).map(Some).map_err(|_| damaged("a record cannot be read"))
}

/// Fills `bytes`; `false` if the file ends before.
fn is_filled(file: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

fn bytes_of(hex: &str) -> io::Result<[u8; HASH_BYTES]> {
    let mut bytes = [0; HASH_BYTES];
    const_hex::decode_to_slice(hex, &mut bytes).map_err(|_| damaged("a hash cannot be read"))?;
    Ok(bytes)
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(settings_bytes: usize) -> StoredRow {
        StoredRow::Key(KeyRecord {
            id: "k_000000000001".to_owned(),
            account_id: 1,
            name: "k".to_owned(),
            prefix: "abcdef".to_owned(),
            hash: [7; HASH_BYTES],
            created_at: 0,
            last_used_at: None,
            expires_at: None,
            status: KeyStatus::Active,
            settings: " ".repeat(settings_bytes),
        })
    }

    /// Only rows were counted: 10,000 changes of one key with long settings made a copy of 600 MiB.
    #[test]
    fn a_copy_is_written_anew_before_changes_of_long_rows_fill_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path());
        let copy = CopyWriter::create(&path, &HashKey::from_bytes([1; HASH_BYTES])).unwrap();
        let mut copy = copy.replace_old().unwrap();
        let row = key(60_000);
        let mut rows = 0;
        while !copy.is_long() {
            copy.append(std::slice::from_ref(&row)).unwrap();
            rows += 1;
        }
        let bytes = fs::metadata(&copy.sync().unwrap().path).unwrap().len();
        assert!(rows < 300 && bytes < CHANGED_BYTES_MAX + (128 << 10), "{rows} rows, {bytes} bytes");
    }

    #[test]
    fn a_copy_of_short_rows_may_get_as_many_changes_as_it_has_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path());
        let mut copy = CopyWriter::create(&path, &HashKey::from_bytes([1; HASH_BYTES])).unwrap();
        let rows = vec![key(2); CHANGED_ROWS_MAX as usize + 1];
        copy.append(&rows).unwrap();
        let mut copy = copy.replace_old().unwrap();
        copy.append(&rows).unwrap();
        assert!(!copy.is_long());
        copy.append(&rows[..1]).unwrap();
        assert!(copy.is_long());
    }
}
