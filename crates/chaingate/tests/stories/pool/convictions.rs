//! When a node is taken for a liar: never for what nobody has shown to be wrong.

use testkit::forgery::Forgery;
use testkit::http::get;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::lists::wrong_answers;
use super::questions::outcome;
use crate::demo::{Demo, until};

const NO_CACHE: &str = "[network]\nname = \"demo\"\n[cache]\nenabled = false\n";

/// A block with transactions. Watchers do not ask for them, so that none of them sees what is forged.
const BLOCK: u64 = 0x20;

/// Questions whose answers are fetched by one call and by several.
fn questions(node: &Demo) -> [(Forgery, &'static str, String); 2] {
    let has_uncles = |number: &u64| {
        let count = node.call("eth_getUncleCountByBlockNumber", &format!(r#"["{number:#x}"]"#));
        count["result"] != "0x0"
    };
    let with_uncles = (1..demo::HEAD_NUMBER).find(has_uncles).unwrap();
    [
        (Forgery::TransactionValue, "eth_getBlockByNumber", format!(r#"["{BLOCK:#x}",true]"#)),
        (Forgery::Uncle, "eth_getUncleByBlockNumberAndIndex", format!(r#"["{with_uncles:#x}","0x0"]"#)),
    ]
}

fn blamed(front: &Front, nodes: &[Proxy]) -> Vec<bool> {
    nodes.iter().map(|node| wrong_answers(front, node) > 0).collect()
}

/// A proof that failed for every node had all of them left out for minutes. It may be the proof that is wrong.
#[test]
fn a_proof_that_fails_for_every_node_convicts_none_of_them() {
    let node = Demo::with("");
    for (forgery, method, params) in questions(&node) {
        let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, NO_CACHE);
        proxies.iter().for_each(|proxy| proxy.set(Mood::Forging(forgery)));
        for _ in 0..3 {
            assert_eq!(front.ask(method, &params)["error"]["code"], -32002, "{forgery:?}");
        }
        assert_eq!(blamed(&front, &proxies), [false; 3], "{forgery:?}");
        proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
        let truth = outcome(&node.call(method, &params));
        assert_eq!(outcome(&front.ask(method, &params)), truth, "all are asked as before: {forgery:?}");
    }
}

#[test]
fn a_node_is_convicted_when_another_one_proves_what_it_has_forged() {
    let node = Demo::with("");
    for (forgery, method, params) in questions(&node) {
        let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, NO_CACHE);
        proxies[0].set(Mood::Forging(forgery));
        let truth = outcome(&node.call(method, &params));
        until("the liar was asked", || {
            assert_eq!(outcome(&front.ask(method, &params)), truth, "{forgery:?}");
            wrong_answers(&front, &proxies[0]) > 0
        });
        assert_eq!(blamed(&front, &proxies), [true, false, false], "{forgery:?}");
        // It was "down", like a node that does not run.
        let node = get(front.operator, "/status").json()["nodes"]["each"][0].clone();
        assert_eq!(node["state"], "excluded", "{node}");
        let because = node["not_used_because"].as_str().unwrap();
        assert!(because.starts_with("one of its answers was proven wrong ("), "{because}");
        let metrics = get(front.operator, "/metrics");
        assert!(metrics.text().contains("reason=\"wrong_answer\"} 1"), "{}", metrics.text());
    }
}
