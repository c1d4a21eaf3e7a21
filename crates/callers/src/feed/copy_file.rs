//! The file of the local copy: one record after another, each with a checksum.
//!
//! Like the store it has keyed hashes, never keys or secrets, and only the owner can read it. It begins with all keys and their
//! accounts, and goes on with changed ones. The newest time in it tells how old it is.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use store::{AccountRecord, AccountStatus, HASH_BYTES, HashKey, KeyRecord, KeyStatus};
use twox_hash::XxHash3_64;

use super::apply::{RowApplier, RowSource, StoredRow};
use crate::account::Account;
use crate::api_key::ApiKey;
use crate::policy::{COPY_BATCH_ROWS, COPY_CHANGED_BYTES_MAX, COPY_CHANGED_ROWS_MAX};
use crate::stored_keys::StoredKeys;

const FILE_NAME: &str = "callers.copy";

/// The first bytes of the file; the number is the version of its format. Copies of version 1 do not tell how old they are.
const HEADER: &[u8] = b"chaingate callers copy 2\n";

/// A longer record can only be damage: settings have at most 64 KiB, which escaping can at most multiply by six.
const RECORD_BYTES_MAX: usize = 512 << 10;

/// Bytes before the payload of a record: its length twice, and its checksum.
const RECORD_HEAD_BYTES: usize = 16;

/// One record of the file.
#[derive(Debug, Serialize, Deserialize)]
enum CopyRecord {
    HashKey(String),
    /// Seconds since 1970 at which the records before this one were what the store said.
    FollowedAt(i64),
    /// Id, name, plan, whether it is suspended.
    Account(i64, String, String, bool),
    /// Id, account, name, hash, expiry, settings.
    Key(String, i64, String, String, Option<i64>, Option<String>),
    /// The hash of a key that is no longer valid.
    Removed(String),
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

/// The copy, open for more records.
#[derive(Debug)]
pub(super) struct CopyFile {
    file: BufWriter<File>,
    /// The size of the file when it was made.
    first: CopySize,
    /// The size of the records that were added since.
    changed: CopySize,
}

/// The size of a part of the copy.
#[derive(Clone, Copy, Debug, Default)]
struct CopySize {
    rows: u64,
    bytes: u64,
}

impl CopyFile {
    /// Writes all keys and their accounts beside the old file, and puts the new file in its place.
    pub(super) fn create(path: &Path, keys: &StoredKeys, followed_at: i64) -> io::Result<Self> {
        let temporary = temporary_path(path);
        let mut options = OpenOptions::new();
        let file = options.create(true).write(true).truncate(true).mode(0o600).open(&temporary)?;
        let (first, changed) = (CopySize::default(), CopySize::default());
        let mut copy = Self { file: BufWriter::new(file), first, changed };
        copy.file.write_all(HEADER)?;
        copy.append(&CopyRecord::HashKey(const_hex::encode(keys.hash_key().bytes())))?;
        let mut accounts = HashSet::new();
        let mut written = Ok(());
        keys.each(|key| {
            if written.is_ok() {
                written = copy.append_new(key, &mut accounts);
            }
        });
        written?;
        copy.append_time(followed_at)?;
        copy.sync()?;
        fs::rename(temporary, path)?;
        copy.first = std::mem::take(&mut copy.changed);
        Ok(copy)
    }

    fn append_new(&mut self, key: &ApiKey, accounts: &mut HashSet<i64>) -> io::Result<()> {
        if key.account.stored_id.is_some_and(|id| accounts.insert(id)) {
            self.append_account(&key.account)?;
        }
        self.append_key(key)
    }

    pub(super) fn append_account(&mut self, account: &Account) -> io::Result<()> {
        let Some(id) = account.stored_id else { return Ok(()) };
        let (name, plan) = (account.name.clone(), account.plan().name.clone());
        self.append(&CopyRecord::Account(id, name, plan, account.is_suspended()))
    }

    pub(super) fn append_key(&mut self, key: &ApiKey) -> io::Result<()> {
        let Some(account) = key.account.stored_id else { return Ok(()) };
        self.append(&CopyRecord::Key(
            key.id.to_string(),
            account,
            key.name.to_string(),
            const_hex::encode(key.hash),
            key.expires_at,
            key.stored_settings.as_deref().map(str::to_owned),
        ))
    }

    /// Adds that the key with this hash is no longer valid.
    pub(super) fn append_removed(&mut self, hash: &[u8; HASH_BYTES]) -> io::Result<()> {
        self.append(&CopyRecord::Removed(const_hex::encode(hash)))
    }

    pub(super) fn append_time(&mut self, followed_at: i64) -> io::Result<()> {
        self.append(&CopyRecord::FollowedAt(followed_at))
    }

