//! Random chains through every fork: the same seed gives the same chain, block by block and hash by hash.
//!
//! Every fork from Frontier to the second BPO fork has a few blocks, with the merge in between. The DAO fork is left out because
//! it is about accounts that only mainnet has.

mod actions; // actions of transactions
mod envelope; // in which type of transaction they do it
mod schedule; // which fork is when

pub use chain_builder::Era;
use schedule::genesis_with;

use crate::{contracts, model::Model};
use alloy_consensus::transaction::Recovered;
use alloy_eips::eip4895::Withdrawal;
use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{Address, B256, U256, address, keccak256};
use archive::Transaction;
use chain_builder::{BlockPlan, Signer, system_contracts};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use std::collections::BTreeMap;

/// Writes what it is told, or self-destructs; see [`contracts::vessel`].
pub const VESSEL: Address = address!("0000000000000000000000000000000000001001");
/// See [`contracts::logger`].
pub const LOGGER: Address = address!("0000000000000000000000000000000000001002");
/// A [`contracts::factory`] by `CREATE2`.
pub(crate) const FACTORY: Address = address!("0000000000000000000000000000000000001003");
/// A [`contracts::factory`] by `CREATE`.
pub(crate) const OLD_FACTORY: Address = address!("0000000000000000000000000000000000001004");
/// See [`contracts::relay`].
pub(crate) const RELAY: Address = address!("0000000000000000000000000000000000001005");
/// See [`contracts::reverter`].
pub(crate) const REVERTER: Address = address!("0000000000000000000000000000000000001006");
/// See [`contracts::burner`].
pub(crate) const BURNER: Address = address!("0000000000000000000000000000000000001007");

/// A block with transactions for this much gas gets no more. It leaves room for the longest action.
const GAS_PER_BLOCK: u64 = 24_000_000;

const SENDERS: u64 = 6;
const AUTHORITIES: u64 = 3;

/// How big a random chain gets.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// At least two, because the first of them is the genesis.
    pub blocks_per_fork: u64,
    /// About; a block can have fewer, and a few more where things belong together.
    pub transactions_per_block: usize,
}

impl Default for Size {
    /// Big enough that every kind of transaction meets every fork that has it.
    fn default() -> Self {
        Self { blocks_per_fork: 4, transactions_per_block: 10 }
    }
}

/// A random chain with all that was ever true on it.
pub fn random_chain(seed: u64, size: Size) -> Model {
    let mut generator = Generator::new(seed, size);
    for number in 1..Era::ALL.len() as u64 * size.blocks_per_fork {
        generator.add_block(number);
    }
    generator.model
}

/// A random chain that grows block by block, and of which others branch off.
#[derive(Clone)]
pub struct RandomChain(Generator);

impl RandomChain {
    /// A chain that has only its genesis.
    pub fn new(seed: u64, size: Size) -> Self {
        Self(Generator::new(seed, size))
    }

    /// A chain with the same blocks up to now that grows other ones from now on.
    pub fn branch(&self, seed: u64) -> Self {
        let mut branch = self.clone();
        branch.0.rng = StdRng::seed_from_u64(seed);
        branch
    }

    /// Adds the next block. Those after the last fork of the schedule are like it.
    pub fn grow(&mut self) {
        self.0.add_block(self.0.model.head() + 1);
    }

    /// The chain and all that was ever true on it.
    pub fn model(&self) -> &Model {
        &self.0.model
    }
}

impl std::fmt::Debug for RandomChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RandomChain").field(self.0.model.builder().head()).finish()
    }
}

/// The signer with this number of every made-up chain.
pub fn signer(number: u64) -> Signer {
    Signer::from_seed(keccak256(number.to_be_bytes()))
}

#[derive(Clone)]
struct Generator {
    rng: StdRng,
    size: Size,
    model: Model,
    senders: Vec<Signer>,
    /// Accounts that let contracts act in their name (EIP-7702).
    authorities: Vec<Signer>,
    /// Addresses that have been seen, and some that were only mentioned.
    addresses: Vec<Address>,
    /// Addresses that were touched without getting anything.
    empty: Vec<Address>,
    vessels: Vec<Address>,
    withdrawals: u64,
    envelopes: usize,
    draft: Draft,
}

/// The block that is being put together.
#[derive(Clone, Default)]
struct Draft {
    era: Era,
    base_fee: u128,
    blobs: u64,
    /// The gas that the transactions so far may use.
    gas: u64,
    /// The next nonce of each account, after the transactions so far.
    nonces: BTreeMap<Address, u64>,
    transactions: Vec<Recovered<Transaction>>,
}

