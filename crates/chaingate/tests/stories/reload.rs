//! The configuration file is read again while calls go on: SIGHUP and `chaingate reload`.
//!
//! `CHAINGATE_RELOADS` says how often nodes, plans, keys and limits are changed under load.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use serde_json::Value;
use testkit::http::{TestConnection, get, post, request};
use testkit::proxy::Proxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::demo::{Demo, until};
use crate::gateway_under_test::{call, chain_id};
use crate::process::Process;
use crate::steady_load::{LoadTarget, SteadyLoad};
use crate::tls::{certificate_in, try_connect};

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

/// To see more of what happens, a gateway had to be restarted, after which it did not happen any more.
#[test]
fn the_level_of_the_log_changes_with_a_reload() {
    let process = Process::start_with_data("", "", "unset RUST_LOG;", |_| {});
    let debug_lines = || process.lines_with("\"level\":\"DEBUG\"");
    assert_eq!((status(&process, "demo"), debug_lines()), (200, 0));
    process.write_root_config("log = \"info,gateway=debug\"\n", "");
    let (succeeds, said) = reload(&process);
    assert!(succeeds && said.contains("in effect: log"), "{said}");
    until("debug lines are written", || status(&process, "demo") == 200 && debug_lines() > 0);
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

/// Sections that a reload changes. Each has two forms here.
const LIVE_SECTIONS: u32 = 7;

/// A configuration with this form of each section, by its bit.
fn config_of(sets: &NodeSets, tls: &str, forms: u32) -> String {
    let has = |section: u32| forms & 1 << section != 0;
    let text = |section: u32, one: &str, other: &str| if has(section) { one } else { other }.to_owned();
    let nodes = if has(5) { &sets.nodes[..2] } else { &sets.nodes[1..3] };
    let url = |node: &Proxy| format!("[[node]]\nname = \"{0}\"\nurl = \"{0}\"\n", node.url());
    [
        format!("{tls}\n"),
        text(0, "operator_hosts = [\"gateway.example\"]\n", ""),
        "[network]\nname = \"test\"\n[integrity]\nstate = \"trust\"\n".to_owned(),
        text(1, "[plans.busy]\ncredits_per_day = 1000000000\n", "[plans.busy]\ncredits_per_second = 1000000\n"),
        text(2, "[methods]\neth_call_requires_from = true\n", ""),
        text(
            3,
            "[limits]\nbatch_calls_max = 2\nlog_params_max = 1\nconnections_max = 900\nconnections_per_address_max = 800\n",
            "[limits]\nlog_timeout_ms = 9000\ncall_timeout_ms = 4000\nh2_streams_max = 50\n",
        ),
        key("steady", "busy"),
        text(4, &key("temporary", "busy").replace("acme", "other"), ""),
        nodes.iter().map(url).collect(),
        text(6, &format!("[[partner]]\nurl = \"{}\"\n", sets.nodes[3].url()), ""),
    ]
    .concat()
}

/// Whether this form of the sections is in effect.
fn assert_in_effect(process: &Process, forms: u32, certificates: &[CertificateDer<'static>]) {
    let has = |section: u32| forms & 1 << section != 0;
    let asked = |name: &str| {
        let head = format!("GET /ready HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n");
        TestConnection::connect(process.operator).send(head.as_bytes()).reply().status
    };
    assert_eq!(asked("gateway.example"), if has(0) { 200 } else { 403 });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let status = |key: &str, body: &str| {
        let post = request(&format!("/v3/{key}"), "connection: close\r\n", body.as_bytes());
        runtime.block_on(async {
            let mut stream = try_connect(process.public, certificates, b"http/1.1").await.unwrap();
            stream.write_all(&post).await.unwrap();
            let mut reply = Vec::new();
            let _ended = stream.read_to_end(&mut reply).await;
            String::from_utf8(reply).unwrap()
        })
    };
    let without_from = call("eth_call", r#"[{"to":"0x0000000000000000000000000000000000000001"},"latest"]"#);
    assert_eq!(status("steady", &without_from).contains("from is required"), has(2));
    let filter = call(
        "eth_getLogs",
        r#"[{"address":["0x0000000000000000000000000000000000000001","0x0000000000000000000000000000000000000002"]}]"#,
    );
    assert_eq!(status("steady", &filter).contains("\"error\""), has(3), "{}", status("steady", &filter));
    assert_eq!(status("temporary", &chain_id("1")).starts_with("HTTP/1.1 200"), has(4));
}

/// Every combination of sections is changed at once, while the certificate changes, too.
#[test]
fn no_call_fails_whatever_sections_change_together() {
    let sets = NodeSets::start();
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let issued = [certificate_in(folders[0].path()), certificate_in(folders[1].path())];
    let certificates = issued.map(|(_, certificate)| certificate);
    let (tls, _) = certificate_in(folders[2].path());
    let use_certificate = |index: usize| {
        for name in ["cert.pem", "key.pem"] {
            std::fs::copy(folders[index].path().join(name), folders[2].path().join(name)).unwrap();
        }
    };
    use_certificate(0);
    let process = Process::start("127.0.0.1:0", &config_of(&sets, &tls, 0), "info");
    until("it is ready", || get(process.operator, "/ready").status == 200);
    let target = LoadTarget { address: process.public, certificates: certificates.to_vec(), key: "steady" };
    let load = SteadyLoad::start(target);
    let mut forms = 0;
    for changed in 1..1 << LIVE_SECTIONS {
        forms ^= changed;
        process.write_config(&config_of(&sets, &tls, forms));
        use_certificate(changed as usize % 2);
        let (succeeds, said) = reload(&process);
        assert!(succeeds && !said.contains("after a restart"), "{changed:#b}: {said}");
        assert!(said.starts_with("in effect: "), "{changed:#b}: {said}");
        if changed % 16 == 15 {
            assert_in_effect(&process, forms, &certificates);
        }
    }
    eprintln!("{} calls, none failed", load.stop());
}
