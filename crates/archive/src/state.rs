//! What a block changes, over what was there before.
//!
//! [`WorkingState`] is what the EVM executes on: it reads through to a [`StateSource`] and keeps every change
//! to itself, so that a block that turns out wrong leaves no trace.

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, map::AddressMap};
use revm::{
    Database, DatabaseCommit,
    context::DBErrorMarker,
    database_interface::DatabaseRef,
    state::{Account as EvmAccount, AccountInfo, Bytecode, EvmStorageSlot},
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
};

/// An account without its storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Number of transactions sent, or contracts created.
    pub nonce: u64,
    /// Wei.
    pub balance: U256,
    /// Hash of the code; of nothing for an account without code.
    pub code_hash: B256,
}

/// The state as it stood after some block.
pub trait StateSource {
    /// What can go wrong when reading.
    type Error: DBErrorMarker;
    /// An account, if it exists.
    fn account(&self, address: Address) -> Result<Option<Account>, Self::Error>;
    /// The value of a storage slot; zero where nothing was written.
    fn storage(&self, address: Address, slot: U256) -> Result<U256, Self::Error>;
    /// Code by its hash. Only asked for hashes that an account carries.
    fn code(&self, hash: B256) -> Result<Bytecode, Self::Error>;
    /// The hash of an earlier block of the same chain; zero where there is none.
    fn block_hash(&self, number: u64) -> Result<B256, Self::Error>;
}
