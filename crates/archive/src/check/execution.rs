//! Compares a header with the execution of its block.

use super::{
    BlockFault,
    body::check_hash,
    header::{equal, present},
};
use alloy_consensus::Header;
use alloy_primitives::{B256, Bloom};

/// The values of an executed block that its header commits to.
#[derive(Debug, Clone)]
pub(crate) struct ExecutionSummary {
    pub(crate) gas_used: u64,
    pub(crate) receipts_root: B256,
    pub(crate) logs_bloom: Bloom,
    /// Blob gas that the transactions used; 0 before Cancun.
    pub(crate) blob_gas_used: u64,
    /// Hash of the requests to the beacon chain; ignored before Prague.
    pub(crate) requests_hash: Option<B256>,
    /// Root of the state after the block.
    pub(crate) state_root: B256,
}

/// Checks what execution gave against what the header says.
///
/// The most specific difference is reported first: a wrong amount of gas says more about the cause than a wrong state
/// root.
pub(crate) fn check_execution(header: &Header, summary: &ExecutionSummary) -> Result<(), BlockFault> {
    equal("gas used", header.gas_used, summary.gas_used)?;
    equal("blob gas used", header.blob_gas_used.unwrap_or_default(), summary.blob_gas_used)?;
    check_hash("receipts root", header.receipts_root, summary.receipts_root)?;
    if header.logs_bloom != summary.logs_bloom {
        let (expected, found) = (Box::new(header.logs_bloom), Box::new(summary.logs_bloom));
        return Err(BlockFault::Bloom { expected, found });
    }
    check_if_stated("requests hash", "Prague", header.requests_hash, summary.requests_hash)?;
    check_hash("state root", header.state_root, summary.state_root)
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
