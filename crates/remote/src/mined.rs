//! Proven blocks as the JSON writers take them. What no root commits to is computed here.

use alloy_consensus::{Eip658Value, Header, Transaction as _, Typed2718};
use alloy_eips::eip7840::BlobParams;
use alloy_primitives::{B256, TxKind};
use alloy_rlp::{Encodable, list_length};
use archive::{ChainSpec, InBlock, ReceiptData, ReceiptRow, Recipient, TransactionOutcome};
use nodes::proven::{FeeFields, ProvenBody, ProvenReceipts, ProvenUncles};
use sources::{
    AnswerBudget, BlockFields, Failure, Json, LogFields, LogWriter, MinedTransaction, write_block,
    write_receipt, write_transaction,
};

/// The blob fee per gas in a block.
pub(super) fn blob_fee(chain_id: Option<u64>, header: &Header) -> u128 {
    let excess = header.excess_blob_gas;
    excess.map_or(0, |excess| blob_params(chain_id, &header.into()).calc_blob_fee(excess))
}

/// Whether the blob parameters of a chain are known for all of its blocks.
pub(super) fn knows_blob_params(chain_id: Option<u64>) -> bool {
    chain_id.and_then(ChainSpec::genesis_of_network).is_some()
}

/// The blob parameters of a block. A header does not say which are in force: they are those of its fork, and those that
/// public networks have scheduled.
pub(super) fn blob_params(chain_id: Option<u64>, header: &FeeFields) -> BlobParams {
    let scheduled = chain_id.and_then(|id| ChainSpec::scheduled_blob_params(id, header.timestamp));
    let of_fork = if header.has_requests { BlobParams::prague() } else { BlobParams::cancun() };
    scheduled.unwrap_or(of_fork)
}

pub(super) fn write_whole_block(
    body: &ProvenBody,
    uncles: &ProvenUncles,
    full: bool,
    budget: &AnswerBudget,
    json: &mut Json<'_>,
) -> Result<(), Failure> {
    let block = BlockFields {
        header: body.header(),
        hash: body.hash(),
        total_difficulty: None,
        size: size(body, uncles) as u64,
        uncles: uncles.headers(),
        withdrawals: body.withdrawals(),
    };
    write_block(&block, json, |json| {
        let mut outcome = Ok(());
        json.list(body.transactions().iter().enumerate(), |json, (index, transaction)| {
            if full && outcome.is_ok() {
                let written = write_mined_transaction(body, index, json);
                outcome = written.and_then(|()| budget.proceed(json.0.capacity()));
            } else if !full {
                json.data(transaction.tx_hash().as_slice());
            }
        });
        outcome
    })
}

/// Writes a transaction of a block, which must be there.
pub(super) fn write_mined_transaction(
    body: &ProvenBody,
    index: usize,
    json: &mut Json<'_>,
) -> Result<(), Failure> {
    let (Some(transaction), Some(sender)) = (body.transactions().get(index), body.sender(index)) else {
        return Err(no_sender(body, index));
    };
    let hash = *transaction.tx_hash();
    let mined = MinedTransaction { transaction, hash, sender, index: index as u32, block: in_block(body) };
    write_transaction(&mined, json);
    Ok(())
}

/// Writes the receipt of a transaction of a block, which must be there.
pub(super) fn write_mined_receipt(
    body: &ProvenBody,
    receipts: &ProvenReceipts,
    index: usize,
    blob_fee: u128,
    logs: &mut LogWriter,
    json: &mut Json<'_>,
) -> Result<(), Failure> {
    let data = receipt_data(body, receipts, index, blob_fee).ok_or_else(|| no_sender(body, index))?;
    write_receipt(&data, json, |json| {
        let mut separator: &[u8] = b"[";
        each_log(body, receipts, index, |log| {
            json.raw(separator);
            separator = b",";
            logs.write(&log, json);
        });
        json.raw(if data.row.logs == 0 { b"[]" } else { b"]" });
        Ok(())
    })
}

/// Hands over the logs of one transaction, in their order.
pub(super) fn each_log(
    body: &ProvenBody,
    receipts: &ProvenReceipts,
    index: usize,
    mut take: impl FnMut(LogFields<'_, B256>),
) {
    let (Some(receipt), Some(transaction)) = (receipts.get(index), body.transactions().get(index)) else {
        return;
    };
    let (header, block_hash) = (body.header(), body.hash());
    for (log, log_index) in receipt.logs.iter().zip(receipt.first_log..) {
        take(LogFields {
            block_number: header.number,
            block_hash: &block_hash,
            block_timestamp: header.timestamp,
            transaction_index: index as u32,
            transaction_hash: &transaction.tx_hash().0,
            log_index,
            address: &log.address.0.0,
            topics: log.data.topics(),
            data: &log.data.data,
        });
    }
}

fn receipt_data(
    body: &ProvenBody,
    receipts: &ProvenReceipts,
    index: usize,
    blob_fee: u128,
) -> Option<ReceiptData> {
    let (receipt, transaction) = (receipts.get(index)?, body.transactions().get(index)?);
    let sender = body.sender(index)?;
    let to = match transaction.kind() {
        TxKind::Call(address) => Recipient::Called(address),
        TxKind::Create => Recipient::Created(sender.create(transaction.nonce())),
    };
    let blob_gas_used = transaction.blob_gas_used().unwrap_or(0);
    let row = ReceiptRow {
        transaction_type: transaction.ty(),
        outcome: match receipt.outcome {
            Eip658Value::Eip658(success) => TransactionOutcome::Status(success),
            Eip658Value::PostState(root) => TransactionOutcome::Root(root),
        },
        cumulative_gas_used: receipt.cumulative_gas_used,
        gas_used: receipt.gas_used,
        effective_gas_price: transaction.effective_gas_price(body.header().base_fee_per_gas),
        from: sender,
        to,
        blob_gas_used,
        blob_gas_price: if blob_gas_used > 0 { blob_fee } else { 0 },
        first_log: u64::from(receipt.first_log),
        logs: receipt.logs.len() as u32,
        bloom: *receipt.bloom,
    };
    Some(ReceiptData {
        row,
        transaction_hash: *transaction.tx_hash(),
        index: index as u32,
        block: in_block(body),
    })
}

fn in_block(body: &ProvenBody) -> InBlock {
    let header = body.header();
    InBlock {
        number: header.number,
        hash: body.hash(),
        timestamp: header.timestamp,
        base_fee: header.base_fee_per_gas,
    }
}

/// Length of the block's RLP.
fn size(body: &ProvenBody, uncles: &ProvenUncles) -> usize {
    let withdrawals = body.withdrawals().map_or(0, Encodable::length);
    let content = body.header().length()
        + list_length(body.transactions())
        + list_length(uncles.headers())
        + withdrawals;
    alloy_rlp::Header { list: true, payload_length: content }.length() + content
}

/// A transaction of a canonical block whose signature nobody can have made.
fn no_sender(body: &ProvenBody, index: usize) -> Failure {
    Failure::Broken(format!("transaction {index} of block {} has no sender", body.hash()))
}
