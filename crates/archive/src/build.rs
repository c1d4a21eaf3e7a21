//! Assembles valid blocks on a state in memory: the demo chain, the chains of tests and of the benchmark.
//!
//! Everything is deterministic: the same genesis and the same plans give the same hashes. Seals are left zero,
//! and Amsterdam is left out, because its headers commit to an access list that nobody here computes.

mod header;
mod memory;
mod predeploys;
mod sign;
#[cfg(test)]
mod tests;

pub use memory::{MemoryState, StoredAccount};
pub use predeploys::system_contracts;
pub use sign::Signer;

use crate::{
    chain::{Block, ChainSpec, Transaction},
    execute::{Executed, ExecutionFault, Receipt, execute_block},
    state::Changes,
};
use alloy_consensus::{
    BlockBody, Header, Sealed, Transaction as _, constants::MAXIMUM_EXTRA_DATA_SIZE, proofs,
    transaction::Recovered,
};
use alloy_eips::{
    eip1559::GAS_LIMIT_BOUND_DIVISOR,
    eip4895::{Withdrawal, Withdrawals},
};
use alloy_genesis::Genesis;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256, Bytes, Sealable, U256, keccak256};
use std::io;

/// Seconds between blocks whose plan says nothing of time.
const BLOCK_TIME_S: u64 = 12;

/// No block may have a lower gas limit.
const GAS_LIMIT_MIN: u64 = 5000;

/// An uncle is at most this many blocks older than the block that includes it.
const UNCLE_DEPTH_MAX: u64 = 6;

/// A block includes at most this many uncles.
const UNCLES_MAX: usize = 2;

/// A chain that grows block by block.
#[derive(Debug, Clone)]
pub struct ChainBuilder {
    spec: ChainSpec,
    state: MemoryState,
    links: Vec<Link>,
    uncles_included: Vec<B256>,
}

/// A block of the chain, as its descendants need it.
#[derive(Debug, Clone)]
struct Link {
    header: Sealed<Header>,
    total_difficulty: U256,
}

/// What shall be in the next block. What is left out follows from the chain.
#[derive(Debug, Clone, Default)]
pub struct BlockPlan {
    /// Seconds since 1970; twelve after the parent if nothing else is said.
    pub timestamp: Option<u64>,
    /// Who gets the fees and rewards.
    pub beneficiary: Address,
    /// The transactions, in order, each with its sender.
    pub transactions: Vec<Recovered<Transaction>>,
    /// Headers made by [`ChainBuilder::uncle_of`]; none after the merge.
    pub uncles: Vec<Header>,
    /// What the consensus layer pays out; none before Shanghai.
    pub withdrawals: Vec<Withdrawal>,
    /// At most 32 bytes of anything.
    pub extra_data: Bytes,
    /// The parent's if nothing else is said.
    pub gas_limit: Option<u64>,
    /// By Ethereum's formula if nothing else is said. Counts only before the merge.
    pub difficulty: Option<U256>,
    /// Derived from the parent's hash if nothing else is said. Counts only after the merge.
    pub prev_randao: Option<B256>,
    /// Derived from the parent's hash if nothing else is said. Counts only from Cancun on.
    pub parent_beacon_root: Option<B256>,
}

/// A block with all that its execution gave.
#[derive(Debug, Clone)]
pub struct BuiltBlock {
    /// The block.
    pub block: Block,
    /// Its hash.
    pub hash: B256,
    /// A receipt per transaction.
    pub receipts: Vec<Receipt>,
    /// The sender of each transaction.
    pub senders: Vec<Address>,
    /// What it changed.
    pub changes: Changes,
}

impl BuiltBlock {
    /// The block as block files carry it.
    pub fn rlp(&self) -> Vec<u8> {
        alloy_rlp::encode(&self.block)
    }
}

