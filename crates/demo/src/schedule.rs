//! When what is in force: all of Ethereum's history in a few hours, and the genesis that says so.

use super::accounts::ACCOUNTS;
use alloy_genesis::{ChainConfig, Genesis, GenesisAccount};
use alloy_primitives::{Bytes, U256};
use chain_builder::system_contracts;

/// No public network has this number.
pub const CHAIN_ID: u64 = 1_337_255;

/// Midnight of 2025-01-01 in UTC. The past, so that no clock is ever behind the chain.
const GENESIS_TIME: u64 = 1_735_689_600;

/// Seconds between blocks while there is proof of work. Slow enough that the difficulty stays at its minimum
/// whatever uncles do, so that the total difficulty of the merge is known beforehand.
const WORK_BLOCK_TIME_S: u64 = 20;

/// Seconds between blocks after the merge.
const STAKE_BLOCK_TIME_S: u64 = 12;

/// The least that a block can have.
const DIFFICULTY: u64 = 131_072;

/// London doubles it. A block at its target is then one transaction within the limit that Osaka sets.
const GAS_LIMIT: u64 = 8_000_000;

/// Ether that each account has from the start.
const ETHER_EACH: u64 = 10_000;

/// All forks but the last have as many blocks.
const BLOCKS_PER_ERA: u64 = 8;

/// The rules in force at a block. Each builds on the ones before it.
///
/// The DAO fork is left out because it is about accounts that only mainnet has. Constantinople comes with its repair,
/// Petersburg, as it did on mainnet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are Ethereum's")]
pub enum Era {
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

    /// The first block under these rules; the genesis for the first of them.
    pub const fn first_block(self) -> u64 {
        self as u64 * BLOCKS_PER_ERA
    }

    /// The rules of a block.
    pub fn of(number: u64) -> Self {
        let index = usize::try_from(number / BLOCKS_PER_ERA).unwrap_or(usize::MAX);
        Self::ALL.get(index).copied().unwrap_or(Self::Bpo2)
    }
}

/// When a block is made, in seconds since 1970.
pub(super) fn timestamp(number: u64) -> u64 {
    let last_work = Era::Paris.first_block() - 1;
    let work = number.min(last_work) * WORK_BLOCK_TIME_S;
    let stake = number.saturating_sub(last_work) * STAKE_BLOCK_TIME_S;
    GENESIS_TIME + work + stake
}

/// The genesis of the demo chain.
pub fn genesis() -> Genesis {
    let balance = U256::from(ETHER_EACH) * U256::from(10).pow(U256::from(18));
    let people = ACCOUNTS
        .iter()
        .map(|account| (account.address, GenesisAccount { balance, ..GenesisAccount::default() }));
    Genesis {
        config: config(),
        timestamp: GENESIS_TIME,
        extra_data: Bytes::from_static(b"Chaingate demo chain 1"),
        gas_limit: GAS_LIMIT,
        difficulty: U256::from(DIFFICULTY),
        ..Genesis::default()
    }
    .extend_accounts(people.chain(system_contracts()))
}

fn config() -> ChainConfig {
    let block = |era: Era| Some(era.first_block());
    let time = |era: Era| Some(timestamp(era.first_block()));
    ChainConfig {
        chain_id: CHAIN_ID,
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
        terminal_total_difficulty: Some(U256::from(DIFFICULTY * Era::Paris.first_block())),
        shanghai_time: time(Era::Shanghai),
        cancun_time: time(Era::Cancun),
        prague_time: time(Era::Prague),
        osaka_time: time(Era::Osaka),
        bpo1_time: time(Era::Bpo1),
        bpo2_time: time(Era::Bpo2),
        ..ChainConfig::default()
    }
}
