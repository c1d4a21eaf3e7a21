//! A header against what the execution of its block gave.

use super::{
    BlockFault,
    body::check_hash,
    header::{equal, present},
};
use alloy_consensus::Header;
use alloy_primitives::{B256, Bloom};

/// What the execution of a block gave, as far as its header says it too.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// Gas that the transactions used.
    pub(crate) gas_used: u64,
    /// Root of the trie of receipts.
    pub(crate) receipts_root: B256,
    /// Bloom filter of all logs.
    pub(crate) logs_bloom: Bloom,
    /// Blob gas that the transactions used; 0 before Cancun.
    pub(crate) blob_gas_used: u64,
    /// Hash of the requests to the beacon chain; not looked at before Prague.
    pub(crate) requests_hash: Option<B256>,
    /// Root of the state after the block.
    pub(crate) state_root: B256,
}

/// Checks what execution gave against what the header says.
///
/// The cheapest clue comes first: a wrong amount of gas says more about where to look than a wrong state
/// root.
pub(crate) fn check_outcome(header: &Header, outcome: &Outcome) -> Result<(), BlockFault> {
    equal("gas used", header.gas_used, outcome.gas_used)?;
    equal("blob gas used", header.blob_gas_used.unwrap_or_default(), outcome.blob_gas_used)?;
    check_hash("receipts root", header.receipts_root, outcome.receipts_root)?;
    if header.logs_bloom != outcome.logs_bloom {
        let (expected, found) = (Box::new(header.logs_bloom), Box::new(outcome.logs_bloom));
        return Err(BlockFault::Bloom { expected, found });
    }
    check_if_stated("requests hash", "Prague", header.requests_hash, outcome.requests_hash)?;
    check_hash("state root", header.state_root, outcome.state_root)
}

/// A hash that headers carry only since a fork. Whether it may be there was checked before execution.
fn check_if_stated(
    field: &'static str,
    fork: &'static str,
    stated: Option<B256>,
    found: Option<B256>,
) -> Result<(), BlockFault> {
    let Some(expected) = stated else { return Ok(()) };
    present(field, fork, true, found.is_some())?;
    check_hash(field, expected, found.unwrap_or_default())
}
