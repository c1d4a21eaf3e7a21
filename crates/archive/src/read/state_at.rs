//! The state as a block left it: for every read, the newest row that is not newer than that block.

use super::Snapshot;
use crate::{
    rows::{AccountRow, account_key, read_storage_value, storage_key},
    state::{AccountState, StateSource, bytecode},
    store::StoreError,
};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use redb::ReadableTable;
use revm::state::Bytecode;

/// The state as a block left it.
#[derive(Debug, Clone, Copy)]
pub struct StateAt<'a> {
    snapshot: &'a Snapshot,
    number: u64,
}

impl<'a> StateAt<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, number: u64) -> Self {
        Self { snapshot, number }
    }

    /// An account's code; empty where there is none.
    pub fn code_of(&self, address: Address) -> Result<Bytes, StoreError> {
        match self.account(address)? {
            Some(account) => Ok(self.code(account.code_hash)?.original_bytes()),
            None => Ok(Bytes::new()),
        }
    }
}

impl StateSource for StateAt<'_> {
    type Error = StoreError;

    fn account(&self, address: Address) -> Result<Option<AccountState>, StoreError> {
        let cache = &self.snapshot.cached_accounts;
        // A block that is yet to come may still change the account.
        let cached = self.number <= self.snapshot.head;
        if cached && let Some(account) = cache.get(&(address, self.number)) {
            return Ok(account);
        }
        let row = account_as_of(&self.snapshot.accounts, address, self.number)?;
        let account = row.map(|row| row.account);
        if cached {
            cache.insert((address, self.number), account);
        }
        Ok(account)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, StoreError> {
        storage_as_of(&self.snapshot.storage, address, slot, self.number)
    }

    fn code(&self, hash: B256) -> Result<Bytecode, StoreError> {
        let shared = &self.snapshot.shared;
        if let Some(code) = shared.code.get(&hash) {
            return Ok(code);
        }
        let code = code_by_hash(&self.snapshot.code, hash)?;
        shared.code.insert(hash, code.clone());
        Ok(code)
    }

    fn block_hash(&self, number: u64) -> Result<B256, StoreError> {
        // A call with an overridden block number can ask for a block that is not before its own.
        if number >= self.number {
            return Ok(B256::ZERO);
        }
        Ok(self.snapshot.summary(number)?.map_or(B256::ZERO, |summary| summary.hash))
    }
}

/// An account as block `number` left it.
pub(crate) fn account_as_of(
    accounts: &impl ReadableTable<&'static [u8; 28], &'static [u8]>,
    address: Address,
    number: u64,
) -> Result<Option<AccountRow>, StoreError> {
    let mut rows = accounts.range::<&[u8; 28]>(&account_key(address, 0)..=&account_key(address, number))?;
    match rows.next_back() {
        Some(row) => Ok(AccountRow::read(row?.1.value())?),
        None => Ok(None),
    }
}

/// A storage slot as block `number` left it.
pub(crate) fn storage_as_of(
    storage: &impl ReadableTable<&'static [u8; 60], &'static [u8]>,
    address: Address,
    slot: U256,
    number: u64,
) -> Result<U256, StoreError> {
    let mut rows =
        storage.range::<&[u8; 60]>(&storage_key(address, slot, 0)..=&storage_key(address, slot, number))?;
    match rows.next_back() {
        Some(row) => Ok(read_storage_value(row?.1.value())?),
        None => Ok(U256::ZERO),
    }
}

/// Code by its hash, analysed.
pub(crate) fn code_by_hash(
    codes: &impl ReadableTable<&'static [u8; 32], &'static [u8]>,
    hash: B256,
) -> Result<Bytecode, StoreError> {
    if hash == KECCAK256_EMPTY {
        return Ok(Bytecode::default());
    }
    let code = codes.get(&hash.0)?.ok_or(StoreError::MissingRow("a contract's code"))?;
    let code = Bytes::copy_from_slice(code.value());
    Ok(bytecode(code))
}
