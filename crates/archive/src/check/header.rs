//! A header against its parent.

use super::BlockFault;
use crate::chain::fees::{expected_base_fee, expected_excess_blob_gas};
use crate::chain::{BlockRules, ChainSpec};
use alloy_consensus::{Header, Sealed, constants::MAXIMUM_EXTRA_DATA_SIZE};
use alloy_eips::{
    eip1559::{DEFAULT_ELASTICITY_MULTIPLIER, GAS_LIMIT_BOUND_DIVISOR},
    eip4844::DATA_GAS_PER_BLOB,
};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Bytes, U256};

/// The yellow paper's lower bound.
const GAS_LIMIT_MIN: u64 = 5_000;

/// geth's upper bound: gas is counted in signed 64-bit numbers in places.
const GAS_LIMIT_MAX: u64 = i64::MAX as u64;

/// Extra data by which blocks of the side that supports the DAO fork are marked.
const DAO_EXTRA_DATA: &[u8] = b"dao-hard-fork";

/// Number of blocks, the fork block included, that must carry the extra data.
const DAO_EXTRA_DATA_BLOCKS: u64 = 10;

/// The block is the one after its parent.
pub(super) fn check_link(parent: &Sealed<Header>, header: &Header) -> Result<(), BlockFault> {
    equal("number", parent.number.saturating_add(1), header.number)?;
    if header.parent_hash != parent.hash() {
        let (expected, found) = (parent.hash(), header.parent_hash);
        return Err(BlockFault::Hash { field: "parent hash", expected, found });
    }
    Ok(())
}

/// Proof of work ends with the block that reaches the terminal total difficulty.
pub(super) fn check_merge(chain: &ChainSpec, total: U256, header: &Header) -> Result<(), BlockFault> {
    let terminal = chain.terminal_total_difficulty().filter(|terminal| total >= *terminal);
    let found = header.difficulty;
    match terminal {
        Some(terminal) if !found.is_zero() => Err(BlockFault::Merged { total, terminal, found }),
        Some(_) if !header.nonce.is_zero() => Err(BlockFault::Nonce { found: header.nonce }),
        None if found.is_zero() => Err(BlockFault::NotMerged { total }),
        _ => Ok(()),
    }
}

/// Everything in a header that follows from its parent alone. Holds for uncles too.
pub(super) fn check_header(chain: &ChainSpec, parent: &Header, header: &Header) -> Result<(), BlockFault> {
    let rules = chain.rules_at(header);
    if header.timestamp <= parent.timestamp {
        let (parent, found) = (parent.timestamp, header.timestamp);
        return Err(BlockFault::Above { field: "timestamp", parent, found });
    }
    check_extra_data(chain, rules, header)?;
    check_gas(rules, parent, header)?;
    check_forks_by_time(rules, header)?;
    check_blob_gas(chain, parent, header)
}

impl ChainSpec {
    /// Whether the block with this header may run by these rules: it has the members of its fork and no others. A later fork that
    /// changes no header cannot be told from here.
    pub fn covers(&self, header: &Header) -> bool {
        let rules = self.rules_at(header);
        check_base_fee_presence(rules, header).and_then(|()| check_forks_by_time(rules, header)).is_ok()
    }
}

fn check_base_fee_presence(rules: BlockRules<'_>, header: &Header) -> Result<(), BlockFault> {
    let london = rules.is_london_active_at_block(header.number);
    present("base fee", "London", london, header.base_fee_per_gas.is_some())
}

fn check_extra_data(chain: &ChainSpec, rules: BlockRules<'_>, header: &Header) -> Result<(), BlockFault> {
    let found = &header.extra_data;
    at_most("extra data bytes", MAXIMUM_EXTRA_DATA_SIZE as u64, found.len() as u64)?;
    let since_fork = chain.config().dao_fork_block.and_then(|fork| header.number.checked_sub(fork));
    if rules.merged() || since_fork.is_none_or(|blocks| blocks >= DAO_EXTRA_DATA_BLOCKS) {
        return Ok(());
    }
    match (chain.config().dao_fork_support, found.as_ref() == DAO_EXTRA_DATA) {
        (true, false) => {
            Err(BlockFault::DaoSupport { expected: Bytes::from_static(DAO_EXTRA_DATA), found: found.clone() })
        }
        (false, true) => Err(BlockFault::DaoRefusal { found: found.clone() }),
        _ => Ok(()),
    }
}

fn check_gas(rules: BlockRules<'_>, parent: &Header, header: &Header) -> Result<(), BlockFault> {
    let london = rules.is_london_active_at_block(header.number);
    let first_of_london = london && !rules.is_london_active_at_block(parent.number);
    // EIP-1559 aims at half of the limit, so the fork block doubles it to keep aiming at the same.
    let factor = if first_of_london { DEFAULT_ELASTICITY_MULTIPLIER } else { 1 };
    let before = parent.gas_limit.saturating_mul(factor);
    let step = (before / GAS_LIMIT_BOUND_DIVISOR).saturating_sub(1);
    let min = before.saturating_sub(step).max(GAS_LIMIT_MIN);
    let max = before.saturating_add(step).min(GAS_LIMIT_MAX);
    let found = header.gas_limit;
    if found < min || found > max {
        return Err(BlockFault::Range { field: "gas limit", min, max, found });
    }
    at_most("gas used", header.gas_limit, header.gas_used)?;
    check_base_fee_presence(rules, header)?;
    match (expected_base_fee(rules, parent), header.base_fee_per_gas) {
        (Some(expected), Some(found)) => equal("base fee", expected, found),
        _ => Ok(()),
    }
}

