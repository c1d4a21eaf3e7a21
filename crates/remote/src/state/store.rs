//! Accounts, storage slots and code that were proven. What a root or a hash commits to is true for ever, so nothing here is
//! dropped but for want of room.

use std::sync::Arc;

use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_primitives::{Address, B256, U256};
use archive::ContractCode;
use foldhash::quality::RandomState;
use nodes::proven::{AccountProof, ProvenAccount};
use quick_cache::Weighter;
use quick_cache::sync::Cache as Store;

/// Bytes of a cached account or slot: the key, the value, and their slots in the table.
const ENTRY_BYTES: u64 = 256;

/// Code takes twice its size in memory: as it is, and with the places that it may jump to.
const CODE_BYTES_FACTOR: u64 = 2;

/// Proven parts of the state in the cache.
pub(super) struct StateStore {
    parts: Store<StateKey, StatePart, StatePartWeight, RandomState>,
    is_on: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum StateKey {
    Header(B256),
    Account { state_root: B256, address: Address },
    Slot { storage_root: B256, slot: B256 },
    Code(B256),
}

#[derive(Clone)]
pub(super) enum StatePart {
    Header(Arc<Header>),
    Account(Option<ProvenAccount>),
    Slot(U256),
    Code(ContractCode),
}

#[derive(Clone)]
struct StatePartWeight;

impl Weighter<StateKey, StatePart> for StatePartWeight {
    fn weight(&self, _: &StateKey, part: &StatePart) -> u64 {
        let bytes = match part {
            StatePart::Header(_) => size_of::<Header>() as u64,
            StatePart::Account(_) | StatePart::Slot(_) => 0,
            StatePart::Code(code) => CODE_BYTES_FACTOR * code.bytes().len() as u64,
        };
        ENTRY_BYTES + bytes
    }
}

/// An account and slots of it in the state with this root.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct AccountKey {
    pub(super) state_root: B256,
    pub(super) address: Address,
    pub(super) slots: Vec<B256>,
}

impl StateStore {
    /// Caches nothing where `bytes_max` is 0.
    pub(super) fn new(bytes_max: u64) -> Self {
        let entries = usize::try_from(bytes_max / ENTRY_BYTES).unwrap_or(usize::MAX).clamp(16, 1 << 20);
        // The hasher is keyed: callers choose what is looked up here.
        let parts =
            Store::with(entries, bytes_max, StatePartWeight, RandomState::default(), Default::default());
        Self { parts, is_on: bytes_max > 0 }
    }

    pub(super) fn account(&self, state_root: B256, address: Address) -> Option<Option<ProvenAccount>> {
        match self.parts.get(&StateKey::Account { state_root, address }) {
            Some(StatePart::Account(account)) => Some(account),
            _ => None,
        }
    }

    /// A slot of an account that is known. One without storage needs no proof.
    pub(super) fn slot(&self, account: Option<ProvenAccount>, slot: B256) -> Option<U256> {
        let storage_root = account.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
        if storage_root == EMPTY_ROOT_HASH {
            return Some(U256::ZERO);
        }
        match self.parts.get(&StateKey::Slot { storage_root, slot }) {
            Some(StatePart::Slot(value)) => Some(value),
            _ => None,
        }
    }

    pub(super) fn code(&self, hash: B256) -> Option<ContractCode> {
        match self.parts.get(&StateKey::Code(hash)) {
            Some(StatePart::Code(code)) => Some(code),
            _ => None,
        }
    }

    pub(super) fn header(&self, hash: B256) -> Option<Arc<Header>> {
        match self.parts.get(&StateKey::Header(hash)) {
            Some(StatePart::Header(header)) => Some(header),
            _ => None,
        }
    }

    /// An account with all of these slots, if all of it is known.
    pub(super) fn whole(&self, state_root: B256, address: Address, slots: &[B256]) -> Option<AccountProof> {
        let account = self.account(state_root, address)?;
        let slots = slots.iter().map(|slot| self.slot(account, *slot)).collect::<Option<_>>()?;
        Some(AccountProof { account, slots })
    }

    pub(super) fn insert(&self, key: StateKey, part: StatePart) {
        if self.is_on {
            self.parts.insert(key, part);
        }
    }

    pub(super) fn insert_proof(&self, key: &AccountKey, proof: &AccountProof) {
        let (state_root, address) = (key.state_root, key.address);
        self.insert(StateKey::Account { state_root, address }, StatePart::Account(proof.account));
        let Some(account) = proof.account else { return };
        for (slot, value) in key.slots.iter().zip(&proof.slots) {
            let storage_root = account.storage_root;
            self.insert(StateKey::Slot { storage_root, slot: *slot }, StatePart::Slot(*value));
        }
    }
}