/// Writes blocks one after another, as `geth export` does.
pub fn write_blocks<'a>(
    blocks: impl IntoIterator<Item = &'a BuiltBlock>,
    out: &mut impl io::Write,
) -> io::Result<()> {
    blocks.into_iter().try_for_each(|block| out.write_all(&block.rlp()))
}

impl ChainBuilder {
    /// A chain that has only its genesis.
    pub fn new(genesis: Genesis) -> Self {
        let spec = ChainSpec::from_genesis(genesis);
        let mut state = MemoryState::from_genesis(spec.genesis());
        let header = header::genesis_header(&spec, state.root()).seal_slow();
        state.add_block_hash(header.number, header.hash());
        let genesis = Link { total_difficulty: header.difficulty, header };
        Self { spec, state, links: vec![genesis], uncles_included: Vec::new() }
    }

    /// The chain's rules.
    pub fn spec(&self) -> &ChainSpec {
        &self.spec
    }

    /// The newest block's header.
    pub fn head(&self) -> &Sealed<Header> {
        &self.head_link().header
    }

    /// The header of a block of this chain.
    pub fn header(&self, number: u64) -> Option<&Sealed<Header>> {
        self.link(number).map(|link| &link.header)
    }

    /// The state after the newest block.
    pub fn state(&self) -> &MemoryState {
        &self.state
    }

    /// The header of the block that a plan would give, before its execution: number, time, gas limit, base fee and
    /// blob gas are right; what depends on the transactions is missing. [`ChainSpec::rules_at`] tells its rules.
    pub fn next_header(&self, plan: &BlockPlan) -> Result<Header, BuildError> {
        self.child(self.head_link(), plan)
    }

    /// A block beside the chain that later blocks can include: a child of the block with this number. Different
    /// salts give different uncles.
    pub fn uncle_of(&self, parent: u64, salt: u64) -> Result<Header, BuildError> {
        let parent = self.link(parent).ok_or(BuildError::Uncle("its parent is not in the chain"))?;
        let seed = keccak256([parent.header.hash().as_slice(), &salt.to_be_bytes()].concat());
        let plan = BlockPlan {
            beneficiary: Address::from_word(seed),
            extra_data: Bytes::from_static(b"uncle"),
            ..BlockPlan::default()
        };
        let mut uncle = self.child(parent, &plan)?;
        uncle.state_root = parent.header.state_root;
        if uncle.difficulty.is_zero() {
            return Err(BuildError::Uncle("there are none after the merge"));
        }
        Ok(uncle)
    }

    /// Builds the next block. If that fails, the chain stays as it was.
    pub fn build(&mut self, plan: BlockPlan) -> Result<BuiltBlock, BuildError> {
        let mut header = self.next_header(&plan)?;
        self.check_uncles(&header, &plan.uncles)?;
        let shanghai = header.withdrawals_root.is_some();
        if !shanghai && !plan.withdrawals.is_empty() {
            return Err(BuildError::WithdrawalsBeforeShanghai);
        }
        let (transactions, senders): (Vec<_>, Vec<_>) =
            plan.transactions.into_iter().map(Recovered::into_parts).unzip();
        header.transactions_root = proofs::calculate_transaction_root(&transactions);
        header.ommers_hash = proofs::calculate_ommers_root(&plan.uncles);
        header.withdrawals_root = shanghai.then(|| proofs::calculate_withdrawals_root(&plan.withdrawals));
        if header.blob_gas_used.is_some() {
            header.blob_gas_used = Some(self.blob_gas(&header, &transactions)?);
        }
        let withdrawals = shanghai.then_some(Withdrawals::new(plan.withdrawals));
        let mut block = Block { header, body: BlockBody { transactions, ommers: plan.uncles, withdrawals } };

        let rules = self.spec.rules_at(&block.header);
        let executed = execute_block(rules, &block, &senders, &self.state, &mut self.state.trial())?;
        self.state.apply(&executed.changes);
        complete(&mut block.header, &executed, self.state.root());
        let hash = self.append(&block);
        Ok(BuiltBlock { block, hash, receipts: executed.receipts, senders, changes: executed.changes })
    }

