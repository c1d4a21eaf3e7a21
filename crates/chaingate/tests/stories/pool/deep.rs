//! Answers about blocks below the window, which nobody has watched, and the nodes that are believed.

use std::thread;
use std::time::Duration;

use serde_json::Value;
use testkit::heavy::HeavyChain;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::lists::wrong_answers;
use super::long;
use super::questions::outcome;
use crate::demo::{Demo, metric, until};

const NO_CACHE: &str = "[network]\nname = \"long\"\n[cache]\nenabled = false\n";
const BY_NUMBER: &str = "eth_getBlockByNumber";
const UNAVAILABLE: i64 = -32002;

/// Blocks that are below the window in any case.
const DEEP: std::ops::Range<u64> = 2..22;

/// Nodes of one chain, the first of which has other blocks below the window.
struct Dispute {
    proxies: Vec<Proxy>,
    front: Front,
    chain: Demo,
    _other: Demo,
}

impl Dispute {
    fn among(nodes: usize, rest: &str) -> Self {
        let (chain, other) = (long::node(&long::chain(2)), long::node(&long::chain(3)));
        let rest =
            format!("{NO_CACHE}{rest}").replace("PARTNER", &format!("http://{}/v3/demo", chain.public));
        let (proxies, front) = Front::behind(chain.public, "/v3/demo", nodes, &rest);
        proxies[0].set(Mood::OtherDepths { node: other.public, below: DEEP.end });
        Self { proxies, front, chain, _other: other }
    }
}

fn block(number: u64) -> String {
    format!(r#"["{number:#x}",false]"#)
}

/// The block with most votes was believed, and of two with one vote each the one that came last.
#[test]
fn two_nodes_that_disagree_about_a_deep_block_are_not_believed() {
    let dispute = Dispute::among(2, "");
    for number in DEEP {
        let reply = dispute.front.ask(BY_NUMBER, &block(number));
        assert_eq!(reply["error"]["code"], UNAVAILABLE, "{reply}");
    }
    // Only the block is in dispute, not the node.
    dispute.proxies[0].set(Mood::Honest);
    let truth = outcome(&dispute.chain.call(BY_NUMBER, &block(7)));
    assert_eq!(outcome(&dispute.front.ask(BY_NUMBER, &block(7))), truth);
}

/// Nothing proves which of two chains is the canonical one, so nobody is taken for a liar.
#[test]
fn a_quorum_is_believed_about_deep_blocks_and_convicts_nobody() {
    let dispute = Dispute::among(3, "");
    for number in DEEP {
        let truth = outcome(&dispute.chain.call(BY_NUMBER, &block(number)));
        assert_eq!(outcome(&dispute.front.ask(BY_NUMBER, &block(number))), truth);
    }
    for node in &dispute.proxies {
        assert_eq!(wrong_answers(&dispute.front, node), 0);
    }
}

/// One node had another block, and the honest ones were slow or in trouble for a moment. Its word was taken, and kept.
#[test]
fn a_lone_liar_is_not_believed_because_others_are_slow_or_fail_for_a_moment() {
    let dispute = Dispute::among(3, "");
    let honest = |mood: Mood| dispute.proxies[1..].iter().for_each(|proxy| proxy.set(mood));
    let truth = |number| outcome(&dispute.chain.call(BY_NUMBER, &block(number)));
    honest(Mood::Slow(Duration::from_millis(1_300)));
    assert_eq!(outcome(&dispute.front.ask(BY_NUMBER, &block(7))), truth(7));
    honest(Mood::ServerError);
    let _whatever = dispute.front.ask(BY_NUMBER, &block(8));
    honest(Mood::Honest);
    until("the truth is found", || outcome(&dispute.front.ask(BY_NUMBER, &block(8))) == truth(8));
}

/// A liar decided alone which block has an old number, as soon as the honest nodes were dead.
#[test]
fn a_liar_that_is_left_alone_is_not_believed_about_deep_blocks() {
    let dispute = Dispute::among(3, "");
    dispute.proxies[1..].iter().for_each(|proxy| proxy.set(Mood::Dead));
    for number in [7, 8] {
        let reply = dispute.front.ask(BY_NUMBER, &block(number));
        assert_eq!(reply["error"]["code"], UNAVAILABLE, "{reply}");
    }
    // A block that the head commits to is proven, whoever delivers it.
    let recent = block(long::BLOCKS - 1);
    let truth = outcome(&dispute.chain.call(BY_NUMBER, &recent));
    assert_eq!(outcome(&dispute.front.ask(BY_NUMBER, &recent)), truth);
}

/// Two nodes that had dropped a block were a quorum for its not being there.
#[test]
fn a_deep_block_is_there_if_one_node_has_it() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, NO_CACHE);
    proxies[0].set(Mood::Slow(Duration::from_millis(300)));
    proxies[1..].iter().for_each(|proxy| proxy.set(Mood::Hashless));
    let params = format!(r#"["{}",false]"#, chain.blocks[6].block.header.hash_slow());
    assert_eq!(front.ask("eth_getBlockByHash", &params)["result"]["number"], "0x7");
}

