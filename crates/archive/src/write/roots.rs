//! State roots over the stored tries: a block costs what it changes.

use crate::{
    execute::RootAfter,
    read::account_as_of,
    rows::AccountRow,
    state::{AccountChange, StateChanges},
    store::StoreError,
    trie::{NodeSource, Trie, TrieError, node_key, storage_trie_range},
};
use alloy_primitives::{
    Address, B256, U256, keccak256,
    map::{AddressMap, B256Map, B256Set},
};
use alloy_rlp::Encodable;
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles, TrieAccount};
use redb::{ReadableTable, Table};

/// Nodes that may stay loaded between two commits. At about 200 bytes each this is some 100 MB.
const LOADED_NODES_MAX: usize = 500_000;

/// Levels of the account trie that stay loaded when the rest is forgotten: what every block goes through.
const ACCOUNT_LEVELS_LOADED: usize = 4;

/// The tries as the last good block left them, as far as they are loaded.
#[derive(Debug)]
pub(crate) struct Tries {
    accounts: Trie,
    storage: B256Map<Trie>,
    /// Owners whose stored rows are void: their storage was wiped since the last flush.
    wiped: B256Set,
}

impl Tries {
    pub(crate) fn with_root(root: B256) -> Self {
        Self { accounts: Trie::with_root(root), storage: B256Map::default(), wiped: B256Set::default() }
    }

    /// Begins a block. What it changes is seen by nobody until [`Self::accept`].
    pub(crate) fn begin<'a, N, A>(&'a self, nodes: &'a N, accounts: &'a A) -> BlockTries<'a, N, A> {
        BlockTries { before: self, nodes, rows: accounts, changed: ChangedTries::on(self.accounts.clone()) }
    }

    /// Takes over what a good block changed.
    pub(crate) fn accept(&mut self, changed: ChangedTries) {
        self.accounts = changed.accounts;
        self.storage.extend(changed.storage);
        self.wiped.extend(changed.wiped);
    }

    /// Writes what has changed since the last flush.
    pub(crate) fn flush(
        &mut self,
        nodes: &mut Table<'_, &'static [u8], &'static [u8]>,
    ) -> Result<(), StoreError> {
        for owner in self.wiped.drain() {
            let (from, to) = storage_trie_range(&owner);
            nodes.retain_in(from.as_slice()..to.as_slice(), |_, _| false)?;
        }
        for (owner, trie) in &mut self.storage {
            trie.flush(&mut |path, node| write_node(nodes, Some(owner), path, node))?;
        }
        self.accounts.flush(&mut |path, node| write_node(nodes, None, path, node))?;
        self.forget_if_large();
        Ok(())
    }

    fn forget_if_large(&mut self) {
        let loaded: usize =
            self.storage.values().map(Trie::loaded_nodes).sum::<usize>() + self.accounts.loaded_nodes();
        if loaded > LOADED_NODES_MAX {
            self.storage.clear();
            self.accounts.forget(ACCOUNT_LEVELS_LOADED);
        }
    }
}

fn write_node(
    nodes: &mut Table<'_, &'static [u8], &'static [u8]>,
    owner: Option<&B256>,
    path: &Nibbles,
    node: Option<&[u8]>,
) -> Result<(), StoreError> {
    let key = node_key(owner, path);
    match node {
        Some(node) => nodes.insert(key.as_slice(), node)?,
        None => nodes.remove(key.as_slice())?,
    };
    Ok(())
}

/// The changes of a block in the tries.
#[derive(Debug)]
pub(crate) struct ChangedTries {
    accounts: Trie,
    storage: B256Map<Trie>,
    wiped: B256Set,
    /// The storage roots of the accounts that changed; that of nothing for those that are gone.
    pub(crate) storage_roots: AddressMap<B256>,
}

impl ChangedTries {
    fn on(accounts: Trie) -> Self {
        Self {
            accounts,
            storage: B256Map::default(),
            wiped: B256Set::default(),
            storage_roots: AddressMap::default(),
        }
    }
}

/// The tries while a block is being proven.
#[derive(Debug)]
pub(crate) struct BlockTries<'a, N, A> {
    before: &'a Tries,
    nodes: &'a N,
    rows: &'a A,
    changed: ChangedTries,
}

