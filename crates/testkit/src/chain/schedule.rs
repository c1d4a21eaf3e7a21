//! A compressed history of Ethereum: a fork every few blocks.

use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{Address, Bytes, U256};
use chain_builder::{DIFFICULTY_MIN, fork_schedule};

/// Seconds between blocks. Slow enough that the difficulty falls to its minimum and stays there, whatever uncles do,
/// so that the total difficulty is known beforehand.
const BLOCK_TIME_S: u64 = 20;

const GENESIS_TIME: u64 = 1_000_000;

const GAS_LIMIT: u64 = 30_000_000;

/// When a block is made.
pub(super) fn timestamp(number: u64) -> u64 {
    GENESIS_TIME + number * BLOCK_TIME_S
}

/// A genesis with a fork every few blocks, and these accounts.
pub(super) fn genesis_with(
    blocks_per_fork: u64,
    accounts: impl IntoIterator<Item = (Address, GenesisAccount)>,
) -> Genesis {
    Genesis {
        config: fork_schedule(1337, blocks_per_fork, timestamp),
        timestamp: GENESIS_TIME,
        extra_data: Bytes::from_static(b"a fork every few blocks"),
        gas_limit: GAS_LIMIT,
        difficulty: U256::from(DIFFICULTY_MIN),
        ..Genesis::default()
    }
    .extend_accounts(accounts)
}
