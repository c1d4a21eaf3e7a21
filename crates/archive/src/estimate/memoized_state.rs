//! Caches the state that an estimate reads, because each of its runs reads nearly the same.
//!
//! Code is not cached here, because [`call`](crate::call) caches it.

use crate::state::{AccountState, StateSource};
use alloy_primitives::{
    Address, B256, U256,
    map::{AddressMap, HashMap},
};
use revm::state::Bytecode;
use std::{cell::RefCell, collections::BTreeMap, hash::Hash};

/// Entries of one kind that are remembered; what comes after is read each time. A run at the block gas limit of
/// 60 million reads 28,000 slots at most.
const ENTRIES_MAX: usize = 30_000;

/// A source and the values that were read from it.
#[derive(Debug)]
pub(super) struct MemoizedState<S> {
    source: S,
    accounts: RefCell<AddressMap<Option<AccountState>>>,
    storage: RefCell<HashMap<(Address, U256), U256>>,
    block_hashes: RefCell<BTreeMap<u64, B256>>,
}

impl<S> MemoizedState<S> {
    pub(super) fn new(source: S) -> Self {
        Self {
            source,
            accounts: RefCell::default(),
            storage: RefCell::default(),
            block_hashes: RefCell::default(),
        }
    }
}

impl<S: StateSource> StateSource for MemoizedState<S> {
    type Error = S::Error;

    fn account(&self, address: Address) -> Result<Option<AccountState>, Self::Error> {
        remember(&mut self.accounts.borrow_mut(), address, || self.source.account(address))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, Self::Error> {
        let key = (address, slot);
        remember(&mut self.storage.borrow_mut(), key, || self.source.storage(address, slot))
    }

    fn code(&self, hash: B256) -> Result<Bytecode, Self::Error> {
        self.source.code(hash)
    }

    fn block_hash(&self, number: u64) -> Result<B256, Self::Error> {
        let mut known = self.block_hashes.borrow_mut();
        if let Some(hash) = known.get(&number) {
            return Ok(*hash);
        }
        let hash = self.source.block_hash(number)?;
        known.insert(number, hash);
        Ok(hash)
    }

    fn has_guessed(&self) -> bool {
        self.source.has_guessed()
    }
}

fn remember<K, V, H, E>(
    known: &mut std::collections::HashMap<K, V, H>,
    key: K,
    read: impl FnOnce() -> Result<V, E>,
) -> Result<V, E>
where
    K: Eq + Hash,
    V: Copy,
    H: std::hash::BuildHasher,
{
    if let Some(value) = known.get(&key) {
        return Ok(*value);
    }
    let value = read()?;
    if known.len() < ENTRIES_MAX {
        known.insert(key, value);
    }
    Ok(value)
}
