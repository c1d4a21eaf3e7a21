//! `eth_call` and `eth_estimateGas`, run here on proven accounts and slots.
//!
//! A run on what is known says what it lacks; all of that is fetched at once, and the run is begun again. What the same
//! function of the same contract read before, or what a node suggests, is fetched beforehand. Neither is believed: it only
//! says which proofs are worth asking for.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use alloy_primitives::map::{AddressMap, B256Map, HashMap};
use alloy_primitives::{Address, B256, TxKind, U256};
use archive::{
    AccountState, CallError, CallLimits, ChainSpec, ContractCode, Deadline, KnownState, PartialState,
    StateParts, StateReads,
};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use methods::{BlockRef, CallMessage, SimulationKind, SimulationQuery};
use nodes::proven::{AccountProof, ProvenAccount};
use sources::{CALL_MEMORY_BYTES_MAX, Failure, Json, call_failure, overrides};
use tokio::time::{Instant, timeout_at};

use super::State;
use super::access_hints;
use super::proofs::{ProofAttempt, ProvenAt};
use super::store::StateStore;
use crate::call_context::CallContext;
use crate::encode;
use crate::policy::HINT_TIME_MAX;

/// Runs of one simulation. Each finds out at least one further thing that it reads; most calls need two.
const RUNS_MAX: usize = 32;

/// Accounts that are fetched for one simulation. Each is a call to a node, so this is what one call of a caller may cost.
const ACCOUNTS_MAX: usize = 256;

/// Blocks below its own whose hashes a message can ask for.
const BLOCK_HASHES_MAX: u64 = 256;

/// Slots that are fetched for one simulation. The widest calls of common applications read some hundreds.
const SLOTS_MAX: usize = 4_096;

/// Bytes of a node's list of what a message reads. It is a hint, and read on the thread of a connection.
const HINT_BYTES_MAX: usize = 256 << 10;

/// Slots in one proof. Nodes refuse more than 1,024 of them.
const SLOTS_PER_PROOF_MAX: usize = 256;

/// Proofs that are fetched at the same time for one simulation.
const PROOFS_AT_ONCE: usize = 16;

/// Tells the thread of a run when nobody waits for it any more.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// The inputs that all runs of one simulation share.
struct SimulationInput {
    kind: SimulationKind,
    message: CallMessage,
    spec: Arc<ChainSpec>,
    at: Arc<alloy_consensus::Header>,
    limits: CallLimits,
}

impl SimulationInput {
    /// Runs on what is known; writes the result as JSON.
    fn execute(&self, state: &CallState) -> (Result<Bytes, CallError>, StateReads) {
        let state = PartialState::new(state);
        let (rules, request) = (self.spec.rules_at(&self.at), self.message.request.clone());
        let overrides = overrides(&self.message);
        let mut out = Vec::new();
        let written = match self.kind {
            SimulationKind::Call => archive::call(&state, rules, &self.at, request, overrides, &self.limits)
                .map(|output| Json(&mut out).data(&output)),
            SimulationKind::Estimate => {
                archive::estimate(&state, rules, &self.at, request, overrides, &self.limits)
                    .map(|gas| Json(&mut out).quantity(gas))
            }
        };
        (written.map(|()| out.into()), state.into_reads())
    }
}

/// One message on its way to its result.
pub(super) struct Simulation<'a> {
    state: &'a State,
    at: ProvenAt<'a>,
    input: Arc<SimulationInput>,
    known: CallState,
    /// How many were fetched so far.
    accounts: usize,
    slots: usize,
}

type FetchingAccount<'f> = Pin<Box<dyn Future<Output = Result<FetchedAccount, Failure>> + Send + 'f>>;

/// An account with its code and some slots.
struct FetchedAccount {
    address: Address,
    slots: Vec<B256>,
    proof: Arc<AccountProof>,
    code: Option<ContractCode>,
}

