//! Nobody of our own can answer.

use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use crate::demo::{Demo, until};

const STORAGE: (&str, &str) =
    ("eth_getStorageAt", r#"["0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","0x0","latest"]"#);
const UNAVAILABLE: &str = "-32002 resource unavailable";

struct Outage {
    node: Proxy,
    partner: Proxy,
    front: Front,
    _chain: Demo,
}

impl Outage {
    fn begin(partner: &str) -> Self {
        let chain = Demo::with("");
        let (node, other) = (Proxy::start(chain.public, "/v3/demo"), Proxy::start(chain.public, "/v3/demo"));
        let rest = format!(
            "[network]\nname = \"demo\"\n[cache]\nbytes_max = 0\n[[partner]]\nurl = \"{}\"\n{partner}\n",
            other.url()
        );
        let front = Front::of(&[node.url()], &rest);
        node.set(Mood::Dead);
        Self { node, partner: other, front, _chain: chain }
    }
}

#[test]
fn a_partner_answers_for_plans_that_have_failover() {
    let outage = Outage::begin("");
    let front = &outage.front;
    let reply = front.ask_as("growth", "", STORAGE.0, STORAGE.1);
    assert_eq!(reply.header("chaingate-source"), Some("partner"), "{}", reply.text());
    assert_eq!(reply.json()["result"], format!("0x{:064x}", 1234));
    let by_index =
        front.ask_as("growth", "", "eth_getTransactionByBlockNumberAndIndex", r#"["latest","0x0"]"#);
    assert_eq!(by_index.header("chaingate-source"), Some("partner"));
    let asked = outage.partner.calls();

    for (key, headers, method, params) in [
        ("core", "", STORAGE.0, STORAGE.1),
        ("growth", "enable-failover: false\r\n", STORAGE.0, STORAGE.1),
        ("growth", "", "eth_getBalance", r#"["0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","latest"]"#),
    ] {
        let reply = front.ask_as(key, headers, method, params);
        assert_eq!((reply.status, reply.error()), (200, UNAVAILABLE.to_owned()), "{key} {headers}{method}");
    }
    assert_eq!(outage.partner.calls(), asked, "the partner was not asked for those");

    outage.node.set(Mood::Honest);
    until("the own pool is used again", || {
        front.ask_as("growth", "", STORAGE.0, STORAGE.1).header("chaingate-source") == Some("node")
    });
}

#[test]
fn a_partner_has_a_budget_and_methods() {
    let outage = Outage::begin("calls_per_day = 2\nmethods = [\"eth_getStorageAt\"]");
    let ask = |method, params| outage.front.ask_as("growth", "", method, params);
    for _ in 0..2 {
        assert_eq!(ask(STORAGE.0, STORAGE.1).header("chaingate-source"), Some("partner"));
    }
    assert_eq!(ask(STORAGE.0, STORAGE.1).error(), UNAVAILABLE);
    let other = ask("eth_getTransactionByBlockNumberAndIndex", r#"["latest","0x0"]"#);
    assert_eq!(other.error(), UNAVAILABLE);
    assert_eq!(outage.partner.calls(), 2);
}

/// Nobody polls a partner. One that had failed a few times was never asked again.
#[test]
fn a_partner_that_is_back_is_asked_again() {
    let outage = Outage::begin("");
    let ask = || outage.front.ask_as("growth", "", STORAGE.0, STORAGE.1);
    outage.partner.set(Mood::ServerError);
    for _ in 0..8 {
        assert_eq!(ask().error(), UNAVAILABLE);
    }
    outage.partner.set(Mood::Honest);
    until("the partner answers", || ask().header("chaingate-source") == Some("partner"));
}

/// One call out of the budget was two calls to a partner that failed.
#[test]
fn a_partner_that_fails_is_not_asked_more_often_than_its_budget_says() {
    let outage = Outage::begin("calls_per_day = 2");
    outage.partner.set(Mood::ServerError);
    for _ in 0..4 {
        assert_eq!(outage.front.ask_as("growth", "", STORAGE.0, STORAGE.1).error(), UNAVAILABLE);
    }
    assert_eq!(outage.partner.calls(), 2);
}

#[test]
fn what_a_partner_says_is_checked_too() {
    let outage = Outage::begin("");
    outage.partner.set(Mood::WrongBlocks);
    let by_index =
        outage.front.ask_as("growth", "", "eth_getTransactionByBlockNumberAndIndex", r#"["latest","0x0"]"#);
    assert_eq!(by_index.error(), UNAVAILABLE);
}

#[test]
fn a_gateway_without_a_head_is_not_ready_and_says_so() {
    let chain = Demo::with("");
    let node = Proxy::start(chain.public, "/v3/demo");
    node.set(Mood::Dead);
    let front = Front::unready(&[node.url()], "[network]\nname = \"demo\"\n");
    assert_eq!(testkit::http::get(front.operator, "/ready").status, 503);
    assert_eq!(front.ask_as("custom", "", "eth_blockNumber", "[]").error(), UNAVAILABLE);
    node.set(Mood::Honest);
    until("it is ready", || testkit::http::get(front.operator, "/ready").status == 200);
    assert!(front.ask("eth_blockNumber", "[]")["result"].is_string());
}
