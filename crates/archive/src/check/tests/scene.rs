//! Chains that follow every rule, up to any fork, with the next block ready to be spoilt.

use crate::{
    chain::fees::{expected_base_fee, expected_excess_blob_gas},
    chain::{Block, ChainSpec, Transaction},
    check::{Ancestry, CheckedBlock, check_block},
};
use alloy_consensus::{
    BlockBody, Header, Sealable, SignableTransaction, Transaction as _,
    proofs::{calculate_ommers_root, calculate_transaction_root, calculate_withdrawals_root},
};
use alloy_eips::{eip4895::Withdrawals, eip7685::EMPTY_REQUESTS_HASH};
use alloy_genesis::{ChainConfig, Genesis};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{B256, Signature, U256};

/// The chain id of every scene.
pub(super) const CHAIN_ID: u64 = 77;

/// The names that [`Scene::at`] understands, oldest first.
pub(super) const FORKS: [&str; 14] = [
    "frontier",
    "homestead",
    "eip150",
    "eip155",
    "byzantium",
    "constantinople",
    "istanbul",
    "berlin",
    "london",
    "paris",
    "shanghai",
    "cancun",
    "prague",
    "osaka",
];

/// A chain and a block that can follow on it.
pub(super) struct Scene {
    pub(super) chain: ChainSpec,
    pub(super) ancestry: Ancestry,
    pub(super) block: Block,
}

impl Scene {
    /// A chain on which all forks up to this one have happened at the genesis.
    pub(super) fn at(fork: &str) -> Self {
        Self::with(fork, |_| ())
    }

    /// The same, with changes to the genesis.
    pub(super) fn with(fork: &str, change: impl FnOnce(&mut Genesis)) -> Self {
        let mut genesis = genesis(fork);
        change(&mut genesis);
        let chain = ChainSpec::from_genesis(genesis).unwrap();
        let ancestry = Ancestry::at_genesis(chain.genesis_header().seal_slow());
        let block = next_block(&chain, &ancestry);
        Self { chain, ancestry, block }
    }

    pub(super) fn check(&self) -> CheckedBlock {
        check_block(&self.chain, &self.ancestry, &self.block).unwrap()
    }

    /// Takes the block into the chain and makes the next one.
    pub(super) fn advance(&mut self) {
        let checked = self.check();
        let header = self.block.header.clone().seal_unchecked(checked.hash);
        self.ancestry.push(header, checked.uncle_hashes);
        self.block = next_block(&self.chain, &self.ancestry);
    }

    /// Advances until the next block has this number.
    pub(super) fn advance_to(&mut self, number: u64) {
        while self.block.header.number < number {
            self.advance();
        }
    }

    /// Puts transactions into the block, with a header that fits.
    pub(super) fn set_transactions(&mut self, transactions: Vec<Transaction>) {
        let header = &mut self.block.header;
        header.transactions_root = calculate_transaction_root(&transactions);
        let blobs: u64 = transactions.iter().filter_map(|transaction| transaction.blob_count()).sum();
        header.blob_gas_used = header.blob_gas_used.map(|_| blobs * 131_072);
        self.block.body.transactions = transactions;
    }

    /// Puts uncles into the block, with a header that fits.
    pub(super) fn set_uncles(&mut self, uncles: Vec<Header>) {
        self.block.header.ommers_hash = calculate_ommers_root(&uncles);
        self.block.body.ommers = uncles;
    }

    /// A block beside the one so many generations back, counted from the block that is being made.
    pub(super) fn uncle(&self, generations: usize) -> Header {
        let brother = self.ancestry.generations().nth(generations - 1).unwrap();
        let mut uncle = brother.header.inner().clone();
        uncle.extra_data = vec![generations as u8; 3].into();
        uncle
    }
}

pub(super) fn signed<T: SignableTransaction<Signature>>(transaction: T) -> Transaction
where
    Transaction: From<alloy_consensus::Signed<T>>,
{
    transaction.into_signed(Signature::test_signature()).into()
}

fn genesis(fork: &str) -> Genesis {
    let last = FORKS.iter().position(|name| *name == fork).unwrap();
    let on = |name: &str| (FORKS.iter().position(|fork| *fork == name).unwrap() <= last).then_some(0);
    let merged = on("paris").is_some();
    let config = ChainConfig {
        chain_id: CHAIN_ID,
        homestead_block: on("homestead"),
        eip150_block: on("eip150"),
        eip155_block: on("eip155"),
        eip158_block: on("eip155"),
        byzantium_block: on("byzantium"),
        constantinople_block: on("constantinople"),
        istanbul_block: on("istanbul"),
        berlin_block: on("berlin"),
        london_block: on("london"),
        terminal_total_difficulty: merged.then_some(U256::ZERO),
        shanghai_time: on("shanghai"),
        cancun_time: on("cancun"),
        prague_time: on("prague"),
        osaka_time: on("osaka"),
        ..ChainConfig::default()
    };
    let difficulty = U256::from(if merged { 0 } else { 131_072 });
    Genesis { config, difficulty, gas_limit: 10_000_000, ..Genesis::default() }
}

fn next_block(chain: &ChainSpec, ancestry: &Ancestry) -> Block {
    let parent = ancestry.parent();
    let merged = chain.terminal_total_difficulty().is_some_and(|end| ancestry.total_difficulty() >= end);
    let (number, timestamp) = (parent.number + 1, parent.timestamp + 12);
    let difficulty = if merged { U256::ZERO } else { parent.difficulty };
    let mut header =
        Header { parent_hash: parent.hash(), number, timestamp, difficulty, ..Header::default() };
    let rules = chain.rules_at(&header);
    let doubles = rules.is_london_active_at_block(number) && !rules.is_london_active_at_block(number - 1);
    let withdrawals = rules.is_shanghai_active_at_timestamp(timestamp).then(Withdrawals::default);
    let cancun = rules.is_cancun_active_at_timestamp(timestamp);
    let prague = rules.is_prague_active_at_timestamp(timestamp);
    header.base_fee_per_gas = expected_base_fee(rules, parent);
    header.gas_limit = parent.gas_limit * if doubles { 2 } else { 1 };
    header.withdrawals_root = withdrawals.as_deref().map(|list| calculate_withdrawals_root(list));
    header.blob_gas_used = cancun.then_some(0);
    header.excess_blob_gas = expected_excess_blob_gas(chain, parent, timestamp);
    header.parent_beacon_block_root = cancun.then_some(B256::ZERO);
    header.requests_hash = prague.then_some(EMPTY_REQUESTS_HASH);
    BlockBody { withdrawals, ..BlockBody::default() }.into_block(header)
}
