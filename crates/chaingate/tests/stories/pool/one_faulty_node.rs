//! One node of three is not what it should be, and nobody notices.

use std::time::Duration;

use demo_builder::contracts::TOUR;
use serde_json::Value;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::questions::{self, Question, outcome};
use crate::demo::{Demo, until};

/// The demo chain has every method.
const FAMILY: &str = "[network]\nname = \"demo\"\n";

const MOODS: [Mood; 19] = [
    Mood::Honest,
    Mood::Dead,
    Mood::Hung,
    Mood::Slow(Duration::from_millis(300)),
    Mood::Html,
    Mood::Cut,
    Mood::Garbage,
    Mood::WrongId,
    Mood::Swapped,
    Mood::ServerError,
    Mood::RateLimited,
    Mood::NoBatches,
    Mood::Nulls,
    Mood::NoLogs,
    Mood::WrongBlocks,
    Mood::WrongReceipts,
    Mood::StaleHead,
    Mood::FarAhead,
    Mood::OtherChain,
];

fn ask_all(front: &Front, questions: &[Question], why: &str) {
    let mut wire = front.wire();
    for Question { method, params, truth } in questions {
        let reply = wire.post("/v3/custom", crate::gateway_under_test::call(method, params)).json();
        assert_eq!(outcome(&reply), *truth, "{why}: {method} {params}");
    }
}

#[test]
fn what_comes_through_the_pool_is_what_the_node_says() {
    let node = Demo::with("");
    let questions = questions::all(&node);
    let url = format!("http://{}/v3/demo", node.public);
    let front = Front::of(&[url], FAMILY);
    ask_all(&front, &questions, "from the node");
    ask_all(&front, &questions, "from the cache");
}

#[test]
fn one_bad_node_of_three_changes_no_answer() {
    let node = Demo::with("");
    let questions = questions::all(&node);
    for mood in MOODS {
        // Nothing is kept, so that every question reaches a node.
        let rest = format!("{FAMILY}[cache]\nenabled = false\n");
        let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, &rest);
        proxies[1].set(mood);
        ask_all(&front, &questions, &format!("{mood:?}"));
    }
}

#[test]
fn a_node_that_is_bad_from_the_start_changes_no_answer() {
    let node = Demo::with("");
    let questions = questions::all(&node);
    for mood in [Mood::Dead, Mood::Hung, Mood::Html, Mood::FarAhead, Mood::OtherChain, Mood::WrongBlocks] {
        let proxies: Vec<_> = (0..3).map(|_| Proxy::start(node.public, "/v3/demo")).collect();
        proxies[0].set(mood);
        let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
        let front = Front::of(&urls, FAMILY);
        ask_all(&front, &questions, &format!("{mood:?}"));
    }
}

/// A node that shifted block numbers by one made the end of the range that would fit one too high: what is beyond the
/// limit was believed without looking at whose blocks it was in.
#[test]
fn how_far_a_query_could_go_is_told_by_the_blocks_of_the_view() {
    let node = Demo::with("");
    let questions = questions::all(&node);
    let too_many: Vec<_> =
        questions.into_iter().filter(|question| question.truth["code"] == -32005).collect();
    assert_eq!(too_many.len(), 1);
    let rest = format!("{FAMILY}[cache]\nenabled = false\n");
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 2, &rest);
    proxies[0].set(Mood::WrongBlocks);
    (0..20).for_each(|_| ask_all(&front, &too_many, "shifted"));
}

