//! Readers of the JSON of nodes: blocks, transactions, receipts and logs. Nothing is proven here, and members that no hash commits to
//! are not read.

pub(crate) mod hex; // numbers and bytes as JSON writes them
mod cursor; // a cursor over JSON text, which is validated on the way
mod log; // one log
mod spans; // the byte range of each log of an answer
pub(crate) mod header; // a block
pub(crate) mod transaction; // a transaction
pub(crate) mod receipt; // a receipt and its logs

#[cfg(test)]
pub(crate) mod tests;

use alloy_consensus::{EthereumTxEnvelope, TxEip4844};

pub use spans::{LogSpan, read_logs};

/// Whether this is one JSON value.
pub fn is_json(result: &[u8]) -> bool {
    std::str::from_utf8(result).is_ok_and(|text| jsonrpc::Value::read(text).is_some())
}

/// The number of a quantity, as text without quotes. `None` for one that no chain has.
pub fn read_quantity(text: &str) -> Option<u64> {
    hex::number(text.strip_prefix("0x")?.as_bytes())
}

/// A signed transaction in its consensus form.
pub type SignedTransaction = EthereumTxEnvelope<TxEip4844>;
