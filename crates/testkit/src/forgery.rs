//! Lies about block data, each of which leaves the rest of a node's answers as they are.

use serde_json::{Value, json};

/// What a lying node changes in its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// A receipt says the opposite of what happened.
    ReceiptStatus,
    /// A receipt is of a type that nobody knows.
    ReceiptType,
    ReceiptSender,
    ReceiptRecipient,
    ReceiptContract,
    ReceiptGasPrice,
    ReceiptGas,
    ReceiptIndex,
    /// The receipts of a block are gone.
    NoReceipts,
    /// The last receipt of a block is gone.
    ReceiptDropped,
    LogData,
    /// The logs of a receipt are gone, and its bloom with them.
    LogsDropped,
    TransactionIndex,
    /// A transaction is of a type that nobody knows.
    TransactionType,
    /// A transaction has no signature.
    Unsigned,
    TransactionValue,
    TransactionSender,
    TransactionPrice,
    TransactionTimestamp,
    /// A mined transaction is said to be pending.
    Pending,
    /// A transaction is said to be in the first block.
    OtherBlock,
    /// Transactions and receipts are not there.
    NoTransactions,
    /// Transactions of a block have changed places.
    Swapped,
    /// Transactions of a block are gone.
    NoneListed,
    Withdrawals,
    BlockSize,
    TotalDifficulty,
    UncleList,
    /// Uncles are other headers.
    Uncle,
    Counts,
    /// Every object says more than it should.
    ExtraMembers,
    /// Log queries find nothing.
    NoLogs,
    /// The first log that a query finds is gone.
    LogDropped,
    /// Log queries find more than there is.
    LogInvented,
}

impl Forgery {
    pub const ALL: [Self; 34] = [
        Self::ReceiptStatus,
        Self::ReceiptType,
        Self::ReceiptSender,
        Self::ReceiptRecipient,
        Self::ReceiptContract,
        Self::ReceiptGasPrice,
        Self::ReceiptGas,
        Self::ReceiptIndex,
        Self::NoReceipts,
        Self::ReceiptDropped,
        Self::LogData,
        Self::LogsDropped,
        Self::TransactionIndex,
        Self::TransactionType,
        Self::Unsigned,
        Self::TransactionValue,
        Self::TransactionSender,
        Self::TransactionPrice,
        Self::TransactionTimestamp,
        Self::Pending,
        Self::OtherBlock,
        Self::NoTransactions,
        Self::Swapped,
        Self::NoneListed,
        Self::Withdrawals,
        Self::BlockSize,
        Self::TotalDifficulty,
        Self::UncleList,
        Self::Uncle,
        Self::Counts,
        Self::ExtraMembers,
        Self::NoLogs,
        Self::LogDropped,
        Self::LogInvented,
    ];

    /// Changes the result of a call. Questions about the newest block are answered truly, so that the node stays in the pool.
    pub(crate) fn apply(self, call: &Value, result: &mut Value) {
        let method = call["method"].as_str().unwrap_or_default();
        if call["params"][0] == "latest" {
            return;
        }
        match method {
            "eth_getLogs" => self.forge_logs(result),
            "eth_getBlockReceipts" => self.forge_receipts(result),
            "eth_getTransactionReceipt" if self == Self::NoTransactions => *result = Value::Null,
            "eth_getTransactionReceipt" => self.forge_receipt(result),
            "eth_getTransactionByHash" if self == Self::NoTransactions => *result = Value::Null,
            "eth_getTransactionByHash"
            | "eth_getTransactionByBlockHashAndIndex"
            | "eth_getTransactionByBlockNumberAndIndex" => self.forge_transaction(result),
            "eth_getBlockByHash" | "eth_getBlockByNumber" => self.forge_block(result),
            "eth_getUncleByBlockHashAndIndex" if self == Self::Uncle => set(result, "extraData", "0x1234"),
            "eth_getUncleCountByBlockHash"
            | "eth_getUncleCountByBlockNumber"
            | "eth_getBlockTransactionCountByHash"
                if self == Self::Counts =>
            {
                *result = json!("0x63");
            }
            _ => {}
        }
    }

