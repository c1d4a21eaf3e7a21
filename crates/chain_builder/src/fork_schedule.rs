//! All of Ethereum's forks in one short chain, at equal distances.

use alloy_genesis::ChainConfig;
use alloy_primitives::U256;

/// The least difficulty that a block can have. A chain whose blocks come slowly stays at it, whatever uncles do, so that its
/// total difficulty is known beforehand.
pub const DIFFICULTY_MIN: u64 = 131_072;

/// The rules in force at a block. Each builds on the ones before it.
///
/// The DAO fork is left out because it is about accounts that only mainnet has. Constantinople comes with its repair,
/// Petersburg, as it did on mainnet.
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

    /// The rules of a block. The last ones stay in force.
    pub fn of(number: u64, blocks_per_era: u64) -> Self {
        let index = usize::try_from(number / blocks_per_era).unwrap_or(usize::MAX);
        Self::ALL[index.min(Self::ALL.len() - 1)]
    }

    /// The first block under these rules; the genesis for the first of them.
    pub const fn first_block(self, blocks_per_era: u64) -> u64 {
        self as u64 * blocks_per_era
    }
}

/// The configuration of a chain that spends so many blocks of difficulty [`DIFFICULTY_MIN`] in each era but the last.
/// `timestamp` says when a block is made.
pub fn fork_schedule(chain_id: u64, blocks_per_era: u64, timestamp: impl Fn(u64) -> u64) -> ChainConfig {
    let block = |era: Era| Some(era.first_block(blocks_per_era));
    let time = |era: Era| block(era).map(&timestamp);
    let proof_of_work_blocks = Era::Paris.first_block(blocks_per_era);
    ChainConfig {
        chain_id,
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
        terminal_total_difficulty: Some(U256::from(DIFFICULTY_MIN * proof_of_work_blocks)),
        shanghai_time: time(Era::Shanghai),
        cancun_time: time(Era::Cancun),
        prague_time: time(Era::Prague),
        osaka_time: time(Era::Osaka),
        bpo1_time: time(Era::Bpo1),
        bpo2_time: time(Era::Bpo2),
        ..ChainConfig::default()
    }
}
