//! Answers that only a quorum has confirmed: they are asked again after a time and when their nodes say otherwise, and served
//! while nobody can be asked.

use std::thread;
use std::time::Duration;

use methods::METHODS;
use serde_json::Value;
use testkit::forgery::Forgery;
use testkit::http::get;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::long;
use super::questions::{self, outcome};
use crate::demo::Demo;

const NETWORK: &str = "[network]\nname = \"long\"\n";

/// Below this number the liars have other blocks.
const OTHER_BELOW: u64 = 12;

/// Blocks below the window that are asked about.
const NUMBERS: std::ops::Range<u64> = 2..11;

/// Blocks whose transactions are said to have no receipts.
const RECEIPT_BLOCKS: std::ops::Range<u64> = 2..19;

const STATE_BLOCKS: std::ops::Range<u64> = 248..288;

/// Three nodes that have all lied, each about old blocks, state and receipts, and are honest by now.
struct Reformed {
    front: Front,
    proxies: Vec<Proxy>,
    /// Answers that were wrong, with the truth.
    wrong: Vec<(&'static str, String, Value)>,
    chain: testkit::heavy::HeavyChain,
    _nodes: [Demo; 2],
}

impl Reformed {
    fn with(confirmed_for_ms: u64) -> Self {
        let chain = long::chain(2);
        let (node, other) = (long::node(&chain), long::node(&long::chain(3)));
        let rest = format!("{NETWORK}[integrity]\nconfirmed_for_ms = {confirmed_for_ms}\n");
        let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, &rest);
        let receipt = |number: u64| {
            let transaction = chain.blocks[number as usize - 1].block.body.transactions[0].tx_hash();
            ("eth_getTransactionReceipt", format!(r#"["{transaction}"]"#))
        };
        let lies = [
            (Mood::Forging(Forgery::NoTransactions), RECEIPT_BLOCKS.map(receipt).collect::<Vec<_>>()),
            (
                Mood::Forging(Forgery::StorageValue),
                STATE_BLOCKS
                    .map(|number| ("eth_getStorageAt", long::storage_at(&format!(r#""{number:#x}""#))))
                    .collect(),
            ),
            (
                Mood::OtherDepths { node: other.public, below: OTHER_BELOW },
                NUMBERS.map(|number| ("eth_getBlockByNumber", format!(r#"["{number:#x}",false]"#))).collect(),
            ),
        ];
        let mut wrong = Vec::new();
        for (mood, questions) in lies {
            proxies.iter().for_each(|proxy| proxy.set(mood));
            for (method, params) in questions {
                let truth = outcome(&node.call(method, &params));
                let told = outcome(&front.ask(method, &params));
                assert_ne!(told, truth, "all nodes lie: {method} {params}");
                wrong.push((method, params, truth));
            }
        }
        proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
        Self { front, proxies, wrong, chain, _nodes: [node, other] }
    }

    fn still_wrong(&self) -> usize {
        let is_wrong = |(method, params, truth): &&(&'static str, String, Value)| {
            outcome(&self.front.ask(method, params)) != *truth
        };
        self.wrong.iter().filter(is_wrong).count()
    }
}

/// Three of three nodes lied and became honest: their storage, blocks of old numbers and null receipts were served until the
/// restart.
#[test]
fn what_all_nodes_lied_about_is_right_within_the_time() {
    let reformed = Reformed::with(300);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(reformed.still_wrong(), 0);
    // Proven answers are not asked again.
    let hash = reformed.chain.blocks[290].hash;
    let whole = format!(r#"["{hash}",true]"#);
    let asked =
        || reformed.proxies.iter().map(|proxy| proxy.asked("eth_getBlockByHash", &whole)).sum::<u64>();
    reformed.front.ask("eth_getBlockByHash", &whole);
    let before = asked();
    thread::sleep(Duration::from_millis(400));
    reformed.front.ask("eth_getBlockByHash", &whole);
    assert_eq!((before, asked()), (1, 1));
}

/// The nodes now name the true block of a transaction. So they have lied about its number before, and all their answers are
/// asked again at once.
#[test]
fn answers_are_asked_again_when_their_nodes_say_otherwise() {
    let reformed = Reformed::with(3_600_000);
    assert!(reformed.still_wrong() > 0, "nobody has said otherwise yet");
    // The second transaction of the block: nothing is known about it.
    let transaction = reformed.chain.blocks[6].block.body.transactions[1].tx_hash();
    let receipt = reformed.front.ask("eth_getTransactionReceipt", &format!(r#"["{transaction}"]"#));
    assert_eq!(receipt["result"]["blockNumber"], "0x7", "{receipt}");
    assert_eq!(reformed.still_wrong(), 0);
}

/// With two of three nodes dead nothing can be confirmed again. Answers that were confirmed before were dropped after their time.
#[test]
fn confirmed_answers_are_served_while_nobody_can_confirm_them_again() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let rest = format!("{NETWORK}[integrity]\nconfirmed_for_ms = 1\n");
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, &rest);
    let transaction = chain.blocks[6].block.body.transactions[0].tx_hash();
    let questions = [
        ("eth_getStorageAt", long::storage_at(r#""latest""#)),
        ("eth_getStorageAt", long::storage_at(r#""0x7""#)),
        ("eth_getBlockByNumber", r#"["0x7",true]"#.to_owned()),
        ("eth_getTransactionReceipt", format!(r#"["{transaction}"]"#)),
        ("eth_getTransactionReceipt", format!(r#"["0x{}"]"#, "ab".repeat(32))),
        ("eth_getLogs", r#"[{"fromBlock":"0x7","toBlock":"0x7"}]"#.to_owned()),
    ];
    let truth = questions.each_ref().map(|(method, params)| outcome(&node.call(method, params)));
    let ask = |(method, params): &(&'static str, String)| front.ask_as("custom", "", method, params);
    questions.iter().for_each(|question| drop(ask(question)));
    proxies[1..].iter().for_each(|proxy| proxy.set(Mood::Dead));
    for (question, truth) in questions.iter().zip(&truth) {
        let reply = ask(question);
        assert_eq!(outcome(&reply.json()), *truth, "{question:?}");
        assert_eq!(reply.header("chaingate-verified"), Some("confirmed"), "{question:?}");
    }
    // An old number that nobody has asked for before needs a quorum.
    let unknown = ("eth_getBlockByNumber", r#"["0x9",true]"#.to_owned());
    assert_eq!(ask(&unknown).error(), "-32002 resource unavailable");
}

/// Methods that are never cached, because their answers may change at any moment: their examples fail with one of three nodes
/// left, although they were answered before.
const FAIL_ALONE: [&str; 0] = [];

/// Every method of the list is asked while all nodes are there, and again when two of three are dead.
#[test]
fn one_of_three_nodes_answers_what_was_answered_before() {
    let chain = Demo::with("");
    let (proxies, front) = Front::behind(chain.public, "/v3/demo", 3, "[network]\nname = \"demo\"\n");
    let questions = questions::all(&chain);
    for question in &questions {
        assert_eq!(outcome(&front.ask(question.method, &question.params)), question.truth, "{question:?}");
    }
    proxies[1..].iter().for_each(|proxy| proxy.set(Mood::Dead));
    let mut failed = Vec::new();
    for question in &questions {
        let told = outcome(&front.ask(question.method, &question.params));
        if told != question.truth {
            assert_eq!(told["code"], -32002, "{question:?}: {told}");
            assert_eq!(told["message"], "resource unavailable", "{question:?}: {told}");
            // Errors of the EVM and unknown transactions and blocks are not cached.
            let is_uncached = question.truth.is_null() || question.truth.get("code").is_some();
            if !is_uncached {
                failed.push(question.method);
            }
        }
    }
    failed.dedup();
    assert_eq!(failed, FAIL_ALONE);
    let asked: Vec<_> = questions.iter().map(|question| question.method).collect();
    let all = METHODS.iter().filter(|method| method.name != "rpc.discover");
    all.for_each(|method| assert!(asked.contains(&method.name), "{} was not asked", method.name));
    assert_eq!(get(front.operator, "/health").status, 200);
}
