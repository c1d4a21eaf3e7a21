//! The changes of a block over the state before it.
//!
//! [`WorkingState`] is what the EVM executes on: it reads through to a [`StateSource`] and keeps every change
//! to itself, so that a block that turns out wrong leaves no trace.

use alloy_primitives::{
    Address, B256, Bytes, KECCAK256_EMPTY, U256,
    map::{AddressMap, B256Map, U256Map},
};
use revm::{
    Database, DatabaseCommit,
    context::DBErrorMarker,
    state::{Account as EvmAccount, AccountInfo, Bytecode},
};
use std::{collections::BTreeMap, fmt};

/// An account without its storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountState {
    /// Number of transactions sent, or contracts created.
    pub nonce: u64,
    /// Wei.
    pub balance: U256,
    /// Hash of the code; of nothing for an account without code.
    pub code_hash: B256,
}

impl Default for AccountState {
    fn default() -> Self {
        Self { nonce: 0, balance: U256::ZERO, code_hash: KECCAK256_EMPTY }
    }
}

impl From<AccountState> for AccountInfo {
    fn from(account: AccountState) -> Self {
        let code = (account.code_hash == KECCAK256_EMPTY).then(Bytecode::default);
        Self {
            balance: account.balance,
            nonce: account.nonce,
            code_hash: account.code_hash,
            account_id: None,
            code,
        }
    }
}

/// Accepts any bytes as code. A malformed delegation, which blocks before London could contain, is run as code, and fails at its
/// first byte.
pub(crate) fn bytecode(code: Bytes) -> Bytecode {
    Bytecode::new_raw_checked(code.clone()).unwrap_or_else(|_| Bytecode::new_legacy(code))
}

/// The state as it stood after some block.
pub trait StateSource {
    type Error: DBErrorMarker;
    fn account(&self, address: Address) -> Result<Option<AccountState>, Self::Error>;
    /// The value of a storage slot; zero where nothing was written.
    fn storage(&self, address: Address, slot: U256) -> Result<U256, Self::Error>;
    /// Code by its hash. Only asked for hashes that an account carries.
    fn code(&self, hash: B256) -> Result<Bytecode, Self::Error>;
    /// The hash of an earlier block of the same chain; zero where there is none.
    fn block_hash(&self, number: u64) -> Result<B256, Self::Error>;
    /// Whether the source has guessed a value. The run then only serves to find out what it reads, and ends soon.
    fn has_guessed(&self) -> bool {
        false
    }
}

impl<S: StateSource> StateSource for &S {
    type Error = S::Error;

    fn account(&self, address: Address) -> Result<Option<AccountState>, Self::Error> {
        S::account(self, address)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, Self::Error> {
        S::storage(self, address, slot)
    }

    fn code(&self, hash: B256) -> Result<Bytecode, Self::Error> {
        S::code(self, hash)
    }

    fn block_hash(&self, number: u64) -> Result<B256, Self::Error> {
        S::block_hash(self, number)
    }

    fn has_guessed(&self) -> bool {
        S::has_guessed(self)
    }
}

/// Net changes to the state, in address and slot order.
#[derive(Debug, Clone, Default)]
pub struct StateChanges {
    pub accounts: BTreeMap<Address, AccountChange>,
    /// Code that accounts now carry and may not have been seen before, by its hash.
    pub code: BTreeMap<B256, Bytecode>,
}

/// The changes of one account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountChange {
    /// The account as it is now; nothing if it is gone.
    pub account: Option<AccountState>,
    /// Whether all storage from before is gone. Comes before [`Self::storage`].
    pub wiped: bool,
    /// The slots that were written, with their new values.
    pub storage: BTreeMap<U256, U256>,
}

impl StateChanges {
    /// Adds changes that happened after these.
    pub fn extend(&mut self, later: Self) {
        for (address, change) in later.accounts {
            let earlier = self.accounts.entry(address).or_default();
            earlier.account = change.account;
            if change.wiped {
                earlier.wiped = true;
                earlier.storage.clear();
            }
            earlier.storage.extend(change.storage);
        }
        self.code.extend(later.code);
    }
}

/// A state that can be executed on: what was there before, and what has changed since.
pub(crate) struct WorkingState<S> {
    source: S,
    known: AddressMap<WorkingAccount>,
    code: B256Map<Bytecode>,
    changes: StateChanges,
}

/// The known part of an account.
#[derive(Debug, Default)]
struct WorkingAccount {
    account: Option<AccountState>,
    /// The account was there before the block, so it may have storage that is not known here.
    in_source: bool,
    /// Changes of it were returned by `take_changes`, so their receiver may hold storage of it.
    reported: bool,
    /// Slots that are not known here are zero, whatever the source says.
    storage_complete: bool,
    storage: U256Map<U256>,
}