impl Simulation<'_> {
    /// Runs a message on proven state.
    pub(super) async fn run(
        state: &State,
        context: CallContext<'_>,
        query: &SimulationQuery<BlockRef>,
    ) -> Result<ProofAttempt, Failure> {
        let Some(at) = state.provable_at(context, query.at).await? else {
            return Ok(ProofAttempt::NotProvable);
        };
        let chain_id = state.pool.chain_id();
        let spec = chain_id.and_then(|id| state.rules.at(id, context.chain, &at.header));
        let Some(spec) = spec else { return Ok(ProofAttempt::NotProvable) };
        let cancel = CancelOnDrop::default();
        let known = CallState::new(Arc::clone(&state.proofs.store), at.header.state_root);
        let limits = CallLimits {
            gas_cap: state.gas.cap(context.chain),
            memory_bytes_max: CALL_MEMORY_BYTES_MAX,
            deadline: Some(Deadline::at(context.deadline.into_std(), state.limits.now().call_timeout)),
            cancel: Some(Arc::clone(&cancel.0)),
        };
        let message = CallMessage::clone(&query.message);
        let input = SimulationInput { kind: query.kind, message, spec, at: at.header.clone(), limits };
        let simulation = Simulation { state, at, input: Arc::new(input), known, accounts: 0, slots: 0 };
        let result = simulation.complete().await;
        drop(cancel);
        result.map(ProofAttempt::Done)
    }

    async fn complete(mut self) -> Result<Bytes, Failure> {
        let hints = self.hints_from_before();
        let mut may_ask_for_hint = hints.is_none() && self.input.message.overrides.state.is_none();
        let accounts = self.accounts_of_message();
        match hints {
            Some(hints) => {
                let mut expected = (*hints).clone();
                expected.accounts.extend(accounts);
                self.fetch_expected(expected).await;
            }
            None => self.fetch(StateParts { accounts: accounts.collect(), ..StateParts::default() }).await?,
        }
        for _ in 0..RUNS_MAX {
            let (outcome, reads) = self.run_once().await?;
            if reads.missing.is_empty() {
                self.remember(reads.found);
                let timeout = self.state.limits.now().call_timeout;
                return outcome.map_err(|cause| call_failure(cause, timeout, false));
            }
            let suggested =
                if std::mem::take(&mut may_ask_for_hint) { self.ask_what_it_reads().await } else { None };
            self.fetch(reads.missing).await?;
            self.fetch_expected(suggested.unwrap_or_default()).await;
        }
        Err(Failure::StateNotProven)
    }

    /// Accounts that every message reads.
    fn accounts_of_message(&self) -> impl Iterator<Item = Address> + use<> {
        let request = &self.input.message.request;
        let to = request.to.and_then(|to| to.into_to());
        [Some(request.from.unwrap_or_default()), to, Some(self.at.header.beneficiary)].into_iter().flatten()
    }

    /// The contract and the function of it that are called.
    fn function(&self) -> Option<access_hints::Function> {
        let request = &self.input.message.request;
        let Some(TxKind::Call(contract)) = request.to else { return None };
        let selector = request.input.input().and_then(|input| input.first_chunk()).copied();
        Some(access_hints::Function { contract, selector: selector.unwrap_or_default() })
    }

    fn hints_from_before(&self) -> Option<Arc<StateParts>> {
        self.state.hints.get(self.function()?)
    }

    /// Remembers what the message read. With another state than that of the chain, calls of other callers read something else.
    fn remember(&self, found: StateParts) {
        if let Some(function) = self.function()
            && self.input.message.overrides.state.is_none()
        {
            self.state.hints.remember(function, found);
        }
    }

    /// Runs in the asking account's share of the threads.
    async fn run_once(&mut self) -> Result<(Result<Bytes, CallError>, StateReads), Failure> {
        let known = std::mem::take(&mut self.known);
        let input = Arc::clone(&self.input);
        let job = move || {
            let (outcome, reads) = input.execute(&known);
            (known, outcome, reads)
        };
        let CallContext { account, deadline, .. } = self.at.context;
        let timeout = Failure::CallTimeout(self.state.limits.now().call_timeout);
        let ran = timeout_at(deadline, self.state.blocks.workers.threads.run(account, job))
            .await
            .map_err(|_| timeout)?;
        let (known, outcome, reads) = ran?;
        self.known = known;
        Ok((outcome, reads))
    }

    /// The accounts and slots that a node expects the message to read.
    async fn ask_what_it_reads(&self) -> Option<StateParts> {
        let context = self.at.context;
        let call = encode::access_list(&self.input.message, self.state.gas.at(context.chain), &self.at.block);
        let call = call.for_account(context.caller);
        let read = |delivery: &Bytes| {
            let is_readable = delivery.len() <= HINT_BYTES_MAX;
            nodes::Proving::Done(Ok(if is_readable {
                access_hints::suggested(delivery)
            } else {
                StateParts::default()
            }))
        };
        let deadline = context.deadline.min(Instant::now() + HINT_TIME_MAX);
        self.state.pool.fetch(context.only, &call, &read, deadline).await.ok()
    }

    /// Fetches parts of the state that a run lacks.
    async fn fetch(&mut self, parts: StateParts) -> Result<(), Failure> {
        let wanted = wanted(&parts);
        self.accounts += wanted.len();
        self.slots += parts.slots.len();
        if self.accounts > ACCOUNTS_MAX || self.slots > SLOTS_MAX {
            return Err(Failure::StateNotProven);
        }
        self.fetch_proofs(wanted, self.at.context.deadline).await?;
        self.fetch_block_hashes(&parts).await
    }

    /// Fetches parts of the state that the message is expected to read. Other callers and nodes choose them, so they do not
    /// count against the limits of this call, take little of its time, and what cannot be fetched is asked for when a run lacks
    /// it.
    async fn fetch_expected(&mut self, parts: StateParts) {
        let until = self.at.context.deadline.min(Instant::now() + HINT_TIME_MAX);
        let _unfetched = self.fetch_proofs(wanted(&parts), until).await;
    }

    /// Fetches accounts with their proofs, each once with all of its slots, and with their code. What was fetched by `until` is
    /// used in any case.
    async fn fetch_proofs(
        &mut self,
        wanted: Vec<(Address, Vec<B256>)>,
        until: Instant,
    ) -> Result<(), Failure> {
        let mut wanted = wanted.into_iter();
        let mut fetches: FuturesUnordered<FetchingAccount<'_>> = FuturesUnordered::new();
        let (mut fetched, mut outcome) = (Vec::new(), Ok(()));
        while outcome.is_ok() {
            for (address, slots) in wanted.by_ref().take(PROOFS_AT_ONCE - fetches.len()) {
                fetches.push(Box::pin(self.fetch_account(address, slots)));
            }
            match timeout_at(until, fetches.next()).await {
                Ok(Some(Ok(account))) => fetched.push(account),
                Ok(Some(Err(failure))) => outcome = Err(failure),
                Ok(None) => break,
                Err(_) => outcome = Err(Failure::Unavailable),
            }
        }
        drop(fetches);
        fetched.into_iter().for_each(|account| self.known.add(account));
        outcome
    }

    async fn fetch_account(&self, address: Address, slots: Vec<B256>) -> Result<FetchedAccount, Failure> {
        let proof = self.state.proofs.account(&self.at, address, slots.clone()).await?;
        let code = match proof.account.filter(ProvenAccount::has_code) {
            Some(account) => Some(self.state.proofs.code(&self.at, address, account.code_hash).await?),
            None => None,
        };
        Ok(FetchedAccount { address, slots, proof, code })
    }

    /// Hashes of earlier blocks: from the view, or by parent hashes.
    async fn fetch_block_hashes(&mut self, parts: &StateParts) -> Result<(), Failure> {
        let context = self.at.context;
        let chain = context.chain;
        let known = |number: u64| chain.by_number(number).filter(|_| number >= chain.lowest());
        let is_unknown = |number: &&u64| known(**number).is_none();
        if let Some(lowest) = parts.block_hashes.iter().find(is_unknown) {
            // A message that says that it is in another block could else ask for every header of the chain.
            if self.at.block.number.checked_sub(*lowest).is_none_or(|below| below > BLOCK_HASHES_MAX) {
                return Err(Failure::StateNotProven);
            }
            let headers = self.state.blocks.headers_down(context, self.at.block, *lowest).await?;
            self.known.block_hashes.extend(headers.iter().map(|header| (header.id.number, header.id.hash)));
        }
        for number in &parts.block_hashes {
            self.known.block_hashes.extend(known(*number).map(|block| (block.number, block.hash)));
        }
        Ok(())
    }
}

