//! The columns of a row as every statement selects them.

use sqlx::{FromRow, Row};

use crate::failure::StoreFailure;
use crate::hash_key::HASH_BYTES;
use crate::records::{AccountRecord, AccountStatus, KeyRecord, KeyStatus, RowPosition};

/// The columns of an account as every statement selects them.
#[derive(Debug)]
pub(crate) struct AccountColumns {
    row: AccountRecord,
    revision: i64,
}

impl AccountColumns {
    pub(crate) fn into_row_at(self) -> (RowPosition<i64>, AccountRecord) {
        (RowPosition { revision: self.revision, id: self.row.id }, self.row)
    }
}

impl<'r, R: Row> FromRow<'r, R> for AccountColumns
where
    (i64, String, String, String, i64, i64): FromRow<'r, R>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        let (id, name, plan, status, created_at, revision): (i64, String, String, String, i64, i64) =
            FromRow::from_row(row)?;
        let status = AccountStatus::named(&status);
        Ok(Self { row: AccountRecord { id, name, plan, status, created_at }, revision })
    }
}

/// The columns of a key as every statement selects them.
#[derive(Debug)]
pub(crate) struct KeyColumns {
    names: (String, i64, String, String),
    hash: Vec<u8>,
    times: (i64, Option<i64>, Option<i64>),
    status: String,
    settings: String,
    revision: i64,
}

type KeyTuple = (String, i64, String, String, Vec<u8>, i64, Option<i64>, Option<i64>, String, String, i64);

impl KeyColumns {
    pub(crate) fn into_row_at(self) -> Result<(RowPosition<String>, KeyRecord), StoreFailure> {
        let (id, account_id, name, prefix) = self.names;
        let (created_at, last_used_at, expires_at) = self.times;
        let position = RowPosition { revision: self.revision, id: id.clone() };
        let row = KeyRecord {
            id,
            account_id,
            name,
            prefix,
            hash: hash_bytes(self.hash)?,
            created_at,
            last_used_at,
            expires_at,
            status: KeyStatus::named(&self.status),
            settings: self.settings,
        };
        Ok((position, row))
    }
}

impl<'r, R: Row> FromRow<'r, R> for KeyColumns
where
    KeyTuple: FromRow<'r, R>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        let (
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
            revision,
        ): KeyTuple = FromRow::from_row(row)?;
        let (names, times) = ((id, account_id, name, prefix), (created_at, last_used_at, expires_at));
        Ok(Self { names, hash, times, status, settings, revision })
    }
}

/// Whether a row can have this text: PostgreSQL refuses the character NUL.
pub(crate) fn is_storable(text: &str) -> bool {
    !text.contains('\0')
}

/// The bytes of a hash, whose length the tables guarantee.
pub(crate) fn hash_bytes(bytes: Vec<u8>) -> Result<[u8; HASH_BYTES], StoreFailure> {
    bytes.try_into().map_err(|_| StoreFailure::Refused("a hash has the wrong length".to_owned()))
}