impl<S: StateSource> WorkingState<S> {
    /// The state as the source has it.
    pub(crate) fn new(source: S) -> Self {
        Self {
            source,
            known: AddressMap::default(),
            code: B256Map::default(),
            changes: StateChanges::default(),
        }
    }

    /// Returns the changes since the start, or since the last call.
    pub(crate) fn take_changes(&mut self) -> StateChanges {
        std::mem::take(&mut self.changes)
    }

    /// The balance of an account; zero if it does not exist.
    pub(crate) fn balance(&mut self, address: Address) -> Result<U256, S::Error> {
        Ok(self.known(address)?.account.map_or(U256::ZERO, |account| account.balance))
    }

    /// Sets a balance outside of any transaction. The account exists afterwards, unless it is empty and empty
    /// accounts are deleted.
    pub(crate) fn set_balance(
        &mut self,
        address: Address,
        balance: U256,
        delete_empty: bool,
    ) -> Result<(), S::Error> {
        let known = self.known(address)?;
        let account = AccountState { balance, ..known.account.unwrap_or_default() };
        let account = (!delete_empty || account != AccountState::default()).then_some(account);
        if known.account != account {
            known.account = account;
            known.reported = true;
            self.changes.accounts.entry(address).or_default().account = account;
        }
        Ok(())
    }

    fn known(&mut self, address: Address) -> Result<&mut WorkingAccount, S::Error> {
        use alloy_primitives::map::Entry;
        match self.known.entry(address) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(vacant) => {
                let account = self.source.account(address)?;
                let in_source = account.is_some();
                Ok(vacant.insert(WorkingAccount { account, in_source, ..WorkingAccount::default() }))
            }
        }
    }

    fn commit_account(&mut self, address: Address, evm: EvmAccount) {
        if !evm.is_touched() {
            return;
        }
        let gone = evm.is_selfdestructed() || (evm.is_empty() && !evm.is_created());
        let starts_afresh = gone || evm.is_created();
        let account = (!gone).then_some(AccountState {
            nonce: evm.info.nonce,
            balance: evm.info.balance,
            code_hash: evm.info.code_hash,
        });
        self.record_new_code(account, &evm.info);

        let known = self.known.entry(address).or_default();
        let was = std::mem::replace(&mut known.account, account);
        let written: Vec<(U256, U256)> = if gone {
            Vec::new()
        } else {
            evm.changed_storage_slots().map(|(slot, value)| (*slot, value.present_value)).collect()
        };
        let wiped = starts_afresh && (known.in_source || known.reported);
        if was == account && written.is_empty() && !wiped {
            return;
        }
        if starts_afresh {
            known.storage.clear();
            known.storage_complete = true;
        }
        known.storage.extend(written.iter().copied());
        known.reported = true;

        let change = self.changes.accounts.entry(address).or_default();
        change.account = account;
        if wiped {
            change.wiped = true;
            change.storage.clear();
        }
        change.storage.extend(written);
    }

    /// Code comes with an account when it was created, or when it was delegated by EIP-7702.
    fn record_new_code(&mut self, account: Option<AccountState>, info: &AccountInfo) {
        let Some(account) = account.filter(|account| account.code_hash != KECCAK256_EMPTY) else { return };
        let Some(code) = &info.code else { return };
        if self.code.insert(account.code_hash, code.clone()).is_none() {
            self.changes.code.insert(account.code_hash, code.clone());
        }
    }
}

impl<S: StateSource> Database for WorkingState<S> {
    type Error = S::Error;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, Self::Error> {
        Ok(self.known(address)?.account.map(AccountInfo::from))
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode, Self::Error> {
        if let Some(code) = self.code.get(&hash) {
            return Ok(code.clone());
        }
        self.source.code(hash)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, Self::Error> {
        let known = self.known(address)?;
        if let Some(value) = known.storage.get(&slot) {
            return Ok(*value);
        }
        if known.storage_complete || !known.in_source {
            return Ok(U256::ZERO);
        }
        let value = self.source.storage(address, slot)?;
        self.known(address)?.storage.insert(slot, value);
        Ok(value)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, Self::Error> {
        self.source.block_hash(number)
    }
}

impl<S: StateSource> DatabaseCommit for WorkingState<S> {
    fn commit(&mut self, changes: AddressMap<EvmAccount>) {
        for (address, account) in changes {
            self.commit_account(address, account);
        }
    }

    fn commit_iter(&mut self, changes: &mut dyn Iterator<Item = (Address, EvmAccount)>) {
        for (address, account) in changes {
            self.commit_account(address, account);
        }
    }
}

impl<S> fmt::Debug for WorkingState<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkingState").field("changes", &self.changes).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests say what went wrong by failing")]
mod tests;