/// The slots to fetch, by account, in order, because some nodes return them in order.
fn wanted(parts: &StateParts) -> Vec<(Address, Vec<B256>)> {
    let accounts = parts.accounts.iter().chain(parts.code.iter().map(|(address, _)| address));
    let mut wanted: BTreeMap<Address, Vec<B256>> = accounts.map(|address| (*address, Vec::new())).collect();
    for (address, slot) in &parts.slots {
        wanted.entry(*address).or_default().push((*slot).into());
    }
    let in_pieces = |(address, slots): (Address, Vec<B256>)| {
        let pieces: Vec<_> = match slots.is_empty() {
            true => vec![(address, slots)],
            false => slots.chunks(SLOTS_PER_PROOF_MAX).map(|piece| (address, piece.to_vec())).collect(),
        };
        pieces
    };
    wanted.into_iter().flat_map(in_pieces).collect()
}

/// The known part of the state for one simulation: fetched for it, or cached from earlier ones.
#[derive(Default)]
struct CallState {
    cached: Option<(Arc<StateStore>, B256)>,
    accounts: AddressMap<Option<ProvenAccount>>,
    slots: HashMap<(Address, B256), U256>,
    code: B256Map<ContractCode>,
    block_hashes: BTreeMap<u64, B256>,
}

impl CallState {
    fn new(store: Arc<StateStore>, state_root: B256) -> Self {
        Self { cached: Some((store, state_root)), ..Self::default() }
    }

