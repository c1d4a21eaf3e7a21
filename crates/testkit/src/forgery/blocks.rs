//! Lies about blocks and uncles.

use alloy_consensus::Header;
use serde_json::{Value, json};

use super::{Forgery, TrueNode, hash, list_of, set, set_huge};

impl Forgery {
    pub(super) fn forge_whole_block(self, node: TrueNode<'_>, call: &Value, result: &mut Value) {
        match self {
            Self::BlockNull => *result = Value::Null,
            Self::BlockInvented if result.is_null() && call["method"] == "eth_getBlockByHash" => {
                *result = node("eth_getBlockByNumber", json!(["0x3", call["params"][1]]));
                result["hash"] = call["params"][0].clone();
            }
            Self::BlockBefore if result.is_object() => {
                let before = node("eth_getBlockByHash", json!([result["parentHash"], call["params"][1]]));
                if before.is_object() {
                    *result = before;
                }
            }
            Self::OtherTransactions if result.is_object() => {
                let mut before = node("eth_getBlockByHash", json!([result["parentHash"], call["params"][1]]));
                result["transactions"] = before["transactions"].take();
            }
            _ => self.forge_block(result),
        }
    }

    fn forge_block(self, block: &mut Value) {
        match self {
            Self::BlockSize => set(block, "size", "0x1234"),
            Self::TotalDifficulty => set(block, "totalDifficulty", "0x1234"),
            Self::BlockTimestamp => set(block, "timestamp", "0x1234"),
            Self::BlockStateRoot => set(block, "stateRoot", &hash()),
            Self::BlockMiner => set(block, "miner", &super::address()),
            Self::MovedMembers => move_members(block),
            Self::BlockRehashed => {
                set(block, "extraData", "0x1234");
                rehash(block);
            }
            Self::BlockHugeNumbers => with_huge_numbers(block),
            Self::UncleList if list_of(block, "uncles").is_some() => block["uncles"] = json!([hash()]),
            Self::ExtraMembers => set(block, "note", "visit example.org"),
            _ => {}
        }
        if let Some(withdrawals) = list_of(block, "withdrawals") {
            match self {
                Self::Withdrawals => withdrawals.clear(),
                Self::WithdrawalAmount => withdrawals.iter_mut().for_each(|one| set(one, "amount", "0x1234")),
                _ => {}
            }
        }
        let Some(transactions) = list_of(block, "transactions") else { return };
        match self {
            Self::NoneListed => transactions.clear(),
            Self::Swapped => transactions.reverse(),
            Self::LastNotListed => _ = transactions.pop(),
            Self::ListedTwice => transactions.extend(transactions.first().cloned()),
            Self::HashList => transactions.iter_mut().filter(|one| one.is_string()).for_each(other_hash),
            _ => transactions.iter_mut().for_each(|transaction| self.forge_transaction(transaction)),
        }
    }

    pub(super) fn forge_uncle(self, node: TrueNode<'_>, result: &mut Value) {
        match self {
            Self::Uncle => set(result, "extraData", "0x1234"),
            Self::UncleNull => *result = Value::Null,
            Self::UncleInvented if result.is_null() => {
                *result = node("eth_getBlockByNumber", json!(["0x1", false]));
                if let Some(members) = result.as_object_mut() {
                    members.remove("transactions");
                }
            }
            Self::ExtraMembers => set(result, "note", "visit example.org"),
            _ => {}
        }
    }
}

/// Moves the newest member of the header to a later one of the same kind, if there is one, and else the base fee.
fn move_members(block: &mut Value) {
    let moves = [
        ("requestsHash", "blockAccessListHash"),
        ("parentBeaconBlockRoot", "requestsHash"),
        ("withdrawalsRoot", "requestsHash"),
        ("baseFeePerGas", "blobGasUsed"),
    ];
    let Some(members) = block.as_object_mut() else { return };
    let Some((from, to)) = moves.into_iter().find(|(from, _)| members.contains_key(*from)) else { return };
    if let Some(value) = members.remove(from) {
        members.insert(to.to_owned(), value);
    }
}

/// Sets the numbers of a header to the greatest of 64 bits, and gives the block the hash that it then has.
pub(super) fn with_huge_numbers(block: &mut Value) {
    let numbers =
        ["number", "timestamp", "gasUsed", "gasLimit", "baseFeePerGas", "blobGasUsed", "excessBlobGas"];
    set_huge(block, &numbers);
    rehash(block);
}

/// Gives a block the hash that its header has.
pub(super) fn rehash(block: &mut Value) {
    if let Ok(header) = serde_json::from_value::<Header>(block.clone()) {
        set(block, "hash", &header.hash_slow().to_string());
    }
}

/// Turns the digits of a hash round.
pub(super) fn other_hash(hash: &mut Value) {
    let digits = hash.as_str().unwrap_or_default().trim_start_matches("0x");
    *hash = json!(format!("0x{}", digits.chars().rev().collect::<String>()));
}
