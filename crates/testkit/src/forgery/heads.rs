//! Lies about the head, `safe` and `finalized`, and about which chain it is.

use serde_json::{Value, json};

use super::blocks::{other_hash, rehash, with_huge_numbers};
use super::{Forgery, TrueNode, hash, list_of, set};

/// Greater numbers of blocks are refused as soon as they are read.
const LARGEST_NUMBER: &str = "0x7fffffffffffffff";

/// Blocks that a head is said to be behind or ahead.
const OFF_BY: u64 = 5;

impl Forgery {
    pub(super) fn forge_heads(self, node: TrueNode<'_>, call: &Value, reply: &mut Value) {
        let asked = &call["params"][0];
        match (self, call["method"].as_str().unwrap_or_default()) {
            (Self::ChainId, "eth_chainId") => reply["result"] = json!("0xdead"),
            (Self::ChainId, "net_version") => reply["result"] = json!("57005"),
            (Self::Syncing, "eth_syncing") => {
                reply["result"] =
                    json!({"startingBlock": "0x0", "currentBlock": "0x1", "highestBlock": "0xffffff"});
            }
            (Self::HeadAhead, "eth_blockNumber") => reply["result"] = json!("0x7fffffff"),
            (Self::HeadAhead, "eth_getBlockByNumber") if asked == "latest" => {
                set(&mut reply["result"], "number", "0x7fffffff");
            }
            (Self::HeadHugeNumber, "eth_blockNumber") => reply["result"] = json!(format!("{:#x}", u64::MAX)),
            (Self::HeadHugeNumber, "eth_getBlockByNumber") if asked == "latest" => {
                with_huge_numbers(&mut reply["result"]);
            }
            (Self::HeadLargestNumber, "eth_blockNumber") => reply["result"] = json!(LARGEST_NUMBER),
            (Self::HeadLargestNumber, "eth_getBlockByNumber") if asked == "latest" => {
                let head = &mut reply["result"];
                set(head, "number", LARGEST_NUMBER);
                set(head, "timestamp", LARGEST_NUMBER);
                rehash(head);
            }
            (Self::HeadBehind, "eth_blockNumber") => reply["result"] = behind(node, false)["number"].take(),
            (Self::HeadBehind, "eth_getBlockByNumber") if asked == "latest" => {
                reply["result"] = behind(node, call["params"][1] == true);
            }
            (Self::HeadForged, method) => forge_head(node, method, asked, reply),
            (Self::HeadTransactions, "eth_getBlockByNumber" | "eth_getBlockByHash") => {
                let head = node("eth_blockNumber", json!([]));
                if reply["result"]["number"] == head {
                    let listed = list_of(&mut reply["result"], "transactions").into_iter().flatten();
                    listed.filter(|listed| listed.is_string()).for_each(other_hash);
                }
            }
            (Self::Genesis, "eth_getBlockByNumber") if asked == "0x0" || asked == "earliest" => {
                set(&mut reply["result"], "extraData", "0x1234");
                rehash(&mut reply["result"]);
            }
            (_, "eth_getBlockByNumber") if asked == "safe" || asked == "finalized" => {
                self.forge_mark(node, call, reply);
            }
            _ => {}
        }
    }

    fn forge_mark(self, node: TrueNode<'_>, call: &Value, reply: &mut Value) {
        let block = |tag: &str| node("eth_getBlockByNumber", json!([tag, call["params"][1]]));
        match self {
            Self::MarksAtHead => reply["result"] = block("latest"),
            Self::MarksAtGenesis => reply["result"] = block("0x0"),
            Self::MarksForged => reply["result"] = child_of(behind(node, false)),
            Self::MarksHugeNumber => {
                let mut marked = block("latest");
                with_huge_numbers(&mut marked);
                reply["result"] = marked;
            }
            Self::MarksNull => reply["result"] = Value::Null,
            _ => {}
        }
    }
}

/// Tells of a block above the head, under its number and under its hash.
fn forge_head(node: TrueNode<'_>, method: &str, asked: &Value, reply: &mut Value) {
    let child = || child_of(node("eth_getBlockByNumber", json!(["latest", false])));
    match method {
        "eth_blockNumber" => reply["result"] = child()["number"].take(),
        "eth_getBlockByNumber" | "eth_getBlockByHash" => {
            let child = child();
            if *asked == "latest" || *asked == child["number"] || *asked == child["hash"] {
                *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "result": child});
            }
        }
        _ => {}
    }
}

/// The block a few below the head.
fn behind(node: TrueNode<'_>, whole: bool) -> Value {
    let head = number(&node("eth_blockNumber", json!([])));
    node("eth_getBlockByNumber", json!([format!("{:#x}", head.saturating_sub(OFF_BY)), whole]))
}

/// An empty block that might follow this one: its hash is the one that its header has.
fn child_of(mut block: Value) -> Value {
    let next = |value: &Value, by: u64| json!(format!("{:#x}", number(value) + by));
    block["parentHash"] = block["hash"].clone();
    block["number"] = next(&block["number"], 1);
    block["timestamp"] = next(&block["timestamp"], 12);
    block["extraData"] = json!(hash());
    block["transactions"] = json!([]);
    rehash(&mut block);
    block
}

fn number(quantity: &Value) -> u64 {
    let digits = quantity.as_str().unwrap_or_default().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).unwrap_or_default()
}