    fn add(&mut self, fetched: FetchedAccount) {
        let FetchedAccount { address, slots, proof, code } = fetched;
        self.accounts.insert(address, proof.account);
        self.slots.extend(slots.into_iter().map(|slot| (address, slot)).zip(proof.slots.iter().copied()));
        if let (Some(account), Some(code)) = (proof.account, code) {
            self.code.insert(account.code_hash, code);
        }
    }

    fn proven_account(&self, address: Address) -> Option<Option<ProvenAccount>> {
        let (store, state_root) = self.cached.as_ref()?;
        self.accounts.get(&address).copied().or_else(|| store.account(*state_root, address))
    }
}

impl KnownState for &CallState {
    fn account(&self, address: Address) -> Option<Option<AccountState>> {
        let account = self.proven_account(address)?;
        Some(account.map(|ProvenAccount { nonce, balance, code_hash, .. }| AccountState {
            nonce,
            balance,
            code_hash,
        }))
    }

    fn storage(&self, address: Address, slot: U256) -> Option<U256> {
        let slot = slot.into();
        let fetched = self.slots.get(&(address, slot)).copied();
        fetched.or_else(|| self.cached.as_ref()?.0.slot(self.proven_account(address)?, slot))
    }

    fn code(&self, hash: B256) -> Option<ContractCode> {
        self.code.get(&hash).cloned().or_else(|| self.cached.as_ref()?.0.code(hash))
    }

    fn block_hash(&self, number: u64) -> Option<B256> {
        self.block_hashes.get(&number).copied()
    }
}

#[cfg(test)]
mod tests {
    use alloy_consensus::Header;
    use alloy_rpc_types_eth::TransactionRequest;
    use resources::AccountId;

    use super::*;
    use crate::state::store::{StateKey, StatePart};
    use crate::test_blocks::{TestBlocks, TestState, chain_of_head, header};

    const CONTRACT: Address = Address::repeat_byte(0x11);

    /// A block of mainnet whose accounts are all empty and known, as far as a call of the contract reads them.
    fn known_block(state: &State) -> BlockRef {
        let header = Header {
            base_fee_per_gas: Some(7),
            timestamp: 1_700_000_000,
            withdrawals_root: Some(B256::ZERO),
            ..header(18_600_000, B256::ZERO)
        };
        let (hash, state_root) = (header.hash_slow(), header.state_root);
        let parts = &state.proofs.store;
        for address in [Address::ZERO, CONTRACT] {
            parts.insert(StateKey::Account { state_root, address }, StatePart::Account(None));
        }
        parts.insert(StateKey::Header(hash), StatePart::Header(Arc::new(header)));
        BlockRef { number: 18_600_000, hash }
    }

    fn far() -> Instant {
        Instant::now() + std::time::Duration::from_secs(3_600)
    }

    async fn simulated(state: &State, message: CallMessage) -> Result<ProofAttempt, Failure> {
        let query = SimulationQuery {
            kind: SimulationKind::Call,
            message: Box::new(message),
            at: known_block(state),
        };
        let chain = chain_of_head(18_600_001);
        let account = AccountId::unique();
        let context = CallContext { account, caller: account, chain: &chain, deadline: far(), only: None };
        Simulation::run(state, context, &query).await
    }

    fn message() -> CallMessage {
        let request = TransactionRequest { to: Some(TxKind::Call(CONTRACT)), ..Default::default() };
        CallMessage { request, overrides: Default::default() }
    }

    const FUNCTION: access_hints::Function = access_hints::Function { contract: CONTRACT, selector: [0; 4] };

    /// Another caller's call of the same function had read an account that no node proved, and the call failed, although it
    /// read nothing of it.
    #[tokio::test]
    async fn what_other_calls_have_read_does_not_end_a_call() {
        let test = TestState::new(TestBlocks::of_chain(1, Some(1)));
        let mut expected = StateParts::default();
        expected.accounts.insert(Address::repeat_byte(0x99));
        test.state.hints.remember(FUNCTION, expected);
        let simulated = simulated(&test.state, message()).await;
        assert!(matches!(simulated, Ok(ProofAttempt::Done(result)) if result == "\"0x\""));
    }

    /// The parts that a call read of a state that its caller had made up were fetched for the calls of all others.
    #[tokio::test]
    async fn calls_on_another_state_are_not_remembered() {
        let test = TestState::new(TestBlocks::of_chain(1, Some(1)));
        let mut overridden = message();
        overridden.overrides.state = Some(Default::default());
        assert!(matches!(simulated(&test.state, overridden).await, Ok(ProofAttempt::Done(_))));
        assert!(test.state.hints.get(FUNCTION).is_none());
        assert!(matches!(simulated(&test.state, message()).await, Ok(ProofAttempt::Done(_))));
        assert!(test.state.hints.get(FUNCTION).is_some());
    }
}