/// One partner alone would decide which block is meant.
#[test]
fn no_partner_is_asked_where_the_nodes_disagree() {
    let dispute = Dispute::among(2, "[[partner]]\nurl = \"PARTNER\"\n");
    dispute.front.wait_for_partner();
    let reply = dispute.front.ask_as("growth", "", "eth_getStorageAt", &long::storage_at(r#""0x7""#));
    assert_eq!(reply.json()["error"]["code"], UNAVAILABLE, "{}", reply.text());
    assert_eq!(metric(dispute.front.operator, "chaingate_partner_answers_total{reason=\"no_answer\"}"), 0.0);
}

/// Questions about the first transaction of each deep block, by its hash.
fn transactions(chain: &HeavyChain) -> Vec<(&'static str, String)> {
    let first =
        |number: u64| chain.blocks[number as usize - 1].block.body.transactions[0].tx_hash().to_string();
    let both = |number| {
        let params = format!(r#"["{}"]"#, first(number));
        [("eth_getTransactionByHash", params.clone()), ("eth_getTransactionReceipt", params)]
    };
    DEEP.flat_map(both).collect()
}

fn misplaced(nodes: usize) -> (Vec<Proxy>, Front, Demo, HeavyChain) {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let (proxies, front) = Front::behind(node.public, "/v3/demo", nodes, NO_CACHE);
    proxies[0].set(Mood::Misplaced);
    (proxies, front, node, chain)
}

/// Below the window, a node was taken at its word about the block that a transaction is in.
#[test]
fn a_deep_transaction_is_in_a_block_that_the_nodes_agree_on() {
    let (_proxies, front, node, chain) = misplaced(2);
    for (method, params) in transactions(&chain) {
        let truth = outcome(&node.call(method, &params));
        assert_eq!(outcome(&front.ask(method, &params)), truth, "{method} {params}");
    }
}

/// Each invented block costs a look-up at all nodes, and the node that invented them was asked as often as the others.
#[test]
fn a_node_that_makes_places_up_is_asked_after_the_others_and_not_convicted() {
    let (proxies, front, node, chain) = misplaced(3);
    // The liar is asked first.
    proxies[1..].iter().for_each(|proxy| proxy.set(Mood::Slow(Duration::from_millis(20))));
    // The liar names the block above, so that no two of its lies are about the same block.
    let mut numbers = (2..long::BLOCKS - 257).step_by(3);
    let mut ask = || {
        let number = numbers.next().expect("a block is left") as usize;
        let params = format!(r#"["{}"]"#, chain.blocks[number - 1].block.body.transactions[0].tx_hash());
        let truth = outcome(&node.call("eth_getTransactionReceipt", &params));
        assert_eq!(outcome(&front.ask("eth_getTransactionReceipt", &params)), truth, "{number}");
        proxies[0].asked_method("eth_getTransactionReceipt")
    };
    let mut asked = 0;
    for _ in 0..12 {
        asked = ask();
    }
    // A busy machine may have been slow with one or the other of the honest nodes.
    assert!((1..=6).contains(&asked), "the liar was asked {asked} times");
    let faults = format!("chaingate_node_faults_total{{node=\"{}\",fault=\"wrong\"}}", proxies[0].url());
    assert_eq!(metric(front.operator, &faults), 0.0);
}

/// A node named an old block, which the others had dropped, for every transaction that it did not know. So nobody was told that
/// these are in no block.
#[test]
fn a_node_that_does_not_have_the_block_it_names_is_outvoted() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, NO_CACHE);
    let hash = chain.blocks[6].block.header.hash_slow();
    proxies[0].set(Mood::FalsePlaces { number: 7, hash });
    proxies[1..].iter().for_each(|proxy| proxy.set(Mood::Hashless));
    for unknown in 0..10 {
        let params = format!(r#"["0x{unknown:064x}"]"#);
        let reply = front.ask("eth_getTransactionReceipt", &params);
        assert_eq!(reply.get("result"), Some(&Value::Null), "{reply}");
    }
    assert!(proxies[0].asked_method("eth_getTransactionReceipt") > 0, "it was asked");
}

/// The blocks of the node prove its own answer wrong.
#[test]
fn a_node_alone_is_not_believed_where_it_contradicts_itself() {
    let (_proxies, front, _node, chain) = misplaced(1);
    let (method, params) = transactions(&chain).swap_remove(0);
    assert_eq!(front.ask(method, &params)["error"]["code"], UNAVAILABLE);
}

/// The block of a number is proven once, for all transactions in it.
#[test]
fn a_deep_block_is_asked_for_once() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, NO_CACHE);
    for transaction in &chain.blocks[6].block.body.transactions {
        for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
            let reply = front.ask(method, &format!(r#"["{}"]"#, transaction.tx_hash()));
            assert_eq!(reply["result"]["blockNumber"], "0x7", "{reply}");
        }
    }
    assert!(proxies.iter().all(|proxy| proxy.asked(BY_NUMBER, &block(7)) == 1));
}

/// Each of many who asked for the same deep block at once asked every node.
#[test]
fn equal_questions_share_one_look_up_of_a_deep_block() {
    let node = long::node(&long::chain(2));
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, NO_CACHE);
    proxies.iter().for_each(|proxy| proxy.set(Mood::Slow(Duration::from_millis(300))));
    let params = long::storage_at(r#""0x7""#);
    thread::scope(|scope| {
        let ask = || {
            let reply = front.ask("eth_getStorageAt", &params);
            assert!(reply["result"].is_string(), "{reply}");
        };
        (0..8).for_each(|_| drop(scope.spawn(ask)));
    });
    let asked: Vec<_> = proxies.iter().map(|proxy| proxy.asked(BY_NUMBER, &block(7))).collect();
    assert_eq!(asked, [1; 3]);
    assert_ne!(front.ask(BY_NUMBER, &block(7))["result"], Value::Null);
}
