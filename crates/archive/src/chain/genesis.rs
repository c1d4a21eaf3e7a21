//! Block 0: the one block that is not read from a file.

use super::GenesisError;
use alloy_consensus::{Header, constants::EMPTY_WITHDRAWALS};
use alloy_eips::{eip1559::INITIAL_BASE_FEE, eip7685::EMPTY_REQUESTS_HASH};
use alloy_genesis::Genesis;
use alloy_primitives::{B64, B256};
use alloy_trie::root::state_root_ref_unhashed;

/// Geth puts this in place of a gas limit of 0.
const GAS_LIMIT_DEFAULT: u64 = 4_712_388;

/// Blob gas that no chain reaches, and that leaves room for the fee formulas in 64 bits.
pub(super) const BLOB_GAS_MAX: u64 = 1 << 40;

/// Refuses values that no header can hold.
pub(super) fn check_fields(genesis: &Genesis) -> Result<(), GenesisError> {
    let refuse_above = |field, max: u64, expected, found: Option<u128>| match found {
        Some(found) if found > u128::from(max) => Err(GenesisError::Field { field, expected, found }),
        _ => Ok(()),
    };
    let wide = |value: Option<u64>| value.map(u128::from);
    refuse_above("number", 0, "0", wide(genesis.number))?;
    refuse_above("baseFeePerGas", u64::MAX, "a number of 64 bits", genesis.base_fee_per_gas)?;
    refuse_above("excessBlobGas", BLOB_GAS_MAX, "at most 2^40", wide(genesis.excess_blob_gas))?;
    refuse_above("blobGasUsed", BLOB_GAS_MAX, "at most 2^40", wide(genesis.blob_gas_used))
}

/// The header of block 0, field by field as geth fills it.
pub(super) fn header(genesis: &Genesis) -> Header {
    let config = &genesis.config;
    let from_start = |time: Option<u64>| time.is_some_and(|time| time <= genesis.timestamp);
    let london = config.london_block == Some(0);
    let cancun = from_start(config.cancun_time);
    Header {
        parent_hash: genesis.parent_hash.unwrap_or_default(),
        beneficiary: genesis.coinbase,
        state_root: state_root_ref_unhashed(&genesis.alloc),
        difficulty: genesis.difficulty,
        gas_limit: if genesis.gas_limit == 0 { GAS_LIMIT_DEFAULT } else { genesis.gas_limit },
        timestamp: genesis.timestamp,
        extra_data: genesis.extra_data.clone(),
        mix_hash: genesis.mix_hash,
        nonce: B64::from(genesis.nonce),
        base_fee_per_gas: london.then(|| base_fee(genesis)),
        withdrawals_root: from_start(config.shanghai_time).then_some(EMPTY_WITHDRAWALS),
        blob_gas_used: cancun.then(|| genesis.blob_gas_used.unwrap_or_default()),
        excess_blob_gas: cancun.then(|| genesis.excess_blob_gas.unwrap_or_default()),
        parent_beacon_block_root: cancun.then_some(B256::ZERO),
        requests_hash: from_start(config.prague_time).then_some(EMPTY_REQUESTS_HASH),
        ..Header::default()
    }
}

fn base_fee(genesis: &Genesis) -> u64 {
    genesis.base_fee_per_gas.and_then(|fee| u64::try_from(fee).ok()).unwrap_or(INITIAL_BASE_FEE)
}