/// Each poll that was answered forgave a node that it had hung on other questions, so that these went to it again and again.
#[test]
fn nodes_that_answer_polls_and_hang_on_everything_else_are_soon_not_asked() {
    let node = Demo::with("");
    // One node is enough for an answer, because the others give none.
    let rest = format!("{FAMILY}[cache]\nenabled = false\n[integrity]\nstate = \"trust\"\n");
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, &rest);
    proxies[..2].iter().for_each(|proxy| proxy.set(Mood::HungOnData));
    let balance = |number: u64| format!(r#"["0x{number:040x}","0x5"]"#);
    const QUESTIONS: u64 = 120;
    for number in 0..QUESTIONS {
        let reply = front.ask("eth_getBalance", &balance(number));
        assert!(reply["result"].is_string(), "{reply}");
    }
    // By hash, as nodes are asked. Of the second half hardly any reaches them: they are probed at growing intervals.
    let reached = |proxy: &Proxy| {
        let asked_of = |number: u64| proxy.asked_about(&format!("0x{number:040x}"));
        (QUESTIONS / 2..QUESTIONS).map(asked_of).sum::<u64>()
    };
    let reached: u64 = proxies[..2].iter().map(reached).sum();
    assert!(reached < QUESTIONS / 4, "{reached} of {} calls", QUESTIONS / 2);
}

/// The only node that answers had just come back, and whether a block exists was asked only of nodes that were up. With a
/// quorum of one, because a null needs a quorum.
#[test]
fn a_node_that_is_just_back_may_say_that_there_is_no_such_block() {
    let node = Demo::with("");
    let rest = format!("{FAMILY}[pool]\nquorum = 1\n");
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, &rest);
    proxies.iter().for_each(|proxy| proxy.set(Mood::Dead));
    until("it is down", || front.sees_down(&proxies[2]));
    proxies[2].set(Mood::Honest);
    let unknown = format!(r#"["0x{}",false]"#, "ab".repeat(32));
    assert_eq!(front.ask("eth_getBlockByHash", &unknown)["result"], Value::Null);
    assert!(front.ask("eth_getBlockByHash", &unknown).get("error").is_none());
}

/// Both were proven wrong once, so that the pool counts as out. Calls that could go to a partner had a quarter of a second then, also
/// where there is no partner.
#[test]
fn without_a_partner_slow_nodes_that_were_proven_wrong_have_as_much_time_as_others() {
    let node = Demo::with("");
    let rest = format!("{FAMILY}[integrity]\nstate = \"trust\"\n");
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 2, &rest);
    let mut numbers = 1_u64..;
    for liar in &proxies {
        proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
        liar.set(Mood::WrongBlocks);
        until("it is proven wrong", || {
            let number = numbers.next().unwrap() % 200;
            front.ask("eth_getBlockReceipts", &format!(r#"["{number:#x}"]"#));
            front.sees_down(liar)
        });
    }
    proxies.iter().for_each(|proxy| proxy.set(Mood::Slow(Duration::from_millis(600))));
    let storage = format!(r#"["{}","0x0","earliest"]"#, TOUR.address());
    let mut reply = Value::Null;
    until("the checks of the calls before leave a thread to this one", || {
        reply = front.ask("eth_getStorageAt", &storage);
        reply["error"]["code"] != -32005
    });
    assert_eq!(reply["result"], format!("0x{:064x}", 0), "{reply}");
}

/// Whoever said that a block has no such transaction was doubted, though the view knew it too, and every node was asked: also
/// one that hangs.
#[test]
fn one_node_is_enough_to_say_what_the_view_knows() {
    let node = Demo::with("");
    let (_proxies, front) = Front::behind(node.public, "/v3/demo", 3, FAMILY);
    const QUESTIONS: u64 = 20;
    for index in 0x100..0x100 + QUESTIONS {
        let params = format!(r#"["latest","{index:#x}"]"#);
        let reply = front.ask("eth_getTransactionByBlockNumberAndIndex", &params);
        assert_eq!((reply.get("error"), &reply["result"]), (None, &Value::Null));
    }
    let metrics = testkit::http::get(front.operator, "/metrics");
    let retries = metrics.text().lines().filter(|line| line.starts_with("chaingate_node_retries_total{"));
    let retries: f64 = retries.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum();
    // A busy machine may have been slow with one or the other.
    assert!(retries < QUESTIONS as f64 / 2.0, "{retries}");
}
