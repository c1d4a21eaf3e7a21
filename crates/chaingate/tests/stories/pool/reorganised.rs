//! A real node that changes its mind. Needs anvil: `ANVIL` names the program.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::anvil::Anvil;
use testkit::proxy::Proxy;

use super::front::Front;
use super::questions::agree;
use crate::demo::{metric, until};
use crate::gateway_under_test::call;

const ALICE: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const BOB: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

fn start() -> Option<(Anvil, Vec<Proxy>, Front)> {
    start_at(10)
}

/// With so many blocks before anybody looks.
fn start_at(blocks: u64) -> Option<(Anvil, Vec<Proxy>, Front)> {
    let anvil = Anvil::start(&[])?;
    anvil.mine(blocks);
    let (proxies, front) = Front::behind(anvil.address, "/", 3, "[network]\nname = \"anvil\"\n");
    Some((anvil, proxies, front))
}

fn number(reply: &Value) -> u64 {
    u64::from_str_radix(reply["result"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// Sends some wei to Bob and mines it.
fn pay(anvil: &Anvil, wei: u64) -> Value {
    let hash =
        anvil.ask("eth_sendTransaction", json!([{"from": ALICE, "to": BOB, "value": format!("{wei:#x}")}]));
    anvil.mine(1);
    hash
}

#[test]
fn answers_of_a_block_that_is_gone_are_gone_with_it() {
    let Some((anvil, _proxies, front)) = start() else { return };
    let hash = pay(&anvil, 7);
    let params = json!([hash]).to_string();
    until("the payment is seen", || front.ask("eth_getTransactionReceipt", &params)["result"].is_object());
    let head = anvil.head();
    let by_number = format!(r#"["{head:#x}",false]"#);
    let before = front.ask("eth_getBlockByNumber", &by_number)["result"]["hash"].clone();
    for depth in [1, 2, 7] {
        anvil.ask("anvil_reorg", json!([depth, []]));
        let truth = anvil.ask("eth_getBlockByNumber", json!([format!("{head:#x}"), false]));
        assert_ne!(truth["hash"], before);
        until("the view follows", || {
            front.ask("eth_getBlockByNumber", &by_number)["result"]["hash"] == truth["hash"]
        });
        let node_says = anvil.ask("eth_getTransactionReceipt", json!([hash]));
        let told = &front.ask("eth_getTransactionReceipt", &params)["result"];
        assert!(agree(&node_says, told), "depth {depth}: {told} is not {node_says}");
        let balance = anvil.ask("eth_getBalance", json!([BOB, "latest"]));
        assert_eq!(front.ask("eth_getBalance", &format!(r#"["{BOB}","latest"]"#))["result"], balance);
    }
}

#[test]
fn the_head_goes_up_with_the_node_and_never_down() {
    let Some((anvil, proxies, front)) = start() else { return };
    let mut seen = 0;
    for step in 0..40 {
        anvil.mine(1);
        if step % 10 == 5 {
            proxies[0].set(testkit::proxy::Mood::StaleHead);
        } else if step % 10 == 0 {
            proxies[0].set(testkit::proxy::Mood::Honest);
        }
        let now = number(&front.ask("eth_blockNumber", "[]"));
        assert!(now >= seen, "{now} after {seen}");
        seen = now;
        std::thread::sleep(Duration::from_millis(10));
    }
    let head = anvil.head();
    until("the head is reached", || number(&front.ask("eth_blockNumber", "[]")) == head);
}

/// Mines so many blocks, no more than the view can follow at a time.
fn mine_followed(anvil: &Anvil, front: &Front, blocks: u64) {
    for _ in 0..blocks.div_ceil(50) {
        anvil.mine(50);
        let head = anvil.head();
        until("the head is reached", || number(&front.ask("eth_blockNumber", "[]")) == head);
    }
}

/// A receipt was kept with its block. The block lost its place, nobody asked meanwhile, and when its number had left the
/// window the receipt was an answer again.
#[test]
fn an_answer_does_not_come_back_when_its_block_is_deep() {
    let Some((anvil, _proxies, front)) = start() else { return };
    let hash = pay(&anvil, 7);
    let params = json!([hash]).to_string();
    until("the payment is seen", || front.ask("eth_getTransactionReceipt", &params)["result"].is_object());
    let kept = front.ask("eth_getTransactionReceipt", &params)["result"].clone();
    anvil.ask("anvil_reorg", json!([1, []]));
    mine_followed(&anvil, &front, 300);
    let truth = anvil.ask("eth_getTransactionReceipt", json!([hash]));
    assert_ne!(truth, kept, "the block is gone");
    let told = &front.ask("eth_getTransactionReceipt", &params)["result"];
    assert!(agree(&truth, told), "{told} is not {truth}");
}

/// The nodes were asked one after the other which block has a deep number, and one that hangs had the time of all.
#[test]
fn a_node_that_hangs_does_not_hold_up_deep_numbers() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    anvil.mine(400);
    let rest = "[network]\nname = \"anvil\"\n[pool]\ncall_timeout_ms = 120000\n";
    let (proxies, front) = Front::behind(anvil.address, "/", 3, rest);
    proxies[0].set(testkit::proxy::Mood::Hung);
    for deep in 1..4 {
        let asked = Instant::now();
        let reply = front.ask("eth_getBlockByNumber", &format!(r#"["{deep:#x}",false]"#));
        assert_eq!(reply["result"]["number"], format!("{deep:#x}"), "{reply}");
        assert!(asked.elapsed() < Duration::from_secs(60), "{:?}", asked.elapsed());
    }
}

/// The view had a new head before its node was known to have it, and for that time nobody could be asked about it.
#[test]
fn a_new_head_can_be_asked_about_at_once() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    let node = Proxy::start(anvil.address, "/");
    let front = Front::of(&[node.url()], "[network]\nname = \"anvil\"\n[cache]\nenabled = false\n");
    node.set(testkit::proxy::Mood::Slow(Duration::from_millis(30)));
    for _ in 0..12 {
        anvil.mine(1);
        for _ in 0..8 {
            let reply = front.ask("eth_getBalance", &format!(r#"["{BOB}","latest"]"#));
            assert!(reply["result"].is_string(), "{reply}");
        }
    }
}

/// All calls of a batch see one chain. Those that were not answered when it was gone fail, and the next batch sees the new one.
#[test]
fn calls_of_a_batch_whose_block_is_reorganised_away_fail() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    anvil.mine(10);
    let rest = "[network]\nname = \"anvil\"\n[cache]\nenabled = false\n";
    let (_proxies, front) = Front::behind(anvil.address, "/", 3, rest);
    let latest =
        [("eth_getBalance", json!([BOB, "latest"])), ("eth_getBlockByNumber", json!(["latest", false]))];
    let calls: Vec<_> = latest.iter().cycle().take(6).collect();
    let batch = calls.iter().map(|(method, params)| call(method, &params.to_string()));
    let batch = format!("[{}]", batch.collect::<Vec<_>>().join(","));
    const BATCHES: usize = 20;
    let mut asked = 0;
    for turn in 0..BATCHES {
        anvil.ask("anvil_reorg", json!([1 + turn % 3, []]));
        until("the batch is answered", || {
            asked += 1;
            let replies = front.wire().post("/v3/custom", &batch).json();
            let replies = replies.as_array().unwrap();
            let failed = replies.iter().filter(|reply| !reply["error"].is_null());
            failed.clone().for_each(|reply| assert_eq!(reply["error"]["code"], -32002, "{replies:?}"));
            let mut hashes: Vec<_> = replies
                .iter()
                .map(|reply| &reply["result"]["hash"])
                .filter(|hash| hash.is_string())
                .collect();
            hashes.dedup();
            assert!(replies.len() == 6 && hashes.len() <= 1, "{replies:?}");
            failed.count() == 0
        });
    }
    let calls = |method: &str| {
        let of = |outcome| {
            let name = format!("chaingate_calls_total{{method=\"{method}\",outcome=\"{outcome}\"}}");
            metric(front.operator, &name)
        };
        (of("ok"), of("unavailable"))
    };
    for (method, _) in &latest {
        let (answered, failed) = calls(method);
        assert!(answered >= 3.0 * BATCHES as f64, "{answered} calls were answered");
        assert_eq!(answered + failed, 3.0 * f64::from(asked), "each call is counted once");
    }
}

/// Anvil drops what it takes back. Nobody waits for a block that no node has any more.
#[test]
fn a_side_block_that_no_node_has_any_more_is_not_there() {
    let Some((anvil, _proxies, front)) = start() else { return };
    let head = anvil.head();
    let by_number = format!(r#"["{head:#x}",false]"#);
    let hash = anvil.ask("eth_getBlockByNumber", json!([format!("{head:#x}"), false]))["hash"].clone();
    until("the head is seen", || number(&front.ask("eth_blockNumber", "[]")) == head);
    anvil.ask("anvil_reorg", json!([2, []]));
    until("the view follows", || {
        let told = front.ask("eth_getBlockByNumber", &by_number);
        told["result"].is_object() && told["result"]["hash"] != hash
    });
    let told = front.ask("eth_getBlockByHash", &json!([hash, false]).to_string());
    assert_eq!(told["result"], Value::Null, "{told}");
    let told = front.ask("eth_getBalance", &json!([BOB, {"blockHash": hash}]).to_string());
    assert_eq!(told["error"]["message"], "header for hash not found", "{told}");
}

/// The absence of a receipt is true until the next head, and not a moment longer.
#[test]
fn a_receipt_is_there_as_soon_as_its_block_is() {
    let Some((anvil, _proxies, front)) = start() else { return };
    for wei in 1..6 {
        let payment = json!([{"from": ALICE, "to": BOB, "value": format!("{wei:#x}")}]);
        let hash = anvil.ask("eth_sendTransaction", payment);
        let params = json!([hash]).to_string();
        for _ in 0..3 {
            assert_eq!(front.ask("eth_getTransactionReceipt", &params)["result"], Value::Null);
        }
        anvil.mine(1);
        let head = anvil.head();
        until("the head is reached", || number(&front.ask("eth_blockNumber", "[]")) == head);
        assert!(front.ask("eth_getTransactionReceipt", &params)["result"].is_object());
    }
}
