//! A compressed history of Ethereum: a fork every few blocks.

use alloy_genesis::{ChainConfig, Genesis, GenesisAccount};
use alloy_primitives::{Address, Bytes, U256};

/// Seconds between blocks. Slow enough that the difficulty falls to its minimum and stays there, whatever uncles do,
/// so that the total difficulty is known beforehand.
const BLOCK_TIME_S: u64 = 20;

const GENESIS_TIME: u64 = 1_000_000;

const DIFFICULTY: u64 = 131_072;

const GAS_LIMIT: u64 = 30_000_000;

/// What is in force at a block. Each builds on the ones before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are Ethereum's")]
pub enum Era {
    #[default]
    Frontier,
    Homestead,
    Tangerine,
    SpuriousDragon,
    Byzantium,
    Constantinople,
    Istanbul,
    MuirGlacier,
    Berlin,
    London,
    ArrowGlacier,
    GrayGlacier,
    Paris,
    Shanghai,
    Cancun,
    Prague,
    Osaka,
    Bpo1,
    Bpo2,
}

impl Era {
    /// All of them, oldest first.
    pub const ALL: [Self; 19] = [
        Self::Frontier,
        Self::Homestead,
        Self::Tangerine,
        Self::SpuriousDragon,
        Self::Byzantium,
        Self::Constantinople,
        Self::Istanbul,
        Self::MuirGlacier,
        Self::Berlin,
        Self::London,
        Self::ArrowGlacier,
        Self::GrayGlacier,
        Self::Paris,
        Self::Shanghai,
        Self::Cancun,
        Self::Prague,
        Self::Osaka,
        Self::Bpo1,
        Self::Bpo2,
    ];

    /// The era of a block.
    pub fn of(number: u64, blocks_per_fork: u64) -> Self {
        let index = usize::try_from(number / blocks_per_fork).unwrap_or(usize::MAX);
        Self::ALL[index.min(Self::ALL.len() - 1)]
    }

    /// The first block of an era.
    pub fn first_block(self, blocks_per_fork: u64) -> u64 {
        self as u64 * blocks_per_fork
    }
}

/// When a block is made.
pub(super) fn timestamp(number: u64) -> u64 {
    GENESIS_TIME + number * BLOCK_TIME_S
}

/// A genesis with a fork every few blocks, and these accounts.
pub fn genesis_with(
    blocks_per_fork: u64,
    accounts: impl IntoIterator<Item = (Address, GenesisAccount)>,
) -> Genesis {
    Genesis {
        config: config(blocks_per_fork),
        timestamp: GENESIS_TIME,
        extra_data: Bytes::from_static(b"a fork every few blocks"),
        gas_limit: GAS_LIMIT,
        difficulty: U256::from(DIFFICULTY),
        ..Genesis::default()
    }
    .extend_accounts(accounts)
}

fn config(blocks_per_fork: u64) -> ChainConfig {
    let block = |era: Era| Some(era.first_block(blocks_per_fork));
    let time = |era: Era| block(era).map(timestamp);
    let proof_of_work_blocks = Era::Paris.first_block(blocks_per_fork);
    ChainConfig {
        chain_id: 1337,
        homestead_block: block(Era::Homestead),
        eip150_block: block(Era::Tangerine),
        eip155_block: block(Era::SpuriousDragon),
        eip158_block: block(Era::SpuriousDragon),
        byzantium_block: block(Era::Byzantium),
        constantinople_block: block(Era::Constantinople),
        petersburg_block: block(Era::Constantinople),
        istanbul_block: block(Era::Istanbul),
        muir_glacier_block: block(Era::MuirGlacier),
        berlin_block: block(Era::Berlin),
        london_block: block(Era::London),
        arrow_glacier_block: block(Era::ArrowGlacier),
        gray_glacier_block: block(Era::GrayGlacier),
        terminal_total_difficulty: Some(U256::from(DIFFICULTY * proof_of_work_blocks)),
        shanghai_time: time(Era::Shanghai),
        cancun_time: time(Era::Cancun),
        prague_time: time(Era::Prague),
        osaka_time: time(Era::Osaka),
        bpo1_time: time(Era::Bpo1),
        bpo2_time: time(Era::Bpo2),
        ..ChainConfig::default()
    }
}