/// The fields that came with Shanghai and later forks, which only blocks without proof of work can have.
fn check_forks_by_time(rules: BlockRules<'_>, header: &Header) -> Result<(), BlockFault> {
    let time = header.timestamp;
    let shanghai = rules.is_shanghai_active_at_timestamp(time);
    if shanghai && !rules.merged() {
        let found = header.difficulty;
        return Err(BlockFault::ForkBeforeMerge { fork: "Shanghai", time, found });
    }
    let cancun = rules.is_cancun_active_at_timestamp(time);
    let prague = rules.is_prague_active_at_timestamp(time);
    let beacon_root = header.parent_beacon_block_root.is_some();
    present("withdrawals root", "Shanghai", shanghai, header.withdrawals_root.is_some())?;
    present("blob gas used", "Cancun", cancun, header.blob_gas_used.is_some())?;
    present("excess blob gas", "Cancun", cancun, header.excess_blob_gas.is_some())?;
    present("parent beacon block root", "Cancun", cancun, beacon_root)?;
    present("requests hash", "Prague", prague, header.requests_hash.is_some())?;
    // No genesis with Amsterdam is accepted, so no header may have its fields.
    present("block access list hash", "Amsterdam", false, header.block_access_list_hash.is_some())?;
    present("slot number", "Amsterdam", false, header.slot_number.is_some())
}

fn check_blob_gas(chain: &ChainSpec, parent: &Header, header: &Header) -> Result<(), BlockFault> {
    if let (Some(params), Some(found)) = (chain.blob_params_at(header.timestamp), header.blob_gas_used) {
        at_most("blob gas used", params.max_blob_gas_per_block(), found)?;
        if !found.is_multiple_of(DATA_GAS_PER_BLOB) {
            return Err(BlockFault::Multiple { field: "blob gas used", unit: DATA_GAS_PER_BLOB, found });
        }
    }
    let expected = expected_excess_blob_gas(chain, parent, header.timestamp);
    match (expected, header.excess_blob_gas) {
        (Some(expected), Some(found)) => equal("excess blob gas", expected, found),
        _ => Ok(()),
    }
}

pub(super) fn equal(field: &'static str, expected: u64, found: u64) -> Result<(), BlockFault> {
    if expected == found { Ok(()) } else { Err(BlockFault::Number { field, expected, found }) }
}

pub(super) fn at_most(field: &'static str, max: u64, found: u64) -> Result<(), BlockFault> {
    if found <= max { Ok(()) } else { Err(BlockFault::AtMost { field, max, found }) }
}

/// A field is there exactly when its fork is in force.
pub(super) fn present(
    field: &'static str,
    fork: &'static str,
    expected: bool,
    found: bool,
) -> Result<(), BlockFault> {
    match (expected, found) {
        (true, false) => Err(BlockFault::Missing { field, fork }),
        (false, true) => Err(BlockFault::TooEarly { field, fork }),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests say what went wrong by failing")]
mod tests {
    use alloy_primitives::B256;

    use super::*;

    /// A private chain with the id of a public network ran by the rules of that network, and answers were called proven: its
    /// headers are those of an older fork.
    #[test]
    fn a_header_with_members_of_another_fork_is_not_covered() {
        let mainnet = ChainSpec::of_network(1).unwrap();
        let frontier = Header { difficulty: U256::from(1), ..Header::default() };
        let london = Header { number: 13_000_000, base_fee_per_gas: Some(7), ..frontier.clone() };
        let shanghai = Header {
            number: 18_000_000,
            timestamp: 1_690_000_000,
            base_fee_per_gas: Some(7),
            withdrawals_root: Some(B256::ZERO),
            ..Header::default()
        };
        let cancun = Header {
            timestamp: 1_720_000_000,
            blob_gas_used: Some(0),
            excess_blob_gas: Some(0),
            parent_beacon_block_root: Some(B256::ZERO),
            ..shanghai.clone()
        };
        let prague = Header { timestamp: 1_800_000_000, requests_hash: Some(B256::ZERO), ..cancun.clone() };
        for header in [&frontier, &london, &shanghai, &cancun, &prague] {
            assert!(mainnet.covers(header), "{header:?}");
            let now = Header { timestamp: 1_800_000_000, ..header.clone() };
            assert_eq!(mainnet.covers(&now), header == &prague, "{header:?}");
            assert!(!mainnet.covers(&Header { slot_number: Some(1), ..header.clone() }));
        }
        assert!(!mainnet.covers(&Header { blob_gas_used: None, ..prague }));
    }
}
