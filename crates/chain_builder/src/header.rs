//! The fields of a header that follow from its parent and from the rules in force.

use alloy_consensus::Header;
use alloy_eips::eip1559::{BaseFeeParams, DEFAULT_ELASTICITY_MULTIPLIER, INITIAL_BASE_FEE};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::U256;
use archive::{BlockRules, ChainSpec};

/// No proof-of-work block has less.
const DIFFICULTY_MIN: u64 = 131_072;

/// One step of difficulty is this part of the parent's.
const DIFFICULTY_DIVISOR: u64 = 2048;

/// The gas limit that a block has if nobody votes for another: its parent's, doubled where London begins because
/// from there on half of it is the target.
pub(crate) fn gas_limit(rules: BlockRules<'_>, parent: &Header) -> u64 {
    let london_begins =
        rules.is_london_active_at_block(parent.number + 1) && parent.base_fee_per_gas.is_none();
    if london_begins {
        parent.gas_limit.saturating_mul(DEFAULT_ELASTICITY_MULTIPLIER)
    } else {
        parent.gas_limit
    }
}

/// The base fee (EIP-1559); none before London.
pub(crate) fn base_fee(rules: BlockRules<'_>, parent: &Header) -> Option<u64> {
    rules
        .is_london_active_at_block(parent.number + 1)
        .then(|| parent.next_block_base_fee(BaseFeeParams::ethereum()).unwrap_or(INITIAL_BASE_FEE))
}

/// The excess blob gas (EIP-4844, EIP-7918) by the parameters at the block's own time; none before Cancun.
pub(crate) fn excess_blob_gas(spec: &ChainSpec, parent: &Header, timestamp: u64) -> Option<u64> {
    let params = spec.blob_params_at(timestamp)?;
    Some(parent.next_block_excess_blob_gas(params).unwrap_or_default())
}

/// The difficulty of a block before the merge.
///
/// Without the difficulty bomb, which no chain shorter than 200,000 blocks feels.
pub(crate) fn difficulty(rules: BlockRules<'_>, parent: &Header, timestamp: u64) -> U256 {
    let number = parent.number + 1;
    let elapsed = timestamp.saturating_sub(parent.timestamp);
    let (up, down) = if rules.is_byzantium_active_at_block(number) {
        (if parent.ommers_hash_is_empty() { 1 } else { 2 }, elapsed / 9)
    } else if rules.is_homestead_active_at_block(number) {
        (1, elapsed / 10)
    } else if elapsed < 13 {
        (1, 0)
    } else {
        (0, 1)
    };
    let step = parent.difficulty / U256::from(DIFFICULTY_DIVISOR);
    let raised = parent.difficulty + step * U256::from(up.max(down) - down);
    let lowered = raised.saturating_sub(step * U256::from((down - down.min(up)).min(99)));
    lowered.max(U256::from(DIFFICULTY_MIN))
}
