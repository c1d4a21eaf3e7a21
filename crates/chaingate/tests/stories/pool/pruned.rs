//! Nodes that have dropped what is old, and say that it does not exist. Nobody lies.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::heavy::HeavyChain;
use testkit::proxy::{Mood, Proxy, Pruned};

use super::front::Front;
use super::lists::wrong_answers;
use super::long;
use super::questions::outcome;
use crate::demo::{Demo, until};

const NO_CACHE: &str = "[network]\nname = \"long\"\n[cache]\nenabled = false\n";
const RECEIPT: &str = "eth_getTransactionReceipt";
const TRANSACTION: &str = "eth_getTransactionByHash";

/// Below this block two of three nodes have nothing but the blocks. It is below the window.
const KEPT_FROM: u64 = 30;

/// Blocks that only one node has the rest of.
const DROPPED: std::ops::Range<u64> = 2..26;

/// A node that has everything, and two that have dropped what is old.
struct Mix {
    proxies: Vec<Proxy>,
    front: Front,
    node: Demo,
    chain: HeavyChain,
}

impl Mix {
    /// The last node knows, and is in this mood before anything is known about it.
    fn of(says: Pruned, knowing: Mood, rest: &str) -> Self {
        let pruned = Mood::Pruned { below: KEPT_FROM, says };
        Self::with([pruned, pruned, knowing], &format!("{NO_CACHE}{rest}"))
    }

    fn with(moods: [Mood; 3], rest: &str) -> Self {
        let chain = long::chain(2);
        let node = long::node(&chain);
        let start = |mood| {
            let proxy = Proxy::start(node.public, "/v3/demo");
            proxy.set(mood);
            proxy
        };
        let proxies: Vec<_> = moods.map(start).into();
        let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
        let front = Front::of(&urls, rest);
        Self { proxies, front, node, chain }
    }

    /// Waits until it is known what each node has.
    fn shown(self) -> Self {
        self.front.wait_for_histories();
        self
    }

