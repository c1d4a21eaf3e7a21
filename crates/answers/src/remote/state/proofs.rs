//! Accounts, storage slots and code, fetched from nodes with their proofs and kept. What a root or a hash commits to is true
//! for ever, so that nothing here is ever dropped for another reason than room.

use std::sync::Arc;

use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_primitives::{Address, B256, U256};
use archive::ContractCode;
use bytes::Bytes;
use foldhash::quality::RandomState;
use methods::BlockRef;
use nodes::proven::{AccountProof, ProvenAccount, prove_code, prove_header};
use nodes::{NotFetched, Supplier};
use quick_cache::Weighter;
use quick_cache::sync::Cache as Store;
use resources::AccountId;

use crate::failure::Failure;
use crate::flights::Flights;
use crate::remote::asking::Asking;
use crate::remote::{Remote, encode};

/// What it takes to keep an account or a slot: the key, the value, and their place in the table.
const ENTRY_BYTES: u64 = 256;

/// Code is kept twice its size: as it is, and with the places that it may jump to.
const CODE_BYTES_FACTOR: u64 = 2;

/// Everything that was proven of the state of any block.
pub(in crate::remote) struct ProvenState {
    pub(super) parts: Arc<StateStore>,
    headers: Flights<Fetch<B256>, Arc<Header>>,
    accounts: Flights<Fetch<AccountKey>, Arc<AccountProof>>,
    code: Flights<Fetch<B256>, ContractCode>,
}

/// What is kept of it.
pub(super) struct StateStore {
    parts: Store<StateKey, StatePart, PartWeight, RandomState>,
    is_on: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum StateKey {
    Header(B256),
    Account { state_root: B256, address: Address },
    Slot { storage_root: B256, slot: B256 },
    Code(B256),
}

#[derive(Clone)]
enum StatePart {
    Header(Arc<Header>),
    Account(Option<ProvenAccount>),
    Slot(U256),
    Code(ContractCode),
}

#[derive(Clone)]
struct PartWeight;

impl Weighter<StateKey, StatePart> for PartWeight {
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
struct AccountKey {
    state_root: B256,
    address: Address,
    slots: Vec<B256>,
}

/// Which fetches are one, and who pays for the proof. In the blocks of the window all accounts share what they fetch; below
/// it each fetches in its own share of the threads, because there is no end of blocks.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Fetch<K> {
    account: Option<AccountId>,
    supplier: Supplier,
    key: K,
}

impl<K> Fetch<K> {
    fn of(asking: Asking<'_>, block: BlockRef, key: K) -> Self {
        let is_deep = block.number < asking.canon.lowest();
        Self { account: is_deep.then_some(asking.account), supplier: asking.supplier, key }
    }

    fn pays(&self) -> AccountId {
        self.account.unwrap_or(AccountId::NONE)
    }
}

impl ProvenState {
    /// Keeps nothing where `bytes_max` is 0.
    pub(in crate::remote) fn new(bytes_max: u64) -> Self {
        let entries = usize::try_from(bytes_max / ENTRY_BYTES).unwrap_or(usize::MAX).clamp(16, 1 << 20);
        // The hasher is keyed: callers choose what is looked up here.
        let parts = Store::with(entries, bytes_max, PartWeight, RandomState::default(), Default::default());
        Self {
            parts: Arc::new(StateStore { parts, is_on: bytes_max > 0 }),
            headers: Flights::default(),
            accounts: Flights::default(),
            code: Flights::default(),
        }
    }
}

impl StateStore {
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

    fn header(&self, hash: B256) -> Option<Arc<Header>> {
        match self.parts.get(&StateKey::Header(hash)) {
            Some(StatePart::Header(header)) => Some(header),
            _ => None,
        }
    }

    /// An account with all of these slots, if all of it is known.
    fn whole(&self, state_root: B256, address: Address, slots: &[B256]) -> Option<AccountProof> {
        let account = self.account(state_root, address)?;
        let slots = slots.iter().map(|slot| self.slot(account, *slot)).collect::<Option<_>>()?;
        Some(AccountProof { account, slots })
    }

    fn keep(&self, key: StateKey, part: StatePart) {
        if self.is_on {
            self.parts.insert(key, part);
        }
    }

    fn keep_proof(&self, key: &AccountKey, proof: &AccountProof) {
        let (state_root, address) = (key.state_root, key.address);
        self.keep(StateKey::Account { state_root, address }, StatePart::Account(proof.account));
        let Some(account) = proof.account else { return };
        for (slot, value) in key.slots.iter().zip(&proof.slots) {
            let storage_root = account.storage_root;
            self.keep(StateKey::Slot { storage_root, slot: *slot }, StatePart::Slot(*value));
        }
    }
}

/// The state after one block.
#[derive(Clone)]
pub(super) struct ProvenAt<'a> {
    pub(super) asking: Asking<'a>,
    pub(super) block: BlockRef,
    pub(super) header: Arc<Header>,
}

