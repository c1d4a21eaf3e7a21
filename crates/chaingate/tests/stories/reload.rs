//! The configuration file is read again while calls go on: SIGHUP and `chaingate reload`.
//!
//! `CHAINGATE_RELOADS` says how often nodes, plans, keys and limits are changed under load.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use serde_json::Value;
use testkit::http::{TestConnection, get, post, request};
use testkit::proxy::Proxy;

use crate::demo::{Demo, until};
use crate::gateway_under_test::chain_id;
use crate::process::Process;

fn key(key: &str, plan: &str) -> String {
    format!("[[key]]\nkey = \"{key}\"\nname = \"shop\"\naccount = \"acme\"\nplan = \"{plan}\"\n")
}

fn status(process: &Process, key: &str) -> u16 {
    post(process.public, &format!("/v3/{key}"), chain_id("1")).status
}

/// Runs `chaingate reload`. Returns whether it succeeded, and its output.
fn reload(process: &Process) -> (bool, String) {
    let output = process.command("reload");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

/// A change of the file needed a restart.
#[test]
fn a_reload_changes_keys_plans_and_limits_and_names_the_rest() {
    let process = Process::start("127.0.0.1:0", &key("first", "team"), "info");
    assert_eq!((status(&process, "first"), status(&process, "second")), (200, 401));
    process.write_config(&key("second", "small"));
    let (succeeds, said) = reload(&process);
    assert!(!succeeds && said.contains("line 9: key 1.plan: unknown plan `small`"), "{said}");
    assert_eq!((status(&process, "first"), status(&process, "second")), (200, 401), "nothing has changed");

    let plan =
        "[plans.small]\ncredits_per_day = 20\n[limits]\nbatch_calls_max = 2\n[cache]\nbytes_max = 4096\n";
    process.write_config(&(key("second", "small") + plan));
    let (succeeds, said) = reload(&process);
    assert!(succeeds, "{said}");
    let in_effect = "in effect: key 1.key, key 1.plan, limits.batch_calls_max, plans.small.credits_per_day";
    assert!(said.contains(in_effect) && said.contains("after a restart: cache.bytes_max"), "{said}");
    assert_eq!((status(&process, "first"), status(&process, "second")), (401, 200));
    let batch = format!("[{0},{0},{0}]", chain_id("1"));
    let refused: Value = post(process.public, "/v3/second", batch).json();
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    until("the plan is used up", || status(&process, "second") == 402);

    // The usage of the day stays, also under another key and another plan.
    process.write_config(&(key("third", "small") + &plan.replace("= 20", "= 21")));
    process.signal("HUP");
    until("the key is replaced", || status(&process, "second") == 401);
    assert_eq!(status(&process, "third"), 402);
}

/// Two sets of nodes of one chain, of which the configuration has one, the other, or both.
struct NodeSets {
    _chain: Demo,
    nodes: Vec<Proxy>,
}

impl NodeSets {
    fn start() -> Self {
        let chain = Demo::with("");
        let nodes = (0..4).map(|_| Proxy::start(chain.public, "/v3/demo")).collect();
        Self { _chain: chain, nodes }
    }

    /// A configuration that differs from the one before in nodes, plans, keys and limits.
    fn config(&self, round: usize) -> String {
        let nodes = match round % 3 {
            0 => &self.nodes[..2],
            1 => &self.nodes[2..],
            _ => &self.nodes[1..4],
        };
        let nodes: String = nodes
            .iter()
            .enumerate()
            .map(|(index, node)| format!("[[node]]\nname = \"n{index}\"\nurl = \"{}\"\n", node.url()))
            .collect();
        let (credits, calls) = (1_000_000 + round, 10 + round % 7);
        let temporary = if round.is_multiple_of(2) {
            key("temporary", "busy").replace("acme", "other")
        } else {
            String::new()
        };
        format!(
            "[network]\nname = \"test\"\n[plans.busy]\ncredits_per_day = {credits}00\n[limits]\nbatch_calls_max = {calls}\n\
             [integrity]\nstate = \"confirm\"\n{}{temporary}{nodes}",
            key("steady", "busy")
        )
    }
}

/// Reloads under load: no call fails, and no memory is lost with each.
#[test]
fn no_call_fails_while_nodes_plans_keys_and_limits_change() {
    let reloads: usize = std::env::var("CHAINGATE_RELOADS").map_or(12, |count| count.parse().unwrap());
    let sets = NodeSets::start();
    let process = Process::start("127.0.0.1:0", &sets.config(0), "info");
    until("it is ready", || get(process.operator, "/ready").status == 200);
    let (answered, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut wire = TestConnection::connect(process.public);
                while !ended.load(SeqCst) {
                    for (method, params) in [
                        ("eth_blockNumber", "[]"),
                        ("eth_getBlockByNumber", r#"["0x5",false]"#),
                        ("eth_gasPrice", "[]"),
                    ] {
                        let body =
                            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
                        let reply =
                            wire.send(request("/v3/steady", "", body.as_bytes())).next_reply().unwrap();
                        assert!(reply.status == 200 && !reply.json()["result"].is_null(), "{}", reply.text());
                        answered.fetch_add(1, SeqCst);
                    }
                }
            });
        }
        let mut memory = Vec::new();
        for round in 1..=reloads {
            process.write_config(&sets.config(round));
            let (succeeds, said) = reload(&process);
            assert!(succeeds && !said.contains("after a restart"), "{said}");
            let before = answered.load(SeqCst);
            until("calls go on", || answered.load(SeqCst) > before + 20);
            memory.push(process.memory());
        }
        ended.store(true, SeqCst);
        eprintln!("{reloads} reloads, {} calls, memory {memory:?}", answered.load(SeqCst));
    });
    let nodes: Value = get(process.operator, "/status").json();
    assert_eq!(
        nodes["nodes"]["each"].as_array().map(Vec::len),
        Some(if reloads % 3 == 2 { 3 } else { 2 }),
        "{nodes}"
    );
}