    fn forge_logs(self, result: &mut Value) {
        let Some(logs) = result.as_array_mut() else { return };
        match self {
            Self::NoLogs => logs.clear(),
            Self::LogDropped if !logs.is_empty() => _ = logs.remove(0),
            Self::LogInvented => {
                let mut last = logs.last().cloned().unwrap_or_else(invented_log);
                set(&mut last, "logIndex", "0x1234");
                logs.push(last);
            }
            Self::LogData => logs.iter_mut().for_each(|log| set(log, "data", "0x1234")),
            _ => {}
        }
    }

    fn forge_receipts(self, result: &mut Value) {
        let Some(receipts) = result.as_array_mut() else { return };
        match self {
            Self::NoReceipts => receipts.clear(),
            Self::ReceiptDropped => _ = receipts.pop(),
            _ => receipts.iter_mut().for_each(|receipt| self.forge_receipt(receipt)),
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
            Self::ReceiptIndex => set(receipt, "transactionIndex", "0x7"),
            Self::LogData => {
                let logs = receipt.get_mut("logs").and_then(Value::as_array_mut);
                logs.into_iter().flatten().for_each(|log| set(log, "data", "0x1234"));
            }
            Self::LogsDropped => {
                if let Some(receipt) = receipt.as_object_mut() {
                    receipt.insert("logs".to_owned(), json!([]));
                    receipt.insert("logsBloom".to_owned(), json!(format!("0x{}", "0".repeat(512))));
                }
            }
            Self::OtherBlock => other_block(receipt),
            Self::ExtraMembers => set(receipt, "note", "visit example.org"),
            _ => {}
        }
    }

    fn forge_transaction(self, transaction: &mut Value) {
        match self {
            Self::TransactionIndex => set(transaction, "transactionIndex", "0x7"),
            Self::TransactionType => set(transaction, "type", "0x7e"),
            Self::Unsigned => ["r", "s"].into_iter().for_each(|member| set(transaction, member, "0x0")),
            Self::TransactionValue => set(transaction, "value", "0x1234567"),
            Self::TransactionSender => set(transaction, "from", &address()),
            Self::TransactionPrice => set(transaction, "gasPrice", "0x1234"),
            Self::TransactionTimestamp => set(transaction, "blockTimestamp", "0x1234"),
            Self::Pending => {
                for member in ["blockHash", "blockNumber", "transactionIndex"] {
                    if let Some(transaction) = transaction.as_object_mut() {
                        transaction.insert(member.to_owned(), Value::Null);
                    }
                }
            }
            Self::OtherBlock => other_block(transaction),
            Self::ExtraMembers => set(transaction, "note", "visit example.org"),
            _ => {}
        }
    }

    fn forge_block(self, block: &mut Value) {
        match self {
            Self::BlockSize => set(block, "size", "0x1234"),
            Self::TotalDifficulty => set(block, "totalDifficulty", "0x1234"),
            Self::ExtraMembers => set(block, "note", "visit example.org"),
            _ => {}
        }
        if let (Self::Withdrawals, Some(withdrawals)) = (self, list_of(block, "withdrawals")) {
            withdrawals.clear();
        }
        if self == Self::UncleList && list_of(block, "uncles").is_some() {
            block["uncles"] = json!([format!("0x{}", "ab".repeat(32))]);
        }
        let Some(transactions) = list_of(block, "transactions") else { return };
        match self {
            Self::NoneListed => transactions.clear(),
            Self::Swapped => transactions.reverse(),
            _ => transactions.iter_mut().for_each(|transaction| self.forge_transaction(transaction)),
        }
    }
}

fn list_of<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Vec<Value>> {
    object.get_mut(name)?.as_array_mut()
}

/// Sets a member of an object; other values stay as they are.
fn set(object: &mut Value, member: &str, value: &str) {
    if let Some(members) = object.as_object_mut() {
        members.insert(member.to_owned(), json!(value));
    }
}

fn flip(object: &mut Value, member: &str) {
    if let Some(value) = object.get_mut(member) {
        *value = json!(if *value == "0x1" { "0x0" } else { "0x1" });
    }
}

fn invented_log() -> Value {
    let hash = format!("0x{}", "ab".repeat(32));
    json!({
        "address": address(), "topics": [], "data": "0x", "blockNumber": "0x3", "transactionHash": hash,
        "transactionIndex": "0x0", "blockHash": hash, "logIndex": "0x0", "removed": false
    })
}

fn other_block(object: &mut Value) {
    set(object, "blockNumber", "0x1");
}

fn address() -> String {
    format!("0x{}", "ab".repeat(20))
}
