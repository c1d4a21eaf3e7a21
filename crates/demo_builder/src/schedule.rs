//! The fork schedule: all forks of Ethereum within a few hours, and the genesis that states it.

use super::accounts::ACCOUNTS;
use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{Bytes, U256};
use chain_builder::{DIFFICULTY_MIN, Era, fork_schedule, system_contracts};

/// No public network has this number.
pub(super) const CHAIN_ID: u64 = 1_337_255;

/// Midnight of 2025-01-01 in UTC. The past, so that no clock is ever behind the chain.
const GENESIS_TIME: u64 = 1_735_689_600;

/// Seconds between blocks while there is proof of work. Slow enough that the difficulty stays at its minimum
/// whatever uncles do, so that the total difficulty of the merge is known beforehand.
const WORK_BLOCK_TIME_S: u64 = 20;

/// Seconds between blocks after the merge.
const STAKE_BLOCK_TIME_S: u64 = 12;

/// London doubles it. A block at its target is then one transaction within the limit that Osaka sets.
const GAS_LIMIT: u64 = 8_000_000;

/// Ether that each account has from the start.
const ETHER_EACH: u64 = 10_000;

/// The number of blocks of each fork but the last.
const BLOCKS_PER_ERA: u64 = 8;

/// The first block under these rules; the genesis for the first of them.
pub(super) const fn first_block(era: Era) -> u64 {
    era.first_block(BLOCKS_PER_ERA)
}

/// The rules of a block.
pub(super) fn era_of(number: u64) -> Era {
    Era::of(number, BLOCKS_PER_ERA)
}

/// When a block is made, in seconds since 1970.
pub(super) fn timestamp(number: u64) -> u64 {
    let last_work = first_block(Era::Paris) - 1;
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
        config: fork_schedule(CHAIN_ID, BLOCKS_PER_ERA, timestamp),
        timestamp: GENESIS_TIME,
        extra_data: Bytes::from_static(b"Chaingate demo chain 1"),
        gas_limit: GAS_LIMIT,
        difficulty: U256::from(DIFFICULTY_MIN),
        ..Genesis::default()
    }
    .extend_accounts(people.chain(system_contracts()))
}
