//! Transactions, uncles and withdrawals against the header that sums them up.

use super::{
    BlockFault, TransactionFault,
    header::{at_most, equal, present},
};
use crate::chain::{Block, BlockRules, ChainSpec, Transaction};
use alloy_consensus::{
    Transaction as _, TxType,
    proofs::{calculate_ommers_root, calculate_transaction_root, calculate_withdrawals_root},
};
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::B256;
use alloy_rlp::Encodable;

/// EIP-7934: 10 MiB is what the gossip of the beacon chain carries, and 2 MiB are reserved for the beacon block.
const BLOCK_RLP_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The body is the one that the header promises, and nothing in it is younger than the block.
pub(super) fn check_body(chain: &ChainSpec, block: &Block) -> Result<(), BlockFault> {
    let (header, body) = (&block.header, &block.body);
    let rules = chain.rules_at(header);
    if rules.is_osaka_active_at_timestamp(header.timestamp) {
        at_most("block size in bytes", BLOCK_RLP_BYTES_MAX, block.length() as u64)?;
    }
    check_hash("uncles hash", header.ommers_hash, calculate_ommers_root(&body.ommers))?;
    let transactions_root = calculate_transaction_root(&body.transactions);
    check_hash("transactions root", header.transactions_root, transactions_root)?;
    let shanghai = rules.is_shanghai_active_at_timestamp(header.timestamp);
    present("withdrawals", "Shanghai", shanghai, body.withdrawals.is_some())?;
    if let (Some(expected), Some(withdrawals)) = (header.withdrawals_root, &body.withdrawals) {
        check_hash("withdrawals root", expected, calculate_withdrawals_root(withdrawals))?;
    }
    for (index, transaction) in body.transactions.iter().enumerate() {
        check_transaction(chain, rules, block, transaction)
            .map_err(|fault| BlockFault::Transaction { index, fault })?;
    }
    let blobs: u64 = body.transactions.iter().filter_map(Transaction::blob_count).sum();
    equal("blob gas used", header.blob_gas_used.unwrap_or_default(), blobs.saturating_mul(DATA_GAS_PER_BLOB))
}

fn check_transaction(
    chain: &ChainSpec,
    rules: BlockRules<'_>,
    block: &Block,
    transaction: &Transaction,
) -> Result<(), TransactionFault> {
    let (number, time) = (block.header.number, block.header.timestamp);
    let (fork, in_force) = match transaction.tx_type() {
        TxType::Legacy => ("Frontier", true),
        TxType::Eip2930 => ("Berlin", rules.is_berlin_active_at_block(number)),
        TxType::Eip1559 => ("London", rules.is_london_active_at_block(number)),
        TxType::Eip4844 => ("Cancun", rules.is_cancun_active_at_timestamp(time)),
        TxType::Eip7702 => ("Prague", rules.is_prague_active_at_timestamp(time)),
    };
    if !in_force {
        return Err(TransactionFault::Type { fork, found: transaction.tx_type().into() });
    }
    let Some(found) = transaction.chain_id() else { return Ok(()) };
    if !chain.config().is_eip155_active_at_block(number) {
        return Err(TransactionFault::Protected { found });
    }
    if found != chain.chain_id() {
        return Err(TransactionFault::ChainId { expected: chain.chain_id(), found });
    }
    Ok(())
}

pub(super) fn check_hash(field: &'static str, expected: B256, found: B256) -> Result<(), BlockFault> {
    if expected == found { Ok(()) } else { Err(BlockFault::Hash { field, expected, found }) }
}