impl Remote {
    /// The state after a block whose hash is canonical.
    pub(super) async fn proven_at<'a>(
        &self,
        asking: Asking<'a>,
        block: BlockRef,
    ) -> Result<ProvenAt<'a>, Failure> {
        if let Some(header) = self.proven_state.parts.header(block.hash) {
            return Ok(ProvenAt { asking, block, header });
        }
        let fetch = Fetch::of(asking, block, block.hash);
        let pays = fetch.pays();
        let header =
            self.proven_state.headers.share(fetch, || self.fetch_header(pays, asking, block)).await?;
        Ok(ProvenAt { asking, block, header })
    }

    async fn fetch_header(
        &self,
        pays: AccountId,
        asking: Asking<'_>,
        block: BlockRef,
    ) -> Result<Arc<Header>, Failure> {
        let known = match self.blocks.body(block.hash) {
            Some(body) => Some(body),
            None => self.kept_body(asking.account, block).await?,
        };
        let header = match known {
            Some(body) => body.header().clone(),
            None => {
                let prove = |delivery: &Bytes| {
                    let delivery = delivery.clone();
                    self.proving(pays, delivery.len(), move || prove_header(&delivery, block.hash))
                };
                let call = encode::header_of_hash(&block);
                let fetched = self.pool.fetch(asking.supplier, &call, &prove, asking.deadline).await;
                fetched.map_err(not_proven)?
            }
        };
        let header = Arc::new(header);
        self.proven_state.parts.keep(StateKey::Header(block.hash), StatePart::Header(Arc::clone(&header)));
        Ok(header)
    }

    /// An account with these slots, in the order in which they are named.
    pub(super) async fn proven_account(
        &self,
        at: &ProvenAt<'_>,
        address: Address,
        slots: Vec<B256>,
    ) -> Result<Arc<AccountProof>, Failure> {
        let state_root = at.header.state_root;
        if let Some(known) = self.proven_state.parts.whole(state_root, address, &slots) {
            return Ok(Arc::new(known));
        }
        let fetch = Fetch::of(at.asking, at.block, AccountKey { state_root, address, slots });
        let (pays, key) = (fetch.pays(), fetch.key.clone());
        self.proven_state.accounts.share(fetch, || self.fetch_account(pays, at, &key)).await
    }

    async fn fetch_account(
        &self,
        pays: AccountId,
        at: &ProvenAt<'_>,
        key: &AccountKey,
    ) -> Result<Arc<AccountProof>, Failure> {
        let call = encode::account_proof(key.address, &key.slots, &at.block);
        let prove = |delivery: &Bytes| {
            let (delivery, key) = (delivery.clone(), key.clone());
            self.proving(pays, delivery.len(), move || {
                AccountProof::prove(&delivery, key.state_root, key.address, &key.slots)
            })
        };
        let Asking { supplier, deadline, .. } = at.asking;
        let proof = self.pool.fetch(supplier, &call, &prove, deadline).await.map_err(not_proven)?;
        self.proven_state.parts.keep_proof(key, &proof);
        Ok(Arc::new(proof))
    }

    /// The code of an account.
    pub(super) async fn proven_code(
        &self,
        at: &ProvenAt<'_>,
        address: Address,
        hash: B256,
    ) -> Result<ContractCode, Failure> {
        if let Some(code) = self.proven_state.parts.code(hash) {
            return Ok(code);
        }
        let fetch = Fetch::of(at.asking, at.block, hash);
        let pays = fetch.pays();
        let work = || async move {
            let prove = |delivery: &Bytes| {
                let delivery = delivery.clone();
                self.proving(pays, delivery.len(), move || prove_code(&delivery, hash).map(ContractCode::new))
            };
            let call = encode::code(address, &at.block);
            let Asking { supplier, deadline, .. } = at.asking;
            let code = self.pool.fetch(supplier, &call, &prove, deadline).await.map_err(not_proven)?;
            self.proven_state.parts.keep(StateKey::Code(hash), StatePart::Code(code.clone()));
            Ok(code)
        };
        self.proven_state.code.share(fetch, work).await
    }
}

fn not_proven(reason: NotFetched) -> Failure {
    match reason {
        NotFetched::Lacking => Failure::StateNotProven,
        other => crate::remote::blocks::not_fetched(other),
    }
}
