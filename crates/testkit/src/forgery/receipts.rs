//! Lies about receipts.

use alloy_primitives::{Address, B256, Bloom};
use serde_json::{Value, json};

use super::logs::invented_log;
use super::{Forgery, TrueNode, address, flip, list_of, set, set_huge};

impl Forgery {
    pub(super) fn forge_receipts(self, result: &mut Value) {
        let Some(receipts) = result.as_array_mut() else { return };
        match self {
            Self::NoReceipts => receipts.clear(),
            Self::ReceiptDropped => _ = receipts.pop(),
            Self::ReceiptsSwapped => receipts.reverse(),
            Self::ReceiptNull => *result = Value::Null,
            _ => receipts.iter_mut().for_each(|receipt| self.forge_receipt(receipt)),
        }
    }

    pub(super) fn forge_single_receipt(self, node: TrueNode<'_>, call: &Value, result: &mut Value) {
        match self {
            Self::NoTransactions | Self::ReceiptNull => *result = Value::Null,
            Self::ReceiptInvented if result.is_null() => {
                let receipts =
                    (1..20).map(|number: u64| node("eth_getBlockReceipts", json!([format!("{number:#x}")])));
                *result =
                    receipts.into_iter().find_map(|of_block| of_block.get(0).cloned()).unwrap_or_default();
                result["transactionHash"] = call["params"][0].clone();
            }
            _ => self.forge_receipt(result),
        }
    }

    fn forge_receipt(self, receipt: &mut Value) {
        match self {
            Self::ReceiptStatus => flip(receipt, "status"),
            Self::ReceiptType => set(receipt, "type", "0x7e"),
            Self::ReceiptSender => set(receipt, "from", &address()),
            Self::ReceiptRecipient => set(receipt, "to", &address()),
            Self::ReceiptContract => set(receipt, "contractAddress", &address()),
            Self::ReceiptGasPrice => set(receipt, "effectiveGasPrice", "0x1234"),
            Self::ReceiptGas => {
                set(receipt, "gasUsed", "0x1");
                set(receipt, "cumulativeGasUsed", "0x1");
            }
            Self::ReceiptBlobGas => {
                set(receipt, "blobGasUsed", "0x1234");
                set(receipt, "blobGasPrice", "0x1234");
            }
            Self::ReceiptHugeNumbers => set_huge(
                receipt,
                &["blockNumber", "transactionIndex", "gasUsed", "cumulativeGasUsed", "blobGasUsed", "status"],
            ),
            Self::ReceiptIndex => set(receipt, "transactionIndex", "0x7"),
            Self::LogsDropped | Self::NoLogsAnywhere => {
                if let Some(logs) = list_of(receipt, "logs") {
                    logs.clear();
                    with_bloom(receipt);
                }
            }
            Self::LogDroppedWithBloom => {
                if list_of(receipt, "logs").and_then(Vec::pop).is_some() {
                    with_bloom(receipt);
                }
            }
            Self::LogAddedWithBloom => {
                if let Some(logs) = list_of(receipt, "logs") {
                    logs.push(logs.last().cloned().unwrap_or_else(invented_log));
                    logs.iter_mut().for_each(|log| set(log, "address", &address()));
                    with_bloom(receipt);
                }
            }
            Self::OtherBlock => set(receipt, "blockNumber", "0x1"),
            Self::ExtraMembers => set(receipt, "note", "visit example.org"),
            _ => list_of(receipt, "logs").into_iter().flatten().for_each(|log| self.forge_log(log)),
        }
    }
}

/// Gives a receipt the bloom of its logs.
fn with_bloom(receipt: &mut Value) {
    let mut bloom = Bloom::ZERO;
    for log in list_of(receipt, "logs").into_iter().flatten() {
        let address = log["address"].as_str().and_then(|text| text.parse::<Address>().ok());
        let topics = log["topics"].as_array().into_iter().flatten();
        let topics: Vec<B256> = topics.filter_map(|topic| topic.as_str()?.parse().ok()).collect();
        bloom.accrue_raw_log(address.unwrap_or_default(), &topics);
    }
    set(receipt, "logsBloom", &bloom.to_string());
}
