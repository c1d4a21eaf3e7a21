//! Nodes of makes that cannot be run here have dropped what is old, and each says so in its own way. The replies are in
//! `testkit::proxy`, from the sources of these makes.

use serde_json::{Value, json};
use testkit::heavy::HeavyChain;
use testkit::http::get;
use testkit::proxy::{Mood, NodeMake, Proxy};

use super::front::Front;
use super::lists::wrong_answers;
use super::long;
use super::questions::outcome;
use crate::demo::{Demo, until};

const REST: &str = "[network]\nname = \"long\"\n[cache]\nenabled = false\n[pool]\ncall_timeout_ms = 6000\n";

/// Below this block, which is below the window, the node has dropped everything.
const KEPT_FROM: u64 = 30;

/// A row for each question of the table in docs/nodes.md.
fn questions(chain: &HeavyChain) -> Vec<(&'static str, Value)> {
    let mut asked = Vec::new();
    for number in [2, 17, 28] {
        let built = &chain.blocks[number as usize - 1];
        let (tag, hash) = (format!("{number:#x}"), built.hash);
        let at = json!({ "blockHash": hash });
        let transaction = built.block.body.transactions[0].tx_hash();
        let storage: Value = serde_json::from_str(&long::storage_at(&at.to_string())).unwrap();
        let holder = testkit::heavy::holder(31);
        asked.extend([
            ("eth_getStorageAt", storage),
            ("eth_getBalance", json!([holder, at])),
            ("eth_getTransactionCount", json!([holder, tag])),
            ("eth_call", json!([{ "to": testkit::heavy::TOKEN, "data": "0x18160ddd" }, tag])),
            ("eth_getBlockReceipts", json!([hash])),
            ("eth_getBlockReceipts", json!([tag])),
            ("eth_getTransactionByHash", json!([transaction])),
            ("eth_getTransactionReceipt", json!([transaction])),
            ("eth_getBlockByHash", json!([hash, true])),
            ("eth_getBlockByNumber", json!([tag, false])),
            ("eth_getLogs", json!([{ "fromBlock": tag, "toBlock": format!("{:#x}", number + 1) }])),
            ("eth_getLogs", json!([{ "blockHash": hash }])),
        ]);
    }
    asked.push(("eth_getLogs", json!([{ "fromBlock": "0x28", "toBlock": "0xb0" }])));
    asked.push(("eth_getTransactionCount", json!([testkit::heavy::holder(31), "pending"])));
    asked
}

/// A gateway in front of one node of this make and so many that have everything.
fn front(make: NodeMake, node: &Demo, full: usize, rest: &str) -> (Vec<Proxy>, Front) {
    let proxies: Vec<_> = (0..=full).map(|_| Proxy::start(node.public, "/v3/demo")).collect();
    proxies[0].set(Mood::Made { make, below: KEPT_FROM });
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let front = Front::of(&urls, &format!("{REST}{rest}"));
    front.wait_for_histories();
    (proxies, front)
}

#[test]
fn beside_two_full_nodes_nobody_notices_what_a_node_has_dropped() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    for make in NodeMake::ALL {
        for rest in ["", "[integrity]\nmode = \"off\"\n"] {
            let (proxies, front) = front(make, &node, 2, rest);
            for (method, params) in questions(&chain) {
                let params = params.to_string();
                let truth = outcome(&node.call(method, &params));
                assert_eq!(outcome(&front.ask(method, &params)), truth, "{make:?} {rest} {method} {params}");
            }
            assert_eq!(wrong_answers(&front, &proxies[0]), 0, "{make:?} does not lie");
        }
    }
}

/// Nothing false is told, and callers learn why there is no answer.
#[test]
fn behind_such_a_node_alone_callers_are_told_why_there_is_no_answer() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let mut wrong = Vec::new();
    for make in NodeMake::ALL {
        let (_proxies, front) = front(make, &node, 0, "");
        for (method, params) in questions(&chain) {
            let params = params.to_string();
            let reply = front.ask_as("custom", "", method, &params);
            let (told, truth) = (reply.json(), outcome(&node.call(method, &params)));
            let has_reason = told["error"]["code"] == -32002
                && told["error"]["data"]["reason"].as_str().is_some_and(|reason| !reason.is_empty());
            let is_open = told.get("result") == Some(&Value::Null)
                && reply.header("chaingate-verified") == Some("none")
                || is_unknown_hash(&told["error"]);
            if !has_reason && !is_open && outcome(&told) != truth {
                wrong.push(format!("{make:?} {method} {params}: {told}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A node that returns null for the hash of a block does not know whether there is one, and neither does the gateway.
fn is_unknown_hash(error: &Value) -> bool {
    error["code"] == -32000
        && (error["message"] == "header for hash not found" || error["message"] == "unknown block")
}

#[test]
fn a_node_that_is_syncing_is_not_asked_and_the_reason_is_told() {
    let node = Demo::with("");
    let proxy = Proxy::start(node.public, "/v3/demo");
    proxy.set(Mood::Syncing);
    let front = Front::unready(&[proxy.url()], REST);
    until("it is told", || get(front.operator, "/ready").text().contains("syncing"));
    let reply = front.ask("eth_getBalance", &json!([testkit::heavy::TOKEN, "latest"]).to_string());
    assert_eq!(reply["error"]["code"], -32002, "{reply}");
}
