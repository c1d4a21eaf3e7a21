//! Which trace nodes are told, and which node callers and the access log are told.

use std::fs;

use serde_json::{Value, json};
use testkit::http::get;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use crate::demo::{Demo, until};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const BALANCE: &str = "eth_getBalance";

fn address(number: u32) -> String {
    format!("0x00000000000000000000000000000000{number:08x}")
}

/// A question that was not asked before.
fn fresh(number: u32) -> String {
    format!(r#"["{}","latest"]"#, address(number))
}

#[test]
fn nodes_are_told_the_trace_of_the_caller_and_partners_are_not() {
    let chain = Demo::with("");
    let (node, partner) = (Proxy::start(chain.public, "/v3/demo"), Proxy::start(chain.public, "/v3/demo"));
    let rest = format!(
        "[network]\nname = \"demo\"\n[methods]\nfailover = [\"{BALANCE}\"]\n[[partner]]\nurl = \"{}\"\n",
        partner.url()
    );
    let front = Front::of(&[node.url()], &rest);
    front.wait_for_partner();
    // Watchers ask for balances, too, but not for these.
    let told = |proxy: &Proxy, number| proxy.traces_about(&address(number));
    let ask = |headers: &str, number| {
        let reply = front.ask_as("custom", headers, BALANCE, &fresh(number));
        assert!(reply.json()["result"].is_string(), "{}", reply.text());
    };
    ask("", 1);
    assert_eq!(told(&node, 1), [None]);
    ask(&format!("traceparent: {TRACE}\r\n"), 2);
    assert_eq!(told(&node, 2), [Some(TRACE.to_owned())]);
    let twice = format!("{TRACE}\r\ntraceparent: {TRACE}");
    for (number, wrong) in (3..).zip(["nonsense", &TRACE.to_uppercase(), &twice]) {
        ask(&format!("traceparent: {wrong}\r\n"), number);
        assert_eq!(told(&node, number), [None], "{wrong}");
    }
    node.set(Mood::Dead);
    ask(&format!("traceparent: {TRACE}\r\n"), 9);
    assert_eq!(told(&partner, 9), [None]);
}

#[test]
fn only_keys_that_may_see_it_are_told_which_node_answered() {
    let chain = Demo::with("");
    let (node, partner) = (Proxy::start(chain.public, "/v3/demo"), Proxy::start(chain.public, "/v3/demo"));
    let rest = format!(
        "name = \"first näme\"\n[pool]\n[network]\nname = \"demo\"\n[methods]\nfailover = [\"{BALANCE}\"]\n\
         [[partner]]\nurl = \"{}\"\nname = \"other\"\n[[key]]\nkey = \"seeing\"\nshow_node = true\naccount = \"seer\"\nplan = \"custom\"\n",
        partner.url()
    );
    let front = Front::of(&[node.url()], &rest);
    front.wait_for_partner();
    let named = |key: &str, number| {
        let reply = front.ask_as(key, "", BALANCE, &fresh(number));
        assert!(reply.json()["result"].is_string(), "{}", reply.text());
        reply.header("chaingate-node").map(str::to_owned)
    };
    assert_eq!(named("custom", 1), None);
    assert_eq!(named("seeing", 2).as_deref(), Some("first n?me"));
    assert_eq!(named("seeing", 2), None, "it comes from the cache");
    node.set(Mood::Dead);
    assert_eq!((named("seeing", 3).as_deref(), named("custom", 4)), (Some("other"), None));
}

#[test]
fn the_access_log_names_the_source_and_the_node_of_each_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let chain = Demo::with("");
    let (node, partner) = (Proxy::start(chain.public, "/v3/demo"), Proxy::start(chain.public, "/v3/demo"));
    let secrets = node.url().replace("http://", "http://user:canary-password@") + "/canary-path?canary=query";
    let rest = format!(
        "name = \"first\"\nheaders = [\"X-Token: canary-token\"]\n[pool]\n[network]\nname = \"demo\"\n[methods]\nfailover = [\"{BALANCE}\"]\n\
         [[partner]]\nurl = \"{}/canary-partner\"\nname = \"other\"\n[access_log]\ncalls = \"all\"\nfile = {path:?}\n",
        partner.url()
    );
    let front = Front::of(&[secrets], &rest);
    front.wait_for_partner();
    let ask = |number| assert!(front.ask(BALANCE, &fresh(number))["result"].is_string());
    ask(1);
    ask(1);
    front.ask("eth_getBlockByNumber", r#"["0x1",false]"#);
    node.set(Mood::Dead);
    ask(2);
    let text = || fs::read_to_string(&path).unwrap();
    until("the lines are written", || text().lines().count() == 4);
    let lines: Vec<Value> = text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> =
        lines.iter().map(|line| json!([line["source"], line["node"], line["verified"]])).collect();
    let expected = json!([
        ["node", "first", "none"],
        ["cache", null, "none"],
        ["node", "first", "proven"],
        ["partner", "other", "none"],
    ]);
    assert_eq!(Value::from(told), expected);
    assert!(!text().contains("canary"), "{}", text());
    assert!(!get(front.operator, "/metrics").text().contains("canary"));
}
