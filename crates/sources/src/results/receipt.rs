//! Transaction receipts.

use super::json::{Json, Object};
use archive::{ReceiptData, Recipient, TransactionOutcome};

/// The EIP-2718 type of transactions that carry blobs.
const BLOB_TRANSACTION: u8 = 3;

/// Writes a receipt; `write_logs` writes the list of its logs.
pub fn write_receipt<E>(
    receipt: &ReceiptData,
    json: &mut Json<'_>,
    write_logs: impl FnOnce(&mut Json<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let row = &receipt.row;
    let mut object = json.object();
    object.member("blockHash").data(receipt.block.hash.as_slice());
    object.member("blockNumber").quantity(receipt.block.number);
    write_recipient(row.to, &mut object);
    object.member("cumulativeGasUsed").quantity(row.cumulative_gas_used);
    object.member("effectiveGasPrice").quantity_u128(row.effective_gas_price);
    object.member("from").data(row.from.as_slice());
    object.member("gasUsed").quantity(row.gas_used);
    write_logs(&mut object.member("logs"))?;
    object.member("logsBloom").data(row.bloom.as_slice());
    match row.outcome {
        TransactionOutcome::Status(success) => object.member("status").quantity(u64::from(success)),
        TransactionOutcome::Root(root) => object.member("root").data(root.as_slice()),
    }
    object.member("transactionHash").data(receipt.transaction_hash.as_slice());
    object.member("transactionIndex").quantity(u64::from(receipt.index));
    object.member("type").quantity(u64::from(row.transaction_type));
    if row.transaction_type == BLOB_TRANSACTION {
        object.member("blobGasUsed").quantity(row.blob_gas_used);
        object.member("blobGasPrice").quantity_u128(row.blob_gas_price);
    }
    object.end();
    Ok(())
}

fn write_recipient(to: Recipient, object: &mut Object<'_>) {
    match to {
        Recipient::Called(address) => {
            object.member("contractAddress").raw(b"null");
            object.member("to").data(address.as_slice());
        }
        Recipient::Created(address) => {
            object.member("contractAddress").data(address.as_slice());
            object.member("to").raw(b"null");
        }
    }
}
