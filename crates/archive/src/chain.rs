//! The chain's rules: which fork is in force at which block, read from a geth-format `genesis.json`.

use alloy_consensus::Header;
use alloy_eips::eip7840::BlobParams;
use alloy_evm::{EvmEnv, eth::spec::EthExecutorSpec, spec_by_timestamp_and_block_number};
use alloy_genesis::{ChainConfig, Genesis};
use alloy_hardforks::{EthereumHardfork, EthereumHardforks, ForkCondition};
use alloy_primitives::{Address, U256};
use revm::primitives::hardfork::SpecId;

/// Everything about a chain that its blocks do not say themselves.
#[derive(Debug, Clone)]
pub struct ChainSpec {
    genesis: Genesis,
    blob_schedule: Vec<BlobFork>,
}

/// Blob parameters that hold from a timestamp on.
#[derive(Debug, Clone)]
struct BlobFork {
    from: u64,
    params: BlobParams,
}

/// The rules at one block.
///
/// Proof of work ends where the total difficulty says so, which no block number in the configuration tells;
/// the block itself does: after the merge its difficulty is zero.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    chain: &'a ChainSpec,
    merged: bool,
}

impl ChainSpec {
    /// Reads the text of a `genesis.json`.
    pub fn from_json(text: &str) -> Result<Self, GenesisError> {
        let genesis: Genesis = serde_json::from_str(text).map_err(GenesisError::Json)?;
        Ok(Self::from_genesis(genesis))
    }

    /// The rules that a parsed genesis states.
    pub fn from_genesis(genesis: Genesis) -> Self {
        let blob_schedule = blob_schedule(&genesis.config);
        Self { genesis, blob_schedule }
    }

    /// The genesis as it was read.
    pub fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    pub(crate) fn config(&self) -> &ChainConfig {
        &self.genesis.config
    }

    /// The chain id.
    pub fn chain_id(&self) -> u64 {
        self.config().chain_id
    }

    /// The total difficulty from which on blocks carry no proof of work.
    pub fn terminal_total_difficulty(&self) -> Option<U256> {
        self.config().terminal_total_difficulty
    }

    /// The rules at the block with this header.
    pub fn rules_at(&self, header: &Header) -> Rules<'_> {
        Rules {
            chain: self,
            merged: header.difficulty.is_zero() && self.terminal_total_difficulty().is_some(),
        }
    }

    /// The blob parameters in force at a timestamp; none before Cancun.
    pub fn blob_params_at(&self, timestamp: u64) -> Option<BlobParams> {
        self.blob_schedule.iter().rev().find(|fork| fork.from <= timestamp).map(|fork| fork.params)
    }
}

impl Rules<'_> {
    /// The revm name of the fork in force at a block.
    pub fn spec_id(&self, header: &Header) -> SpecId {
        spec_by_timestamp_and_block_number(self, header.timestamp, header.number)
    }

    /// The EVM's view of the block with this header.
    pub fn evm_env(&self, header: &Header) -> EvmEnv {
        let blob_params = self.chain.blob_params_at(header.timestamp);
        EvmEnv::for_eth_block(header, self, self.chain.chain_id(), blob_params)
    }

    /// Whether this block comes after the end of proof of work.
    pub fn merged(&self) -> bool {
        self.merged
    }
}

impl EthereumHardforks for Rules<'_> {
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
            Fork::Petersburg => at_block(config.petersburg_block.or(config.constantinople_block)),
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
            Fork::Amsterdam => at_time(config.amsterdam_time),
            _ => ForkCondition::Never,
        }
    }
}

impl EthExecutorSpec for Rules<'_> {
    fn deposit_contract_address(&self) -> Option<Address> {
        self.chain.config().deposit_contract_address
    }
}

/// The blob parameters of the chain by their first timestamp, oldest first.
///
/// A fork that `blobSchedule` leaves out keeps what its name means on mainnet.
fn blob_schedule(config: &ChainConfig) -> Vec<BlobFork> {
    let named = [
        ("cancun", config.cancun_time, Some(BlobParams::cancun())),
        ("prague", config.prague_time, Some(BlobParams::prague())),
        ("osaka", config.osaka_time, Some(BlobParams::osaka())),
        ("bpo1", config.bpo1_time, Some(BlobParams::bpo1())),
        ("bpo2", config.bpo2_time, Some(BlobParams::bpo2())),
        ("bpo3", config.bpo3_time, None),
        ("bpo4", config.bpo4_time, None),
        ("bpo5", config.bpo5_time, None),
        ("amsterdam", config.amsterdam_time, None),
    ];
    let mut schedule: Vec<BlobFork> = named
        .into_iter()
        .filter_map(|(name, time, usual)| {
            let params = config.blob_schedule.get(name).copied().or(usual)?;
            Some(BlobFork { from: time?, params })
        })
        .collect();
    schedule.sort_by_key(|fork| fork.from);
    schedule
}

/// Why a genesis file is no use.
#[derive(Debug, thiserror::Error)]
pub enum GenesisError {
    /// The text is not a geth-format genesis.
    #[error("not a geth-format genesis: {0}")]
    Json(serde_json::Error),
}

/// A transaction as blocks carry it: blobs stay outside.
pub type Transaction = alloy_consensus::EthereumTxEnvelope<alloy_consensus::TxEip4844>;

/// A block.
pub type Block = alloy_consensus::Block<Transaction>;
