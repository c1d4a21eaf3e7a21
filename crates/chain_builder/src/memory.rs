//! A whole state in memory, whose root is computed over all of it.
//!
//! The root deliberately knows nothing of the archive's incremental tries: two computations that share no code
//! can be compared. It remembers only results that hashing would repeat: hashed keys, and the storage roots of
//! accounts that nobody wrote to.

use alloy_genesis::Genesis;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use alloy_trie::{
    EMPTY_ROOT_HASH, TrieAccount,
    root::{state_root, storage_root},
};
use archive::{AccountChange, AccountState, Bytecode, RootAfter, StateChanges, StateSource};
use std::{collections::BTreeMap, convert::Infallible};

/// Every account, slot and code of a chain as they stand after its newest block.
#[derive(Debug, Clone, Default)]
pub struct MemoryState {
    accounts: BTreeMap<Address, StoredAccount>,
    code: BTreeMap<B256, Bytecode>,
    block_hashes: BTreeMap<u64, B256>,
    hashed: HashedState,
}

/// An account with its storage; slots that are zero are not kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredAccount {
    /// The account itself.
    pub account: AccountState,
    /// Its slots that are not zero.
    pub storage: BTreeMap<U256, U256>,
}

impl MemoryState {
    /// The state that a genesis allocates.
    pub fn from_genesis(genesis: &Genesis) -> Self {
        let mut state = Self::default();
        state.apply(&allocated(genesis));
        state
    }

    /// Applies the changes of a block.
    pub fn apply(&mut self, changes: &StateChanges) {
        let mut trial = self.trial();
        trial.apply(changes);
        let touched = trial.into_touched();
        self.accept(changes, touched);
    }

    /// Applies the changes of a block whose trial touched these accounts.
    pub(super) fn accept(&mut self, changes: &StateChanges, touched: Touched) {
        self.hashed.accept(touched);
        for (address, change) in &changes.accounts {
            let Some(account) = change.account else {
                self.accounts.remove(address);
                continue;
            };
            let stored = self.accounts.entry(*address).or_default();
            stored.account = account;
            write_slots(&mut stored.storage, change, |slot| slot);
        }
        self.code.extend(changes.code.iter().map(|(hash, code)| (*hash, code.clone())));
    }

    /// Remembers the hash of a block, which later blocks can ask for.
    pub fn add_block_hash(&mut self, number: u64, hash: B256) {
        self.block_hashes.insert(number, hash);
    }

    /// The state root.
    pub fn root(&self) -> B256 {
        self.hashed.trial().root()
    }

    /// Every account, in address order.
    pub fn accounts(&self) -> &BTreeMap<Address, StoredAccount> {
        &self.accounts
    }

    /// An account, if it exists.
    pub fn account(&self, address: Address) -> Option<AccountState> {
        self.accounts.get(&address).map(|stored| stored.account)
    }

    /// The value of a storage slot.
    pub fn storage(&self, address: Address, slot: U256) -> U256 {
        let stored = self.accounts.get(&address);
        stored.and_then(|stored| stored.storage.get(&slot)).copied().unwrap_or_default()
    }

    /// Code by its hash, if any account ever had it.
    pub fn code(&self, hash: B256) -> Option<Bytes> {
        self.code.get(&hash).map(Bytecode::original_bytes)
    }

    /// The roots of a block that is being tried.
    pub(super) fn trial(&self) -> TrialRoots<'_> {
        self.hashed.trial()
    }
}

impl StateSource for MemoryState {
    type Error = Infallible;

