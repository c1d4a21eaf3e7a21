//! The base fee and the blob gas that follow from a block's parent.

use super::genesis::BLOB_GAS_MAX;
use super::{BlockRules, ChainSpec};
use alloy_consensus::Header;
use alloy_eips::eip1559::{
    DEFAULT_BASE_FEE_MAX_CHANGE_DENOMINATOR, DEFAULT_ELASTICITY_MULTIPLIER, INITIAL_BASE_FEE,
};
use alloy_eips::eip7840::BlobParams;
use alloy_hardforks::EthereumHardforks;

/// The base fee of the block after a parent; none before London.
pub(crate) fn expected_base_fee(rules: BlockRules<'_>, parent: &Header) -> Option<u64> {
    if !rules.is_london_active_at_block(parent.number.saturating_add(1)) {
        return None;
    }
    match parent.base_fee_per_gas {
        Some(base_fee) if rules.is_london_active_at_block(parent.number) => {
            Some(next_base_fee(parent.gas_used, parent.gas_limit, base_fee))
        }
        _ => Some(INITIAL_BASE_FEE),
    }
}

/// The base fee of the block after one with this gas and base fee, by the formula of EIP-1559.
///
/// It is computed in 128 bits, because an artificial chain can raise the fee beyond 64 bits; the result stays at the
/// largest number of 64 bits.
pub fn next_base_fee(gas_used: u64, gas_limit: u64, base_fee: u64) -> u64 {
    let target = gas_limit / DEFAULT_ELASTICITY_MULTIPLIER;
    if target == 0 {
        return base_fee;
    }
    let change = |gas: u64| {
        let by_target = u128::from(base_fee) * u128::from(gas) / u128::from(target);
        by_target / u128::from(DEFAULT_BASE_FEE_MAX_CHANGE_DENOMINATOR)
    };
    let base_fee = u128::from(base_fee);
    let next = if gas_used > target {
        base_fee + change(gas_used - target).max(1)
    } else {
        base_fee - change(target - gas_used)
    };
    u64::try_from(next).unwrap_or(u64::MAX)
}

/// The excess blob gas of the block at `timestamp` after a parent; none before Cancun.
///
/// The parameters are the child's, as in geth. Those from Osaka on carry the reserve price of EIP-7918.
pub(crate) fn expected_excess_blob_gas(chain: &ChainSpec, parent: &Header, timestamp: u64) -> Option<u64> {
    let params = chain.blob_params_at(timestamp)?;
    Some(next_excess_blob_gas(
        &params,
        parent.excess_blob_gas.unwrap_or_default(),
        parent.blob_gas_used.unwrap_or_default(),
        parent.base_fee_per_gas.unwrap_or_default(),
    ))
}

/// The excess blob gas of the block after one with this blob gas and base fee. More blob gas than any chain reaches counts as so much:
/// the blob fee is the largest number either way.
pub fn next_excess_blob_gas(params: &BlobParams, excess: u64, used: u64, base_fee: u64) -> u64 {
    params.next_block_excess_blob_gas_osaka(excess.min(BLOB_GAS_MAX), used.min(BLOB_GAS_MAX), base_fee)
}