impl<N, A> BlockTries<'_, N, A>
where
    N: ReadableTable<&'static [u8], &'static [u8]>,
    A: ReadableTable<&'static [u8; 28], &'static [u8]>,
{
    pub(crate) fn finish(self) -> ChangedTries {
        self.changed
    }

    fn apply(&mut self, address: Address, change: &AccountChange) -> Result<(), StoreError> {
        let owner = keccak256(address);
        if change.wiped {
            self.changed.wiped.insert(owner);
            self.changed.storage.insert(owner, Trie::empty());
            self.changed.storage_roots.insert(address, EMPTY_ROOT_HASH);
        }
        let nodes = StoredNodes { nodes: self.nodes, owner: None };
        let Some(account) = change.account else {
            // An account that is created at this address later in the block has no storage.
            self.changed.storage_roots.insert(address, EMPTY_ROOT_HASH);
            return Ok(self.changed.accounts.remove(owner, &nodes)?);
        };
        let storage_root = self.storage_root(address, owner, change)?;
        self.changed.storage_roots.insert(address, storage_root);
        let leaf = TrieAccount {
            nonce: account.nonce,
            balance: account.balance,
            storage_root,
            code_hash: account.code_hash,
        };
        Ok(self.changed.accounts.insert(owner, &alloy_rlp::encode(leaf), &nodes)?)
    }

    fn storage_root(
        &mut self,
        address: Address,
        owner: B256,
        change: &AccountChange,
    ) -> Result<B256, StoreError> {
        let before = match self.changed.storage_roots.get(&address) {
            Some(root) => *root,
            None => self.stored_root(address, &owner)?,
        };
        if change.storage.is_empty() {
            return Ok(before);
        }
        let nodes = StoredNodes { nodes: self.nodes, owner: Some(&owner) };
        let trie = self.changed.storage.entry(owner).or_insert_with(|| {
            self.before.storage.get(&owner).cloned().unwrap_or_else(|| Trie::with_root(before))
        });
        write_slots(trie, change, &nodes)?;
        Ok(trie.root())
    }

    /// The storage root before the block.
    fn stored_root(&self, address: Address, owner: &B256) -> Result<B256, StoreError> {
        if let Some(trie) = self.before.storage.get(owner) {
            return Ok(trie.clone().root());
        }
        let row: Option<AccountRow> = account_as_of(self.rows, address, u64::MAX)?;
        Ok(row.map_or(EMPTY_ROOT_HASH, |row| row.storage_root))
    }
}

fn write_slots<N>(trie: &mut Trie, change: &AccountChange, nodes: &N) -> Result<(), StoreError>
where
    N: NodeSource<Error = StoreError>,
{
    let mut value_rlp = Vec::with_capacity(33);
    for (slot, value) in &change.storage {
        let key = keccak256(slot.to_be_bytes::<32>());
        if value.is_zero() {
            trie.remove(key, nodes)?;
        } else {
            value_rlp.clear();
            U256::encode(value, &mut value_rlp);
            trie.insert(key, &value_rlp, nodes)?;
        }
    }
    Ok(())
}

impl<N, A> RootAfter for BlockTries<'_, N, A>
where
    N: ReadableTable<&'static [u8], &'static [u8]>,
    A: ReadableTable<&'static [u8; 28], &'static [u8]>,
{
    type Error = StoreError;

    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, StoreError> {
        for (address, change) in &changes.accounts {
            self.apply(*address, change)?;
        }
        Ok(self.changed.accounts.root())
    }
}

/// The stored nodes of one trie.
struct StoredNodes<'a, N> {
    nodes: &'a N,
    owner: Option<&'a B256>,
}

impl<N: ReadableTable<&'static [u8], &'static [u8]>> NodeSource for StoredNodes<'_, N> {
    type Error = StoreError;

    fn node<T>(&self, path: &Nibbles, read: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, StoreError> {
        let key = node_key(self.owner, path);
        Ok(self.nodes.get(key.as_slice())?.map(|node| read(node.value())))
    }
}

impl From<TrieError<StoreError>> for StoreError {
    fn from(cause: TrieError<StoreError>) -> Self {
        match cause {
            TrieError::Source { source, .. } => source,
            damaged => Self::Trie(damaged.to_string()),
        }
    }
}
