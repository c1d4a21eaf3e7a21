//! Real nodes whose first blocks are odd, and private chains that use the chain ids of public networks.

use serde_json::{Value, json};
use testkit::anvil::Anvil;
use testkit::http::get;

use super::front::Front;
use super::questions::outcome;

const CODE_ADDRESS: &str = "0x00000000000000000000000000000000000c0de0";

/// Returns what `TLOAD` finds at 0. Cancun has it.
const TLOAD: &str = "0x60005c60005260206000f3";

/// Returns how many leading zeros 1 has. Osaka has it.
const CLZ: &str = "0x60011e60005260206000f3";

fn url(anvil: &Anvil) -> String {
    format!("http://{}", anvil.address)
}

/// Their block 0 has blob gas without what came before it. The gateway took every such node for a liar, for as long as block 0 was one of
/// the last 256.
#[test]
fn anvil_is_served_with_every_fork() {
    for fork in
        ["frontier", "byzantium", "istanbul", "berlin", "london", "paris", "shanghai", "cancun", "prague"]
    {
        let Some(anvil) = Anvil::start(&["--hardfork", fork]) else { return };
        let front = Front::of(&[url(&anvil)], "[network]\nname = \"dev\"\n");
        let asked_at_0 = [
            ("eth_getBlockByNumber", json!(["0x0", false])),
            ("eth_getBlockByNumber", json!(["0x0", true])),
            ("eth_getBlockTransactionCountByNumber", json!(["0x0"])),
        ];
        for (method, params) in &asked_at_0 {
            same_answer(&front, &anvil, method, params, fork);
        }
        anvil.mine(2);
        crate::demo::until("the new head is there", || {
            outcome(&front.ask("eth_blockNumber", "[]")) == json!("0x2")
        });
        let later = [
            ("eth_getBlockByNumber", json!(["0x1", true])),
            ("eth_getBlockByNumber", json!(["0x2", true])),
            ("eth_getBalance", json!([CODE_ADDRESS, "0x1"])),
        ];
        for (method, params) in asked_at_0.iter().chain(&later) {
            same_answer(&front, &anvil, method, params, fork);
        }
        let status = get(front.operator, "/status").json();
        let node = &status["nodes"]["each"][0];
        assert_eq!(
            (&node["state"], &node["not_used_because"]),
            (&json!("up"), &Value::Null),
            "{fork}: {node}"
        );
    }
}

/// The answer of the gateway has the members that the node's has, but for those that nothing proves, and the size: anvil does not
/// count the list of withdrawals, which is one byte if it is empty.
fn same_answer(front: &Front, anvil: &Anvil, method: &str, params: &Value, fork: &str) {
    let (ours, mut theirs) = (front.ask(method, &params.to_string()), anvil.ask(method, params.clone()));
    let mut ours = outcome(&ours);
    if let Some(size) = theirs.get_mut("size").filter(|_| ours["withdrawals"] == json!([])) {
        let counted = u64::from_str_radix(size.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
        *size = json!(format!("{:#x}", counted + 1));
    }
    for answer in [&mut ours, &mut theirs] {
        if let Some(members) = answer.as_object_mut() {
            members.retain(|name, value| name != "totalDifficulty" && !value.is_null());
        }
    }
    assert_eq!(ours, theirs, "{fork}: {method} {params}");
}

/// A private chain with the id of a public network ran by the rules of that network, whatever its own fork was, and the answers were
/// called proven.
#[test]
fn rules_of_a_public_network_are_used_for_its_chain_only() {
    for (chain_id, fork, code) in [
        ("1", "shanghai", TLOAD),
        ("11155111", "shanghai", TLOAD),
        ("8453", "shanghai", TLOAD),
        ("1", "prague", CLZ),
        ("11155111", "prague", CLZ),
        ("8453", "prague", CLZ),
    ] {
        let Some(anvil) = Anvil::start(&["--chain-id", chain_id, "--hardfork", fork]) else { return };
        anvil.ask("anvil_setCode", json!([CODE_ADDRESS, code]));
        anvil.mine(2);
        let config = "[network]\nname = \"dev\"\n[integrity]\nstate = \"prove\"\n";
        let front = Front::of(&[url(&anvil)], config);
        let params = json!([{"to": CODE_ADDRESS}, "latest"]).to_string();
        let reply = front.ask_as("custom", "", "eth_call", &params);
        assert!(reply.json()["result"].is_null(), "{chain_id} {fork}: {}", reply.json());
        assert_ne!(reply.header("chaingate-verified"), Some("proven"), "{chain_id} {fork}");
        // Without these opcodes every chain gives the same.
        let params = json!([{"to": CODE_ADDRESS, "data": "0x"}, "latest", {CODE_ADDRESS: {"code": "0x602a60005260206000f3"}}]);
        let reply = front.ask_as("custom", "", "eth_call", &params.to_string());
        assert_eq!(
            reply.json()["result"],
            json!(format!("0x{:0>64}", "2a")),
            "{chain_id} {fork}: {}",
            reply.json()
        );
        assert_ne!(reply.header("chaingate-verified"), Some("proven"), "{chain_id} {fork}");
    }
}
