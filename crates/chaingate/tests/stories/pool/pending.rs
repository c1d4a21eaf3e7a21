//! Calls about the pending block, which only nodes know.

use serde_json::{Value, json};
use testkit::anvil::Anvil;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use crate::demo::Demo;

const ALICE: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const BOB: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

const NETWORK: &str = "[network]\nname = \"demo\"\n";

/// The pending block was taken for the newest one, so a wallet that had sent a transaction was told the nonce of that very
/// transaction as its next one.
#[test]
fn a_wallet_that_waits_for_its_transaction_is_told_its_next_nonce() {
    let Some(anvil) = Anvil::start(&[]) else {
        return eprintln!("skipped: ANVIL does not name the program anvil");
    };
    anvil.mine(1);
    let front = Front::of(&[format!("http://{}", anvil.address)], "[network]\nname = \"anvil\"\n");
    let count =
        |tag: &str| front.ask("eth_getTransactionCount", &json!([ALICE, tag]).to_string())["result"].clone();
    assert_eq!((count("latest"), count("pending")), (json!("0x0"), json!("0x0")));
    anvil.ask("eth_sendTransaction", json!([{"from": ALICE, "to": BOB, "value": "0x1", "gas": "0x5208"}]));
    assert_eq!((count("latest"), count("pending")), (json!("0x0"), json!("0x1")));
    anvil.mine(1);
    assert_eq!(count("pending"), json!("0x1"));
}

/// How often a node was asked this method at `pending`.
fn asked(node: &Proxy, method: &str, params: &Value) -> u64 {
    node.asked(method, &params.to_string())
}

#[test]
fn what_is_asked_at_pending_reaches_a_node_every_time_and_is_marked_as_unverified() {
    let chain = Demo::with("");
    let node = Proxy::start(chain.public, "/v3/demo");
    let front = Front::of(&[node.url()], NETWORK);
    for (method, params) in [
        ("eth_getTransactionCount", json!([ALICE.to_lowercase(), "pending"])),
        ("eth_getBalance", json!([ALICE.to_lowercase(), "pending"])),
    ] {
        for turn in 1..=3 {
            let reply = front.ask_as("custom", "", method, &params.to_string());
            assert_eq!(reply.json()["result"], chain.call(method, &params.to_string())["result"], "{method}");
            assert_eq!(reply.header("chaingate-source"), Some("node"));
            assert_eq!(reply.header("chaingate-verified"), Some("none"));
            assert_eq!(reply.header("chaingate-block"), None);
            assert_eq!(asked(&node, method, &params), turn, "{method}");
        }
    }
    for (method, params) in [
        ("eth_call", json!([{"to": BOB, "data": "0x"}, "pending"])),
        ("eth_estimateGas", json!([{"from": BOB, "to": BOB}, "pending"])),
    ] {
        let reply = front.ask_as("custom", "", method, &params.to_string());
        assert_eq!(reply.header("chaingate-verified"), Some("none"), "{method}: {}", reply.text());
    }
    // Other methods have nothing to say about pending transactions.
    let code = front.ask_as("custom", "", "eth_getCode", &json!([BOB, "pending"]).to_string());
    assert_eq!(
        (code.header("chaingate-verified"), code.json()["result"].as_str()),
        (Some("none"), Some("0x"))
    );
}

/// An answer about the newest block would be worse than none.
#[test]
fn nobody_else_is_asked_when_no_node_can_tell_what_is_pending() {
    let chain = Demo::with("");
    let node = Proxy::start(chain.public, "/v3/demo");
    let front = Front::of(&[node.url()], NETWORK);
    let latest = json!([ALICE, "latest"]).to_string();
    let count = chain.call("eth_getTransactionCount", &latest)["result"].clone();
    assert_eq!(front.ask("eth_getTransactionCount", &latest)["result"], count);
    node.set(Mood::Dead);
    let pending = json!([ALICE, "pending"]).to_string();
    assert_eq!(front.ask("eth_getTransactionCount", &pending)["error"]["code"], -32002);
    assert_eq!(front.ask("eth_getTransactionCount", &latest)["result"], count, "this one is kept");
}