    fn head_link(&self) -> &Link {
        &self.links[self.links.len() - 1]
    }

    fn link(&self, number: u64) -> Option<&Link> {
        let index = number.checked_sub(self.links[0].header.number)?;
        self.links.get(usize::try_from(index).ok()?)
    }

    /// The header of a child, as far as parent and plan decide it.
    fn child(&self, parent: &Link, plan: &BlockPlan) -> Result<Header, BuildError> {
        let merged = self.spec.terminal_total_difficulty().is_some_and(|end| parent.total_difficulty >= end);
        let parent = &parent.header;
        let timestamp = plan.timestamp.unwrap_or(parent.timestamp + BLOCK_TIME_S);
        let mut header = Header {
            parent_hash: parent.hash(),
            beneficiary: plan.beneficiary,
            number: parent.number + 1,
            timestamp,
            extra_data: plan.extra_data.clone(),
            difficulty: if merged { U256::ZERO } else { U256::ONE },
            ..Header::default()
        };
        let rules = self.spec.rules_at(&header);
        if merged {
            header.mix_hash = plan.prev_randao.unwrap_or_else(|| derived(parent.hash(), b"randao"));
        } else {
            header.difficulty =
                plan.difficulty.unwrap_or_else(|| header::difficulty(rules, parent, timestamp));
        }
        let usual_gas_limit = header::gas_limit(rules, parent);
        header.gas_limit = plan.gas_limit.unwrap_or(usual_gas_limit);
        header.base_fee_per_gas = header::base_fee(rules, parent);
        if rules.is_shanghai_active_at_timestamp(timestamp) {
            header.withdrawals_root = Some(B256::ZERO);
        }
        if rules.is_cancun_active_at_timestamp(timestamp) {
            header.blob_gas_used = Some(0);
            header.excess_blob_gas = header::excess_blob_gas(&self.spec, parent, timestamp);
            let root = plan.parent_beacon_root.unwrap_or_else(|| derived(parent.hash(), b"beacon"));
            header.parent_beacon_block_root = Some(root);
        }
        if rules.is_prague_active_at_timestamp(timestamp) {
            header.requests_hash = Some(B256::ZERO);
        }
        self.check_header(&header, parent, usual_gas_limit)?;
        Ok(header)
    }

    /// What a plan can get wrong about a header.
    fn check_header(&self, header: &Header, parent: &Header, usual_gas_limit: u64) -> Result<(), BuildError> {
        let rules = self.spec.rules_at(header);
        if header.timestamp <= parent.timestamp {
            return Err(BuildError::Timestamp { timestamp: header.timestamp, parent: parent.timestamp });
        }
        if header.extra_data.len() > MAXIMUM_EXTRA_DATA_SIZE {
            return Err(BuildError::ExtraData(header.extra_data.len()));
        }
        let vote = header.gas_limit.abs_diff(usual_gas_limit);
        if (vote != 0 && vote >= usual_gas_limit / GAS_LIMIT_BOUND_DIVISOR)
            || header.gas_limit < GAS_LIMIT_MIN
        {
            return Err(BuildError::GasLimit { limit: header.gas_limit, usual: usual_gas_limit });
        }
        if rules.is_shanghai_active_at_timestamp(header.timestamp) && !rules.merged() {
            return Err(BuildError::ShanghaiBeforeMerge);
        }
        if rules.is_amsterdam_active_at_timestamp(header.timestamp) {
            return Err(BuildError::Amsterdam);
        }
        Ok(())
    }