impl Generator {
    fn new(seed: u64, size: Size) -> Self {
        assert!(size.blocks_per_fork >= 2, "a fork needs a block besides the genesis");
        let senders: Vec<Signer> = (0..SENDERS).map(signer).collect();
        let authorities = (SENDERS..SENDERS + AUTHORITIES).map(signer).collect();
        let addresses = senders.iter().map(Signer::address).chain([VESSEL, RELAY]).collect();
        Self {
            rng: StdRng::seed_from_u64(seed),
            size,
            model: Model::new(genesis(&senders, size)),
            senders,
            authorities,
            addresses,
            empty: Vec::new(),
            vessels: vec![VESSEL],
            withdrawals: 0,
            envelopes: 0,
            draft: Draft::default(),
        }
    }

    fn add_block(&mut self, number: u64) {
        let era = Era::of(number, self.size.blocks_per_fork);
        let mut plan = BlockPlan {
            timestamp: Some(schedule::timestamp(number)),
            beneficiary: self.any_address(),
            extra_data: format!("{era:?}").into_bytes().into(),
            uncles: self.uncles(number, era),
            withdrawals: self.withdrawals(era),
            ..BlockPlan::default()
        };
        let base_fee = self.model.builder().next_header(&plan).base_fee_per_gas.unwrap_or_default();
        self.draft = Draft { era, base_fee: u128::from(base_fee), ..Draft::default() };
        let count = self.rng.random_range(0..=self.size.transactions_per_block);
        while self.draft.transactions.len() < count && self.draft.gas < GAS_PER_BLOCK {
            self.act();
        }
        plan.transactions = std::mem::take(&mut self.draft.transactions);
        self.model.build(plan).unwrap_or_else(|error| panic!("block {number} of {era:?}: {error}"));
        self.learn();
    }

    /// Takes note of the contracts that the newest block made.
    fn learn(&mut self) {
        let code_hash = keccak256(contracts::vessel());
        let Some(block) = self.model.block(self.model.head()) else { return };
        for (address, change) in &block.changes.accounts {
            let is_vessel = change.account.is_some_and(|account| account.code_hash == code_hash);
            if is_vessel && !self.vessels.contains(address) {
                self.vessels.push(*address);
            }
        }
    }

    fn uncles(&mut self, number: u64, era: Era) -> Vec<alloy_consensus::Header> {
        if era >= Era::Paris || number < 2 || self.rng.random_bool(0.5) {
            return Vec::new();
        }
        let count = self.rng.random_range(1..=2);
        let salts = (0..count).map(|uncle| number * 2 + uncle);
        // An uncle is at most six blocks older than its nephew, so its parent at most seven.
        let oldest = number.saturating_sub(7);
        salts
            .filter_map(|salt| {
                let parent = self.rng.random_range(oldest..=number - 2);
                self.model.builder().uncle_of(parent, salt)
            })
            .collect()
    }

    fn withdrawals(&mut self, era: Era) -> Vec<Withdrawal> {
        let count = if era >= Era::Shanghai { self.rng.random_range(0..=3) } else { 0 };
        (0..count)
            .map(|_| {
                self.withdrawals += 1;
                let amount = self.rng.random_range(0..3) * 1_000_000;
                let address = if amount == 0 { self.new_address() } else { self.any_address() };
                Withdrawal { index: self.withdrawals, validator_index: self.withdrawals % 7, address, amount }
            })
            .collect()
    }

    fn new_address(&mut self) -> Address {
        let address = Address::from_word(B256::new(self.rng.random()));
        self.addresses.push(address);
        address
    }

    /// A known address, or now and then a new one.
    fn any_address(&mut self) -> Address {
        if self.rng.random_bool(0.2) {
            return self.new_address();
        }
        *self.addresses.choose(&mut self.rng).expect("the senders are known from the start")
    }
}

fn genesis(senders: &[Signer], size: Size) -> Genesis {
    let rich = U256::from(10).pow(U256::from(24));
    let funded = senders
        .iter()
        .map(|sender| (sender.address(), GenesisAccount { balance: rich, ..GenesisAccount::default() }));
    let contracts = [
        (VESSEL, contracts::vessel()),
        (LOGGER, contracts::logger()),
        (FACTORY, contracts::factory(true)),
        (OLD_FACTORY, contracts::factory(false)),
        (RELAY, contracts::relay()),
        (REVERTER, contracts::reverter()),
        (BURNER, contracts::burner()),
    ];
    let stored = BTreeMap::from([(B256::ZERO, B256::with_last_byte(9)), (B256::repeat_byte(1), B256::ZERO)]);
    let contracts = contracts.map(|(address, code)| {
        let storage = (address == VESSEL).then(|| stored.clone());
        (address, GenesisAccount { code: Some(code), storage, nonce: Some(1), ..GenesisAccount::default() })
    });
    genesis_with(size.blocks_per_fork, funded.chain(contracts).chain(system_contracts()))
}
