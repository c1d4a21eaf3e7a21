//! Following a real node that changes its mind. Needs anvil: `ANVIL` names the program.

use serde_json::{Value, json};
use testkit::anvil::Anvil;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::questions::agree;
use crate::demo::{metric, until};

const ALICE: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const BOB: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

fn payment(wei: u64) -> Value {
    json!({"from": ALICE, "to": BOB, "value": format!("{wei:#x}")})
}

fn pay(anvil: &Anvil, wei: u64) -> Value {
    let hash = anvil.ask("eth_sendTransaction", json!([payment(wei)]));
    anvil.mine(1);
    hash
}

/// A block as anvil says it. It counts the bytes of blocks with withdrawals in another way.
fn block(anvil: &Anvil, number: u64) -> Value {
    let mut block = anvil.ask("eth_getBlockByNumber", json!([format!("{number:#x}"), true]));
    block.as_object_mut().expect("it has the block").remove("size");
    block
}

fn memory_blocks(front: &Front) -> u64 {
    metric(front.operator, "chaingate_follow_memory_blocks") as u64
}

/// The answers of the gateway about the blocks from a number on, and the receipts of these payments.
fn told(front: &Front, from: u64, head: u64, payments: &[Value]) -> Vec<Value> {
    let mut told = Vec::new();
    for number in from..=head {
        told.push(front.ask("eth_getBlockByNumber", &format!(r#"["{number:#x}",true]"#)));
        told.push(front.ask("eth_getBlockReceipts", &format!(r#"["{number:#x}"]"#)));
    }
    for hash in payments {
        told.push(front.ask("eth_getTransactionReceipt", &json!([hash]).to_string()));
    }
    told.into_iter().map(|reply| reply["result"].clone()).collect()
}

/// After reorganisations of each depth all blocks of the new branch are there without a node, and none of the old ones.
#[test]
fn blocks_of_a_new_branch_are_followed_and_answered_with_all_nodes_dead() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    anvil.mine(3);
    let proxies: Vec<_> = (0..2).map(|_| Proxy::start(anvil.address, "/")).collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let folder = tempfile::tempdir().unwrap();
    let network = "[network]\nname = \"anvil\"\n[cache]\nenabled = false\n";
    let front = Front::following(folder.path(), &urls, "from = 0", network);
    let mut payments = Vec::new();
    for depth in 1..=7 {
        for wei in 0..8 {
            payments.push(pay(&anvil, 100 * depth + wei));
        }
        anvil.ask("anvil_reorg", json!([depth, [[payment(7_000 + depth), 0]]]));
        let head = anvil.head();
        let newest = anvil.ask("eth_getBlockByNumber", json!([format!("{head:#x}"), false]));
        until("the new branch is kept", || {
            let told = front.ask("eth_getBlockByNumber", &format!(r#"["{head:#x}",false]"#));
            told["result"]["hash"] == newest["hash"] && memory_blocks(&front) > head
        });
        for number in 0..=head {
            let truth = block(&anvil, number);
            let said = front.ask("eth_getBlockByNumber", &format!(r#"["{number:#x}",true]"#));
            assert!(agree(&truth, &said["result"]), "depth {depth}: {said} is not {truth}");
        }
        // All blocks that are asked for are in memory.
        let before = told(&front, 0, head, &[]);
        let mined: Vec<_> = payments
            .iter()
            .filter(|hash| anvil.ask("eth_getTransactionReceipt", json!([hash])).is_object())
            .cloned()
            .collect();
        let receipts = told(&front, head + 1, head, &mined);
        proxies.iter().for_each(|proxy| proxy.set(Mood::Dead));
        assert_eq!(told(&front, 0, head, &[]), before, "depth {depth}");
        assert_eq!(told(&front, head + 1, head, &mined), receipts, "depth {depth}");
        assert!(receipts.iter().all(Value::is_object));
        proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
    }
}

/// A chain that contradicts what was written as final stops following, loudly, and nodes answer.
#[test]
fn a_reorganisation_below_what_is_final_stops_following() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    anvil.mine(100);
    let proxy = Proxy::start(anvil.address, "/");
    let folder = tempfile::tempdir().unwrap();
    let network = "[network]\nname = \"anvil\"\n[cache]\nenabled = false\n";
    let front = Front::following(folder.path(), &[proxy.url()], "from = 0", network);
    until("some are final", || metric(front.operator, "chaingate_follow_blocks") > 30.0);
    anvil.ask("anvil_reorg", json!([90, []]));
    anvil.mine(1);
    until("following has stopped", || metric(front.operator, "chaingate_follow_running") == 0.0);
    let head = anvil.head();
    until("the view follows", || {
        let told = front.ask("eth_getBlockByNumber", &format!(r#"["{head:#x}",false]"#));
        told["result"].is_object()
    });
    for number in [5, 20, 60, head] {
        let truth = block(&anvil, number);
        let said = front.ask("eth_getBlockByNumber", &format!(r#"["{number:#x}",true]"#));
        assert!(agree(&truth, &said["result"]), "{said} is not {truth}");
    }
}

/// Stored blocks that `evm_revert` removes were served as canonical, and following stopped with the next blocks of their numbers.
#[test]
fn stored_blocks_that_a_node_removes_are_removed_and_following_goes_on() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    anvil.mine(20);
    let snapshot = anvil.ask("evm_snapshot", json!([]));
    anvil.mine(20);
    let payment = pay(&anvil, 7);
    let removed = anvil.head();
    anvil.mine(90);
    let folder = tempfile::tempdir().unwrap();
    let rest = "[network]\nname = \"anvil\"\n[cache]\nenabled = false\n[pool]\nrollback_after_ms = 20\n";
    let front = Front::following(folder.path(), &[format!("http://{}", anvil.address)], "from = 0", rest);
    let newest_stored = || metric(front.operator, "chaingate_follow_newest_block") as u64;
    until("it is stored", || newest_stored() >= removed);
    let hash = block(&anvil, removed)["hash"].clone();
    let receipt = || front.ask("eth_getTransactionReceipt", &json!([payment]).to_string())["result"].clone();
    assert_eq!(receipt()["blockHash"], hash);

    assert_eq!(anvil.ask("evm_revert", json!([snapshot])), Value::Bool(true));
    until("the stored blocks are removed", || newest_stored() <= 20);
    assert_eq!(front.ask("eth_blockNumber", "[]")["result"], "0x14");
    assert_eq!(receipt(), Value::Null);
    anvil.ask("anvil_setNextBlockTimestamp", json!([4_000_000_000_u64]));
    anvil.mine(120);
    until("the new blocks are stored", || newest_stored() > removed);
    assert_eq!(metric(front.operator, "chaingate_follow_running"), 1.0);
    for number in [20, 21, removed, anvil.head()] {
        let (truth, said) =
            (block(&anvil, number), front.ask("eth_getBlockByNumber", &format!(r#"["{number:#x}",true]"#)));
        assert!(agree(&truth, &said["result"]), "{said} is not {truth}");
    }
    assert_eq!(receipt(), Value::Null);
}