    fn append(&mut self, record: &CopyRecord) -> io::Result<()> {
        self.changed.bytes += write_record(&mut self.file, record)?;
        self.changed.rows += 1;
        Ok(())
    }

    /// Waits until the disk has everything.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_data()
    }

    /// Whether a new file would be shorter.
    pub(super) fn is_long(&self) -> bool {
        self.changed.rows > self.first.rows.max(COPY_CHANGED_ROWS_MAX)
            || self.changed.bytes > self.first.bytes.max(COPY_CHANGED_BYTES_MAX)
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

/// Gives a load the rows of the copy, and returns when the copy was last what the store said. `None`: there is no copy.
///
/// The caller finishes the load or gives it up.
pub(super) fn read_copy(path: &Path, applier: &mut RowApplier) -> io::Result<Option<i64>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
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
    let (mut rows, mut followed_at) = (Vec::with_capacity(COPY_BATCH_ROWS), None);
    while let Some(record) = read_record(&mut file)? {
        match record {
            CopyRecord::HashKey(_) => return Err(damaged("two hash keys")),
            CopyRecord::FollowedAt(at) => followed_at = Some(at),
            CopyRecord::Account(id, name, plan, is_suspended) => {
                let status = if is_suspended { AccountStatus::Suspended } else { AccountStatus::Active };
                rows.push(StoredRow::Account(AccountRecord { id, name, plan, status, created_at: 0 }));
            }
            CopyRecord::Key(id, account, name, hash, expires_at, settings) => {
                let settings = settings.unwrap_or_else(|| "{}".to_owned());
                let hash = bytes_of(&hash)?;
                let row = KeyRecord { expires_at, settings, ..key_row(id, account, name, hash) };
                rows.push(StoredRow::Key(row));
            }
            CopyRecord::Removed(hash) => {
                let row = key_row(String::new(), 0, String::new(), bytes_of(&hash)?);
                rows.push(StoredRow::Key(KeyRecord { status: KeyStatus::Revoked, ..row }));
            }
        }
        if rows.len() == COPY_BATCH_ROWS {
            applier.apply(std::mem::take(&mut rows), RowSource::Load);
        }
    }
    applier.apply(rows, RowSource::Load);
    // A copy is put in its place only when it has a time.
    followed_at.map(Some).ok_or_else(|| damaged("no time"))
}

/// A valid key without what only the store has.
fn key_row(id: String, account_id: i64, name: String, hash: [u8; HASH_BYTES]) -> KeyRecord {
    KeyRecord {
        id,
        account_id,
        name,
        prefix: String::new(),
        hash,
        created_at: 0,
        last_used_at: None,
        expires_at: None,
        status: KeyStatus::Active,
        settings: String::new(),
    }
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
    use std::sync::Arc;

    use super::*;
    use crate::plans::Plans;
    use crate::stored_keys::StoredKeysBuilder;

    fn key(settings_bytes: usize) -> ApiKey {
        let row = key_row("k_000000000001".to_owned(), 1, "k".to_owned(), [7; HASH_BYTES]);
        let plan = Plans::default().named("core").unwrap().clone();
        let account = Arc::new(Account::stored(1, "acme".to_owned(), plan));
        ApiKey::stored(&KeyRecord { settings: " ".repeat(settings_bytes), ..row }, account, None)
    }

    fn empty_copy(folder: &Path) -> CopyFile {
        let keys = StoredKeysBuilder::new(HashKey::from_bytes([1; HASH_BYTES])).build();
        CopyFile::create(&path(folder), &keys, 0).unwrap()
    }

    /// Only rows were counted: 10,000 changes of one key with long settings made a copy of 600 MiB.
    #[test]
    fn a_copy_is_written_anew_before_changes_of_long_rows_fill_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (mut copy, key, mut rows) = (empty_copy(folder.path()), key(60_000), 0);
        while !copy.is_long() {
            copy.append_key(&key).unwrap();
            rows += 1;
        }
        copy.sync().unwrap();
        let bytes = fs::metadata(path(folder.path())).unwrap().len();
        assert!(rows < 300 && bytes < COPY_CHANGED_BYTES_MAX + (128 << 10), "{rows} rows, {bytes} bytes");
    }

    #[test]
    fn a_copy_of_short_rows_may_get_ten_thousand_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (mut copy, key) = (empty_copy(folder.path()), key(2));
        for _ in 0..COPY_CHANGED_ROWS_MAX {
            copy.append_key(&key).unwrap();
        }
        assert!(!copy.is_long());
        copy.append_key(&key).unwrap();
        assert!(copy.is_long());
    }
}
