//! The chain's rules: which fork is in force at which block, read from a geth-format `genesis.json`.
//!
//! A genesis that geth refuses is refused here, too: forks that are out of order or left out, blob
//! parameters that divide by zero. A chain whose rules are not known exactly must not be imported under rules
//! that are nearly right.

mod forks; // which fork is missing or out of order
mod genesis; // the header of block 0
mod networks; // the rules of public networks
mod genesis_text; // which member of the file is wrong, and where
mod schedule; // blob parameters by timestamp
pub(crate) mod fees; // base fee and blob gas that follow from the parent

#[cfg(test)]
mod tests;

use self::fees::{expected_base_fee, expected_excess_blob_gas};
pub use self::fees::{next_base_fee, next_excess_blob_gas};
use alloy_consensus::{EthereumTxEnvelope, Header, TxEip4844};
use alloy_eips::{eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS, eip7840::BlobParams};
use alloy_evm::{EvmEnv, eth::spec::EthExecutorSpec, spec_by_timestamp_and_block_number};
use alloy_genesis::{ChainConfig, Genesis};
use alloy_hardforks::{EthereumHardfork, EthereumHardforks, ForkCondition};
use alloy_primitives::{Address, U256};
use revm::primitives::hardfork::SpecId;
use schedule::BlobFork;

/// Genesis files of mainnet often leave its deposit contract out.
const MAINNET_CHAIN_ID: u64 = 1;

/// A signed transaction of any type, as blocks carry it: blobs come without their sidecars.
pub type Transaction = EthereumTxEnvelope<TxEip4844>;

/// A header with its transactions, uncles and withdrawals.
pub type Block = alloy_consensus::Block<Transaction>;

/// The rules of a chain and its genesis.
#[derive(Debug, Clone)]
pub struct ChainSpec {
    genesis: Genesis,
    blob_schedule: Vec<BlobFork>,
}

/// The rules at one block.
///
/// Proof of work ends where the total difficulty says so, which no block number in the configuration tells;
/// the block itself does: after the merge its difficulty is zero.
#[derive(Debug, Clone, Copy)]
pub struct BlockRules<'a> {
    chain: &'a ChainSpec,
    merged: bool,
}

impl ChainSpec {
    /// Reads the text of a `genesis.json`.
    pub fn from_json(text: &str) -> Result<Self, GenesisError> {
        Self::from_genesis(genesis_text::parse(text)?)
    }

    /// The rules that a parsed genesis states.
    pub fn from_genesis(genesis: Genesis) -> Result<Self, GenesisError> {
        forks::check_order(&genesis)?;
        let blob_schedule = schedule::blob_schedule(&genesis.config)?;
        genesis::check_fields(&genesis)?;
        Ok(Self { genesis, blob_schedule })
    }

    pub fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// The header of block 0. Hashes the whole genesis state, so callers should remember the result.
    pub fn genesis_header(&self) -> Header {
        genesis::header(&self.genesis)
    }

    pub(crate) fn config(&self) -> &ChainConfig {
        &self.genesis.config
    }

    pub fn chain_id(&self) -> u64 {
        self.config().chain_id
    }

    /// The total difficulty from which on blocks carry no proof of work.
    pub fn terminal_total_difficulty(&self) -> Option<U256> {
        self.config().terminal_total_difficulty
    }

    /// The rules at the block with this header.
    pub fn rules_at(&self, header: &Header) -> BlockRules<'_> {
        BlockRules {
            chain: self,
            merged: header.difficulty.is_zero() && self.terminal_total_difficulty().is_some(),
        }
    }

    /// The base fee of the block after this one; none before London.
    pub fn next_base_fee(&self, header: &Header) -> Option<u64> {
        expected_base_fee(self.rules_at(header), header)
    }

    /// The price of blob gas in this block; none before Cancun.
    pub fn blob_fee(&self, header: &Header) -> Option<u128> {
        let params = self.blob_params_at(header.timestamp)?;
        header.excess_blob_gas.map(|excess| params.calc_blob_fee(excess))
    }

    /// The price of blob gas in the block after this one, if that has the same parameters.
    pub fn next_blob_fee(&self, header: &Header) -> Option<u128> {
        let params = self.blob_params_at(header.timestamp)?;
        let excess = expected_excess_blob_gas(self, header, header.timestamp)?;
        Some(params.calc_blob_fee(excess))
    }

    /// The blob parameters in force at a timestamp; none before Cancun.
    pub fn blob_params_at(&self, timestamp: u64) -> Option<BlobParams> {
        self.blob_schedule.iter().rev().find(|fork| fork.from <= timestamp).map(|fork| fork.params)
    }
}

