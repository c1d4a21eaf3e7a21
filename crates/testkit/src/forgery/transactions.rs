//! Lies about transactions, asked for one by one and as parts of blocks.

use serde_json::{Value, json};

use super::{Forgery, TrueNode, address, hash, set, set_huge};

impl Forgery {
    pub(super) fn forge_single_transaction(self, node: TrueNode<'_>, call: &Value, result: &mut Value) {
        let by_hash = call["method"] == "eth_getTransactionByHash";
        match self {
            Self::NoTransactions if by_hash => *result = Value::Null,
            Self::TransactionReplaced if result.is_object() => replace(node, result),
            Self::TransactionInvented if by_hash && result.is_null() => {
                *result = some_transaction(node);
                result["hash"] = call["params"][0].clone();
            }
            _ => self.forge_transaction(result),
        }
    }

    pub(super) fn forge_transaction(self, transaction: &mut Value) {
        match self {
            Self::TransactionIndex => set(transaction, "transactionIndex", "0x7"),
            Self::TransactionType => set(transaction, "type", "0x7e"),
            Self::TransactionTypeAndValue => {
                set(transaction, "type", "0x7e");
                set(transaction, "value", "0x1234567");
                ["r", "s"].into_iter().for_each(|member| set(transaction, member, "0x0"));
            }
            Self::Unsigned => ["r", "s"].into_iter().for_each(|member| set(transaction, member, "0x0")),
            Self::TransactionValue => set(transaction, "value", "0x1234567"),
            Self::TransactionInput => set(transaction, "input", "0x1234"),
            Self::TransactionNonce => set(transaction, "nonce", "0x1234"),
            Self::TransactionHash => set(transaction, "hash", &hash()),
            Self::TransactionSender => set(transaction, "from", &address()),
            Self::TransactionPrice => set(transaction, "gasPrice", "0x1234"),
            Self::TransactionHugeNumbers => set_huge(
                transaction,
                &[
                    "blockNumber",
                    "transactionIndex",
                    "blockTimestamp",
                    "nonce",
                    "gas",
                    "gasPrice",
                    "maxFeePerGas",
                ],
            ),
            Self::TransactionTimestamp => set(transaction, "blockTimestamp", "0x1234"),
            Self::Pending => {
                for member in ["blockHash", "blockNumber", "transactionIndex"] {
                    if let Some(transaction) = transaction.as_object_mut() {
                        transaction.insert(member.to_owned(), Value::Null);
                    }
                }
            }
            Self::OtherBlock => set(transaction, "blockNumber", "0x1"),
            Self::ExtraMembers => set(transaction, "note", "visit example.org"),
            _ => {}
        }
    }
}

/// Puts another signed transaction in the place of this one.
fn replace(node: TrueNode<'_>, transaction: &mut Value) {
    let mut other = some_transaction(node);
    for member in ["blockHash", "blockNumber", "blockTimestamp", "transactionIndex"] {
        other[member] = transaction[member].clone();
    }
    *transaction = other;
}

/// A transaction of the first blocks.
fn some_transaction(node: TrueNode<'_>) -> Value {
    let blocks =
        (1..20).map(|number: u64| node("eth_getBlockByNumber", json!([format!("{number:#x}"), true])));
    let mut found = blocks.map(|block| block["transactions"].get(0).cloned());
    found.find_map(|transaction| transaction).unwrap_or_default()
}