    fn account(&self, address: Address) -> Result<Option<AccountState>, Infallible> {
        Ok(Self::account(self, address))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, Infallible> {
        Ok(Self::storage(self, address, slot))
    }

    fn code(&self, hash: B256) -> Result<Bytecode, Infallible> {
        Ok(self.code.get(&hash).cloned().unwrap_or_default())
    }

    fn block_hash(&self, number: u64) -> Result<B256, Infallible> {
        Ok(self.block_hashes.get(&number).copied().unwrap_or_default())
    }
}

/// The accounts of a genesis as changes to nothing.
fn allocated(genesis: &Genesis) -> StateChanges {
    let mut changes = StateChanges::default();
    for (address, allocated) in &genesis.alloc {
        let mut account = AccountState {
            nonce: allocated.nonce.unwrap_or_default(),
            balance: allocated.balance,
            code_hash: KECCAK256_EMPTY,
        };
        if let Some(code) = allocated.non_empty_code() {
            account.code_hash = keccak256(code);
            changes.code.insert(account.code_hash, Bytecode::new_raw(code.clone()));
        }
        let storage = allocated.storage_slots().map(|(slot, value)| (slot.into(), value)).collect();
        changes.accounts.insert(*address, AccountChange { account: Some(account), wiped: false, storage });
    }
    changes
}

fn write_slots<K: Ord>(storage: &mut BTreeMap<K, U256>, change: &AccountChange, key: impl Fn(U256) -> K) {
    if change.wiped {
        storage.clear();
    }
    for (slot, value) in &change.storage {
        if value.is_zero() {
            storage.remove(&key(*slot));
        } else {
            storage.insert(key(*slot), *value);
        }
    }
}

/// The state in the order of its trie.
#[derive(Debug, Clone, Default)]
struct HashedState {
    accounts: BTreeMap<B256, HashedAccount>,
}

#[derive(Debug, Clone)]
pub(super) struct HashedAccount {
    account: AccountState,
    storage: BTreeMap<B256, U256>,
    storage_root: B256,
}

/// Accounts after a block that changed them; `None` for those that it deleted.
pub(super) type Touched = BTreeMap<B256, Option<HashedAccount>>;

impl HashedState {
    fn accept(&mut self, touched: Touched) {
        for (key, hashed) in touched {
            match hashed {
                Some(hashed) => self.accounts.insert(key, hashed),
                None => self.accounts.remove(&key),
            };
        }
    }

    fn trial(&self) -> TrialRoots<'_> {
        TrialRoots { before: self, touched: Touched::new() }
    }
}

impl HashedAccount {
    fn empty() -> Self {
        Self { account: AccountState::default(), storage: BTreeMap::new(), storage_root: EMPTY_ROOT_HASH }
    }

    fn apply(&mut self, account: AccountState, change: &AccountChange) {
        self.account = account;
        if change.wiped || !change.storage.is_empty() {
            write_slots(&mut self.storage, change, |slot| keccak256(slot.to_be_bytes::<32>()));
            self.storage_root = storage_root(self.storage.iter().map(|(slot, value)| (*slot, *value)));
        }
    }

    fn leaf(&self) -> TrieAccount {
        TrieAccount {
            nonce: self.account.nonce,
            balance: self.account.balance,
            storage_root: self.storage_root,
            code_hash: self.account.code_hash,
        }
    }
}

/// The roots while a block is being executed: its changes are on top of the state, which stays as it is.
#[derive(Debug)]
pub(super) struct TrialRoots<'a> {
    before: &'a HashedState,
    touched: Touched,
}

impl TrialRoots<'_> {
    /// The accounts that the block touched, for [`MemoryState::accept`].
    pub(super) fn into_touched(self) -> Touched {
        self.touched
    }

    fn apply(&mut self, changes: &StateChanges) {
        for (address, change) in &changes.accounts {
            let key = keccak256(address);
            let hashed = self.touched.entry(key).or_insert_with(|| self.before.accounts.get(&key).cloned());
            match change.account {
                Some(account) => hashed.get_or_insert_with(HashedAccount::empty).apply(account, change),
                None => *hashed = None,
            }
        }
    }

    fn root(&self) -> B256 {
        let untouched = self.before.accounts.iter().filter(|(key, _)| !self.touched.contains_key(*key));
        let touched = self.touched.iter().filter_map(|(key, hashed)| Some((key, hashed.as_ref()?)));
        let mut leaves: Vec<_> = untouched.chain(touched).collect();
        // Two sorted runs one after the other: this sort merges them in one pass.
        leaves.sort_by_key(|(key, _)| *key);
        state_root(leaves.into_iter().map(|(key, hashed)| (*key, hashed.leaf())))
    }
}

impl RootAfter for TrialRoots<'_> {
    type Error = Infallible;

    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, Infallible> {
        self.apply(changes);
        Ok(self.root())
    }
}