impl BlockRules<'_> {
    /// The revm name of the fork in force at a block.
    pub fn spec_id(&self, header: &Header) -> SpecId {
        spec_by_timestamp_and_block_number(self, header.timestamp, header.number)
    }

    /// The EVM's view of the block with this header.
    pub fn evm_env(&self, header: &Header) -> EvmEnv {
        let blob_params = self.chain.blob_params_at(header.timestamp);
        EvmEnv::for_eth_block(header, self, self.chain.chain_id(), blob_params)
    }

    /// Whether the irregular state change of the DAO fork happens in the block with this number.
    pub(crate) fn is_dao_fork_block(&self, number: u64) -> bool {
        self.ethereum_fork_activation(EthereumHardfork::Dao).transitions_at_block(number)
    }

    /// Whether `SSTORE` is priced by EIP-1283, as in Constantinople before Petersburg.
    pub(crate) fn has_eip1283(&self, number: u64) -> bool {
        let config = self.chain.config();
        config.is_constantinople_active_at_block(number)
            && config.petersburg_block.is_some_and(|petersburg| number < petersburg)
    }

    /// The contract whose logs are deposits (EIP-6110).
    pub(crate) fn deposit_contract(&self) -> Address {
        self.deposit_contract_address().unwrap_or(MAINNET_DEPOSIT_CONTRACT_ADDRESS)
    }

    /// Whether this block comes after the end of proof of work.
    pub fn merged(&self) -> bool {
        self.merged
    }
}

impl EthereumHardforks for BlockRules<'_> {
    fn ethereum_fork_activation(&self, fork: EthereumHardfork) -> ForkCondition {
        use EthereumHardfork as Fork;
        let config = self.chain.config();
        let at_block = |number: Option<u64>| number.map_or(ForkCondition::Never, ForkCondition::Block);
        let at_time = |time: Option<u64>| time.map_or(ForkCondition::Never, ForkCondition::Timestamp);
        match fork {
            Fork::Frontier => ForkCondition::ZERO_BLOCK,
            Fork::Homestead => at_block(config.homestead_block),
            Fork::Dao if config.dao_fork_support => at_block(config.dao_fork_block),
            Fork::Tangerine => at_block(config.eip150_block),
            Fork::SpuriousDragon => at_block(config.eip158_block.or(config.eip155_block)),
            Fork::Byzantium => at_block(config.byzantium_block),
            Fork::Constantinople => at_block(config.constantinople_block),
            // revm has no rules for Constantinople alone. They differ from Petersburg's in `has_eip1283` only.
            Fork::Petersburg => at_block(config.constantinople_block),
            Fork::Istanbul => at_block(config.istanbul_block),
            Fork::MuirGlacier => at_block(config.muir_glacier_block),
            Fork::Berlin => at_block(config.berlin_block),
            Fork::London => at_block(config.london_block),
            Fork::ArrowGlacier => at_block(config.arrow_glacier_block),
            Fork::GrayGlacier => at_block(config.gray_glacier_block),
            Fork::Paris if self.merged => ForkCondition::ZERO_BLOCK,
            Fork::Shanghai => at_time(config.shanghai_time),
            Fork::Cancun => at_time(config.cancun_time),
            Fork::Prague => at_time(config.prague_time),
            Fork::Osaka => at_time(config.osaka_time),
            Fork::Bpo1 => at_time(config.bpo1_time),
            Fork::Bpo2 => at_time(config.bpo2_time),
            Fork::Bpo3 => at_time(config.bpo3_time),
            Fork::Bpo4 => at_time(config.bpo4_time),
            Fork::Bpo5 => at_time(config.bpo5_time),
            _ => ForkCondition::Never,
        }
    }
}

impl EthExecutorSpec for BlockRules<'_> {
    /// Where the genesis names no deposit contract the chain has none, as in geth, rather than mainnet's.
    fn deposit_contract_address(&self) -> Option<Address> {
        let stated = self.chain.config().deposit_contract_address;
        let mainnet = self.chain.chain_id() == MAINNET_CHAIN_ID;
        stated.or_else(|| (!mainnet).then_some(Address::ZERO))
    }
}

/// Why a genesis file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum GenesisError {
    #[error("not a geth-format genesis: {0}")]
    Json(#[from] serde_json::Error),
    #[error("line {line}: {field}: {problem}")]
    Member { line: usize, field: String, problem: String },
    #[error("line {line}: {field} is missing")]
    Missing { line: usize, field: &'static str },
    #[error("the genesis sets {later} but not {missing}, which comes before it; add {missing} to its config")]
    ForkMissing { missing: &'static str, later: &'static str },
    #[error(
        "the genesis sets {later} to {later_at}, before {earlier} at {earlier_at}; forks must keep their order"
    )]
    ForkOrder { earlier: &'static str, earlier_at: u64, later: &'static str, later_at: u64 },
    /// Forks by time exist only after proof of work, whose end the genesis does not state.
    #[error(
        "the genesis sets {fork} but no terminalTotalDifficulty; use 0 for a chain without proof of work"
    )]
    NeverMerged { fork: &'static str },
    #[error("the genesis sets {fork}, whose rules this version does not know")]
    UnknownFork { fork: &'static str },
    /// Blocks are sealed, and miners paid, by rules that are not Ethereum's.
    #[error("the genesis uses {engine}, but only chains of proof of work and proof of stake can be imported")]
    Engine { engine: &'static str },
    #[error("the genesis sets the fork {fork} but blobSchedule has no entry {fork}; add its target and max")]
    BlobScheduleMissing { fork: &'static str },
    #[error("blobSchedule.{fork} of the genesis: {found}, expected {expected}")]
    BlobSchedule { fork: &'static str, expected: &'static str, found: String },
    #[error("{field} of the genesis: expected {expected}, found {found}")]
    Field { field: &'static str, expected: &'static str, found: u128 },
}