    fn check_uncles(&self, header: &Header, uncles: &[Header]) -> Result<(), BuildError> {
        if uncles.len() > UNCLES_MAX {
            return Err(BuildError::Uncle("a block has at most two"));
        }
        if header.difficulty.is_zero() && !uncles.is_empty() {
            return Err(BuildError::Uncle("there are none after the merge"));
        }
        for (index, uncle) in uncles.iter().enumerate() {
            let hash = uncle.hash_slow();
            let parent = uncle.number.checked_sub(1).and_then(|number| self.header(number));
            if parent.is_none_or(|parent| parent.hash() != uncle.parent_hash) {
                return Err(BuildError::Uncle("its parent is not in the chain"));
            }
            if uncle.number >= header.number || header.number - uncle.number > UNCLE_DEPTH_MAX {
                return Err(BuildError::Uncle("its number is out of reach"));
            }
            if self.header(uncle.number).is_some_and(|own| own.hash() == hash) {
                return Err(BuildError::Uncle("it is an ancestor"));
            }
            if self.uncles_included.contains(&hash) || uncles[..index].contains(uncle) {
                return Err(BuildError::Uncle("it was included before"));
            }
        }
        Ok(())
    }

    fn blob_gas(&self, header: &Header, transactions: &[Transaction]) -> Result<u64, BuildError> {
        let used = transactions.iter().filter_map(|transaction| transaction.blob_gas_used()).sum();
        let params = self.spec.blob_params_at(header.timestamp);
        match params.map(|params| params.max_blob_gas_per_block()) {
            Some(limit) if used > limit => Err(BuildError::BlobGas { used, limit }),
            _ => Ok(used),
        }
    }

    fn append(&mut self, block: &Block) -> B256 {
        let header = block.header.clone().seal_slow();
        let hash = header.hash();
        self.state.add_block_hash(header.number, hash);
        self.uncles_included.extend(block.body.ommers.iter().map(Header::hash_slow));
        let total_difficulty = self.head_link().total_difficulty + header.difficulty;
        self.links.push(Link { header, total_difficulty });
        hash
    }
}

/// Fills in what only execution tells.
fn complete(header: &mut Header, executed: &Executed, state_root: B256) {
    header.state_root = state_root;
    header.receipts_root = executed.receipts_root();
    header.logs_bloom = executed.logs_bloom();
    header.gas_used = executed.gas_used;
    if header.requests_hash.is_some() {
        header.requests_hash = Some(executed.requests.requests_hash());
    }
}

/// A value that nobody chose, but that is the same each time.
fn derived(parent: B256, purpose: &[u8]) -> B256 {
    keccak256([parent.as_slice(), purpose].concat())
}

/// Why a plan gives no valid block.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The block is not younger than its parent.
    #[error("timestamp {timestamp} is not after the parent's {parent}")]
    Timestamp {
        /// The block's.
        timestamp: u64,
        /// The parent's.
        parent: u64,
    },
    /// The extra data is too long.
    #[error("{0} bytes of extra data are more than {MAXIMUM_EXTRA_DATA_SIZE}")]
    ExtraData(usize),
    /// The gas limit is too far from the parent's, or too low.
    #[error("a gas limit of {limit} is not within 1/{GAS_LIMIT_BOUND_DIVISOR} of {usual}")]
    GasLimit {
        /// The block's.
        limit: u64,
        /// What it would be without a vote.
        usual: u64,
    },
    /// The genesis lets Shanghai begin at a time at which the chain still had proof of work.
    #[error("Shanghai begins before the terminal total difficulty is reached")]
    ShanghaiBeforeMerge,
    /// The block is of a fork that cannot be built.
    #[error("blocks of Amsterdam cannot be built")]
    Amsterdam,
    /// Withdrawals in a block that cannot have any.
    #[error("there are no withdrawals before Shanghai")]
    WithdrawalsBeforeShanghai,
    /// An uncle that cannot be included.
    #[error("uncle: {0}")]
    Uncle(&'static str),
    /// The transactions carry more blobs than a block can have.
    #[error("{used} blob gas is more than {limit}")]
    BlobGas {
        /// What the transactions use.
        used: u64,
        /// What a block can have.
        limit: u64,
    },
    /// The block cannot be executed.
    #[error(transparent)]
    Execution(#[from] ExecutionFault),
}
