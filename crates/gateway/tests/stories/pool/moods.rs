//! One node of three is not what it should be, and nobody notices.

use std::time::Duration;

use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::questions::{self, Question, outcome};
use crate::demo::Demo;

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
        let proxies: Vec<_> = (0..3).map(|_| Proxy::start(node.public, "/v3/demo")).collect();
        let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
        // Nothing is kept, so that every question reaches a node.
        let front = Front::of(&urls, &format!("{FAMILY}[cache]\nbytes_max = 0\n"));
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
