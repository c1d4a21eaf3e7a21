//! A state of which only parts are known. A run on it says what it lacks, and is begun again once that is known.

use crate::state::{AccountState, StateSource};
use alloy_primitives::{Address, B256, Bytes, U256, map::B256Map};
use revm::{context::DBErrorMarker, state::Bytecode};
use std::{cell::RefCell, collections::BTreeSet};

/// Unknown slots that one run reads as zero before it is given up. Many calls read one slot after another, whatever the
/// values are, so that all of them are found in one run.
const GUESSED_SLOTS_MAX: usize = 256;

/// The known part of the state after one block. `None` means unknown.
pub trait KnownState {
    /// An account; `Some(None)` if it is known that there is none.
    fn account(&self, address: Address) -> Option<Option<AccountState>>;
    /// The value of a storage slot of an account that is known.
    fn storage(&self, address: Address, slot: U256) -> Option<U256>;
    fn code(&self, hash: B256) -> Option<ContractCode>;
    /// The hash of an earlier block of the same chain.
    fn block_hash(&self, number: u64) -> Option<B256>;
}

/// Code that is ready to run. Copies share it.
#[derive(Debug, Clone)]
pub struct ContractCode(Bytecode);

impl ContractCode {
    /// Any bytes can be code.
    pub fn new(code: Bytes) -> Self {
        Self(crate::state::bytecode(code))
    }

    /// The code as accounts have it.
    pub fn bytes(&self) -> Bytes {
        self.0.original_bytes()
    }
}

/// Parts of a state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateParts {
    pub accounts: BTreeSet<Address>,
    pub slots: BTreeSet<(Address, U256)>,
    /// Code, by an account that has it and by its hash.
    pub code: BTreeSet<(Address, B256)>,
    pub block_hashes: BTreeSet<u64>,
}

impl StateParts {
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
            && self.slots.is_empty()
            && self.code.is_empty()
            && self.block_hashes.is_empty()
    }
}

/// The parts of the state that a run has read.
#[derive(Debug, Default)]
pub struct StateReads {
    /// Parts that were known.
    pub found: StateParts,
    /// Parts that were not known. If there are any, the result of the run is meaningless.
    pub missing: StateParts,
}

/// The state of one block as far as it is known, and what a run reads of it.
///
/// A run ends where an account, code or the hash of a block is missing. A slot that is missing is read as zero, so that the
/// run finds more of what it needs; from then on only slots are recorded as missing, because the guess may lead to code that
/// the real call never reaches.
#[derive(Debug)]
pub struct PartialState<K> {
    known: K,
    reads: RefCell<StateReads>,
    /// An account that has code with this hash.
    code_owners: RefCell<B256Map<Address>>,
}

/// A part of the state that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a part of the state is not known")]
pub struct MissingState;

impl DBErrorMarker for MissingState {}

impl<K: KnownState> PartialState<K> {
    /// A state of which this is known.
    pub fn new(known: K) -> Self {
        Self { known, reads: RefCell::default(), code_owners: RefCell::default() }
    }

    pub fn into_reads(self) -> StateReads {
        self.reads.into_inner()
    }

    /// Notes what is missing, and ends the run.
    fn end<T>(&self, note: impl FnOnce(&mut StateParts)) -> Result<T, MissingState> {
        // After a guess the run may be on a path that real runs never take.
        if !self.has_guessed() {
            note(&mut self.reads.borrow_mut().missing);
        }
        Err(MissingState)
    }
}

impl<K: KnownState> StateSource for PartialState<K> {
    type Error = MissingState;

    fn account(&self, address: Address) -> Result<Option<AccountState>, MissingState> {
        let Some(account) = self.known.account(address) else {
            return self.end(|missing| _ = missing.accounts.insert(address));
        };
        self.reads.borrow_mut().found.accounts.insert(address);
        if let Some(account) = account {
            self.code_owners.borrow_mut().entry(account.code_hash).or_insert(address);
        }
        Ok(account)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, MissingState> {
        let value = self.known.storage(address, slot);
        let StateReads { found, missing } = &mut *self.reads.borrow_mut();
        let Some(value) = value else {
            missing.slots.insert((address, slot));
            return if missing.slots.len() < GUESSED_SLOTS_MAX { Ok(U256::ZERO) } else { Err(MissingState) };
        };
        found.slots.insert((address, slot));
        Ok(value)
    }

    fn code(&self, hash: B256) -> Result<Bytecode, MissingState> {
        let Some(address) = self.code_owners.borrow().get(&hash).copied() else { return Err(MissingState) };
        match self.known.code(hash) {
            Some(code) => {
                self.reads.borrow_mut().found.code.insert((address, hash));
                Ok(code.0)
            }
            None => self.end(|missing| _ = missing.code.insert((address, hash))),
        }
    }

    fn block_hash(&self, number: u64) -> Result<B256, MissingState> {
        match self.known.block_hash(number) {
            Some(hash) => Ok(hash),
            None => self.end(|missing| _ = missing.block_hashes.insert(number)),
        }
    }

    fn has_guessed(&self) -> bool {
        !self.reads.borrow().missing.slots.is_empty()
    }
}

#[cfg(test)]
mod tests;