    fn transaction(&self, number: u64) -> String {
        let transactions = &self.chain.blocks[number as usize - 1].block.body.transactions;
        format!(r#"["{}"]"#, transactions[0].tx_hash())
    }

    fn assert_true(&self, method: &str, params: &str) {
        let truth = outcome(&self.node.call(method, params));
        assert_eq!(outcome(&self.front.ask(method, params)), truth, "{method} {params}");
    }
}

/// Two of three nodes had no index of old transactions, and the third was slower: half of the calls for a transaction that
/// exists said null, and that it was confirmed.
#[test]
fn data_of_one_slow_node_is_found() {
    assert_data_of_a_slow_node_is_found(&[(Pruned::Nothing, 600), (Pruned::Error, 600)]);
}

/// A node that takes seconds for each reply counts as down, and was not waited for: a null that is not confirmed came before its
/// answer.
#[test]
fn data_of_one_very_slow_node_is_found() {
    assert_data_of_a_slow_node_is_found(&[(Pruned::EmptyLists, 3_000)]);
}

/// The watcher of a node does not wait for replies that take seconds, so that it takes the node for silent.
#[test]
fn data_of_a_node_that_became_slow_in_everything_is_found() {
    for says in [Pruned::Nothing, Pruned::EmptyLists] {
        let mix = Mix::of(says, Mood::Honest, "[pool]\ncall_timeout_ms = 60000\n").shown();
        mix.proxies[2].set(Mood::Slow(Duration::from_secs(3)));
        until("its watcher has lost it", || mix.front.sees_silent(&mix.proxies[2]));
        thread::sleep(Duration::from_secs(15));
        thread::scope(|scope| {
            for number in DROPPED.step_by(4) {
                let mix = &mix;
                scope.spawn(move || {
                    mix.assert_true(TRANSACTION, &mix.transaction(number));
                    mix.assert_true(RECEIPT, &mix.transaction(number + 1));
                    mix.assert_true("eth_getBlockReceipts", &format!(r#"["{number:#x}"]"#));
                });
            }
        });
    }
}

/// Logs that only a slow node has were an empty list.
#[test]
fn logs_of_one_very_slow_node_are_found() {
    let slow = Mood::SlowOnData(Duration::from_secs(3));
    let rest = "[pool]\ncall_timeout_ms = 60000\n[integrity]\nmode = \"off\"\n";
    let mix = Mix::of(Pruned::Nothing, slow, rest);
    thread::scope(|scope| {
        for from in DROPPED.step_by(2) {
            let mix = &mix;
            scope.spawn(move || {
                let filter =
                    json!([{ "fromBlock": format!("{from:#x}"), "toBlock": format!("{:#x}", from + 2) }]);
                mix.assert_true("eth_getLogs", &filter.to_string());
            });
        }
    });
}

fn assert_data_of_a_slow_node_is_found(mixes: &[(Pruned, u64)]) {
    for &(says, slowness) in mixes {
        let slow = Mood::SlowOnData(Duration::from_millis(slowness));
        let mix = Mix::of(says, slow, "[pool]\ncall_timeout_ms = 60000\n");
        thread::scope(|scope| {
            for number in DROPPED.step_by(2) {
                let mix = &mix;
                scope.spawn(move || {
                    mix.assert_true(TRANSACTION, &mix.transaction(number));
                    mix.assert_true(RECEIPT, &mix.transaction(number + 1));
                });
            }
        });
        mix.proxies.iter().for_each(|proxy| assert_eq!(wrong_answers(&mix.front, proxy), 0, "nobody lies"));
    }
}

/// It may be up again, but as long as it is away nobody may call a null confirmed.
#[test]
fn without_the_node_that_knows_no_null_is_confirmed() {
    let mix = Mix::of(Pruned::Nothing, Mood::Honest, "").shown();
    mix.proxies[2].set(Mood::Dead);
    for number in DROPPED {
        for method in [TRANSACTION, RECEIPT] {
            let reply = mix.front.ask_as("custom", "", method, &mix.transaction(number));
            let is_null = reply.json().get("result") == Some(&Value::Null);
            if is_null {
                assert_eq!(reply.header("chaingate-verified"), Some("none"));
            } else {
                assert_eq!(reply.json()["error"]["code"], -32002, "{}", reply.text());
            }
        }
    }
    mix.proxies[2].set(Mood::Honest);
    until("it is back", || mix.front.ask(RECEIPT, &mix.transaction(2))["result"].is_object());
    for number in DROPPED {
        mix.assert_true(RECEIPT, &mix.transaction(number));
    }
}

/// The node that knows answers its watcher, and nothing else.
#[test]
fn a_node_that_may_know_and_does_not_answer_is_waited_for() {
    let mix = Mix::of(Pruned::Nothing, Mood::Honest, "[pool]\ncall_timeout_ms = 3000\n").shown();
    mix.proxies[2].set(Mood::HungOnData);
    for number in [2, 3, 4] {
        let reply = mix.front.ask(RECEIPT, &mix.transaction(number));
        assert_eq!(reply["error"]["code"], -32002, "{reply}");
        assert!(reply["error"]["data"]["reason"].is_string(), "{reply}");
    }
}

/// A client polls for its fresh transaction behind nodes none of which has an index of everything.
#[test]
fn a_fresh_transaction_is_null_at_once() {
    let mix = Mix::of(Pruned::Nothing, Mood::Pruned { below: KEPT_FROM, says: Pruned::Nothing }, "").shown();
    let begun = Instant::now();
    for unknown in 0..20 {
        let params = format!(r#"["0x{unknown:064x}"]"#);
        for method in [TRANSACTION, RECEIPT] {
            let reply = mix.front.ask_as("custom", "", method, &params);
            assert_eq!(reply.json().get("result"), Some(&Value::Null), "{}", reply.text());
            assert_eq!(reply.header("chaingate-verified"), Some("none"));
        }
    }
    // One that waited until its deadline would take eight seconds.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

/// The usual case costs what it did: one call finds a transaction, and a null asks each node once.
#[test]
fn where_all_nodes_know_nothing_is_asked_twice() {
    let mix = Mix::with([Mood::Honest; 3], NO_CACHE);
    until("all have everything", || {
        mix.front.histories().iter().all(|history| history["tx"] == 0 && history["receipts"] == 0)
    });
    let asked = |params: &str| mix.proxies.iter().map(|proxy| proxy.asked(RECEIPT, params)).sum::<u64>();
    let found = mix.transaction(7);
    mix.assert_true(RECEIPT, &found);
    // A busy machine may be slow with the first answer, so that another node is asked, too.
    assert!((1..=2).contains(&asked(&found)), "{}", asked(&found));
    let unknown = format!(r#"["0x{:064x}"]"#, 1);
    let reply = mix.front.ask_as("custom", "", RECEIPT, &unknown);
    assert_eq!(reply.header("chaingate-verified"), Some("confirmed"), "{}", reply.text());
    assert_eq!(asked(&unknown), 3);
}

/// Nodes said that a block has no receipts, and whoever had them showed that to be wrong: they were taken for liars.
#[test]
fn receipts_that_were_dropped_are_no_lie() {
    for says in [Pruned::Nothing, Pruned::EmptyLists, Pruned::Error] {
        let mix = Mix::of(says, Mood::Honest, "");
        for number in DROPPED {
            mix.assert_true("eth_getBlockReceipts", &format!(r#"["{number:#x}"]"#));
        }
        mix.proxies.iter().for_each(|proxy| assert_eq!(wrong_answers(&mix.front, proxy), 0, "{says:?}"));
    }
}

/// Two nodes returned no logs, or those of a part of the range, and were believed.
#[test]
fn logs_are_asked_of_nodes_that_have_them() {
    for says in [Pruned::Nothing, Pruned::Error] {
        // Proven blocks would show the logs otherwise.
        let mix = Mix::of(says, Mood::Honest, "[integrity]\nmode = \"off\"\n").shown();
        for from in DROPPED {
            let filter =
                json!([{ "fromBlock": format!("{from:#x}"), "toBlock": format!("{:#x}", from + 20) }]);
            mix.assert_true("eth_getLogs", &filter.to_string());
        }
        let dropped: Vec<_> = mix.front.histories().iter().map(|history| history["logs"].as_u64()).collect();
        assert!(dropped[0] > Some(0) && dropped[2] == Some(0), "{dropped:?}");
    }
}

/// Where blocks cannot be proven, two nodes that had dropped what is old confirmed that there is none of it.
#[test]
fn the_absence_of_dropped_data_is_not_confirmed_where_blocks_cannot_be_proven() {
    let zksync = NO_CACHE.replace("[network]\n", "[network]\nfamily = \"zksync\"\n");
    for says in [Pruned::Nothing, Pruned::EmptyLists] {
        let pruned = Mood::Pruned { below: KEPT_FROM, says };
        let rest = format!("{zksync}[pool]\ncall_timeout_ms = 3000\n");
        let mix = Mix::with([pruned, pruned, Mood::Honest], &rest);
        for number in DROPPED.step_by(6) {
            let block = format!("{number:#x}");
            for (method, params) in [
                ("eth_getBlockReceipts", json!([block]).to_string()),
                ("eth_getLogs", json!([{ "fromBlock": block, "toBlock": block }]).to_string()),
                (RECEIPT, mix.transaction(number)),
            ] {
                let reply = mix.front.ask_as("custom", "", method, &params);
                let (told, label) = (outcome(&reply.json()), reply.header("chaingate-verified"));
                let says_nothing = told == json!([]) || told == Value::Null;
                assert!(!says_nothing || label == Some("none"), "{method} {params}: {}", reply.text());
            }
        }
        let recent = json!(["0x120"]).to_string();
        let receipts = mix.front.ask("eth_getBlockReceipts", &recent);
        assert!(receipts["result"].is_array(), "what all have is confirmed: {receipts}");
    }
}

/// Two nodes returned zero for states that they had dropped, and that was confirmed.
#[test]
fn zero_is_not_confirmed_by_nodes_that_have_dropped_the_state() {
    for says in [Pruned::Nothing, Pruned::Error] {
        let mix = Mix::of(says, Mood::Honest, "");
        for number in DROPPED {
            let params = long::storage_at(&format!(r#""{number:#x}""#));
            let reply = mix.front.ask("eth_getStorageAt", &params);
            let truth = outcome(&mix.node.call("eth_getStorageAt", &params));
            assert!(outcome(&reply) == truth || reply["error"]["code"] == -32002, "{reply}");
        }
    }
}

/// One node returned zero for states that it had dropped, and where nodes are trusted that reached callers.
#[test]
fn a_zero_is_not_passed_on_from_a_node_that_may_have_dropped_the_state() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let proxy = Proxy::start(node.public, "/v3/demo");
    proxy.set(Mood::Pruned { below: KEPT_FROM, says: Pruned::Nothing });
    let front = Front::of(&[proxy.url()], &format!("{NO_CACHE}[integrity]\nstate = \"trust\"\n"));
    let refused = |number: u64| {
        let params = long::storage_at(&format!(r#""{number:#x}""#));
        let (reply, truth) = (front.ask("eth_getStorageAt", &params), node.call("eth_getStorageAt", &params));
        let is_refused = reply["error"]["code"] == -32002 && reply["error"]["data"]["reason"].is_string();
        assert!(is_refused || outcome(&reply) == outcome(&truth), "{number}: {reply}");
        is_refused
    };
    assert!(refused(DROPPED.end - 1), "nothing is known of the node yet");
    front.wait_for_histories();
    assert!(DROPPED.step_by(5).all(refused));
    let nobody = r#"["0x00000000000000000000000000000000000000ff","0x40"]"#;
    assert_eq!(front.ask("eth_getBalance", nobody)["result"], "0x0", "it has this state");
}
