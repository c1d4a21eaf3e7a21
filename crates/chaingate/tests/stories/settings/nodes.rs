//! The keys of nodes, partners and the pool.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::anvil::Anvil;
use testkit::http::{TestConnection, get, request};
use testkit::proxy::{Mood, Proxy};

use super::{Configured, node};
use crate::demo::{Demo, until};
use crate::gateway_under_test::call;

#[test]
fn nodes_of_another_chain_id_are_left_out() {
    let chain = Demo::with("");
    let chain_id = chain.call("eth_chainId", "[]")["result"].as_str().unwrap().to_owned();
    let chain_id = u64::from_str_radix(&chain_id[2..], 16).unwrap();
    let with_id = |id: u64| {
        let proxy = Proxy::start(chain.public, "/v3/demo");
        let rest = format!("[network]\nname = \"x\"\nchain_id = {id}\n{}", node(&proxy.url()));
        (Configured::with("", &rest), proxy)
    };
    let (right, _proxy) = with_id(chain_id);
    until("it is ready", || right.is_ready());
    let (wrong, proxy) = with_id(chain_id + 1);
    until("the node is asked for its chain", || proxy.asked("eth_chainId", "[]") > 0);
    assert!(!wrong.is_ready());
    assert_eq!(wrong.ask("eth_blockNumber", "[]")["error"]["code"], -32002);
}

#[test]
fn a_head_needs_as_many_nodes_as_the_quorum_says() {
    let chain = Demo::with("");
    let proxies = [Proxy::start(chain.public, "/v3/demo"), Proxy::start(chain.public, "/v3/demo")];
    proxies[1].set(Mood::Dead);
    let nodes: String = proxies.iter().map(|proxy| node(&proxy.url())).collect();
    let gateway = Configured::with("", &format!("{nodes}[pool]\nquorum = 2\npoll_interval_ms = 20\n"));
    until("one node has said who it is", || proxies[0].asked("eth_chainId", "[]") > 0);
    assert!(!gateway.is_ready());
    proxies[1].set(Mood::Honest);
    until("it is ready", || gateway.is_ready());
}

#[test]
fn a_call_to_nodes_has_the_time_that_the_pool_gives_it() {
    let chain = Demo::with("");
    let proxy = Proxy::start(chain.public, "/v3/demo");
    let gateway = Configured::with("", &format!("{}[pool]\ncall_timeout_ms = 100\n", node(&proxy.url())));
    until("it is ready", || gateway.is_ready());
    proxy.set(Mood::Hung);
    let started = Instant::now();
    let reply = gateway.ask("eth_getBalance", r#"["0x00000000000000000000000000000000000000aa","latest"]"#);
    assert_eq!(reply["error"]["code"], -32002, "{reply}");
    assert!(started.elapsed() < Duration::from_secs(7), "the default is 8 s");
}

#[test]
fn nodes_are_polled_as_often_as_the_pool_says() {
    let chain = Demo::with("");
    let polled = |interval_ms: u64| {
        let proxy = Proxy::start(chain.public, "/v3/demo");
        let pool = format!("[pool]\npoll_interval_ms = {interval_ms}\n");
        let gateway = Configured::with("", &format!("{}{pool}", node(&proxy.url())));
        until("it is ready", || gateway.is_ready());
        (gateway, proxy)
    };
    let (_rarely, rare) = polled(3_600_000);
    let (_often, frequent) = polled(10);
    let polls = |proxy: &Proxy| proxy.asked("eth_getBlockByNumber", r#"["latest",false]"#);
    let (before, frequent_before) = (polls(&rare), polls(&frequent));
    until("the other is polled", || polls(&frequent) > frequent_before + 30);
    assert!(polls(&rare) < before + 5, "{} after {before}", polls(&rare));
}

#[test]
fn a_head_that_stands_still_for_too_long_is_not_ready() {
    let chain = Demo::with("");
    let proxy = Proxy::start(chain.public, "/v3/demo");
    let ready_then_not = |pool: &str| {
        let gateway =
            Configured::with("", &format!("{}[pool]\npoll_interval_ms = 20\n{pool}", node(&proxy.url())));
        until("it is ready", || gateway.is_ready());
        gateway
    };
    let (patient, hasty) = (ready_then_not(""), ready_then_not("head_stall_ms = 5000\n"));
    until("it is not ready any more", || !hasty.is_ready());
    assert!(patient.is_ready());
}

#[test]
fn nodes_that_go_back_are_followed_after_the_time_that_the_pool_says() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    anvil.mine(3);
    let snapshot = anvil.ask("evm_snapshot", json!([]));
    anvil.mine(2);
    let proxy = Proxy::start(anvil.address, "/");
    let following = |rollback_after_ms: u64| {
        let pool = format!("[pool]\npoll_interval_ms = 20\nrollback_after_ms = {rollback_after_ms}\n");
        Configured::with("", &format!("{}{pool}", node(&proxy.url())))
    };
    let (hasty, patient) = (following(1), following(3_600_000));
    let head = |gateway: &Configured| gateway.ask("eth_blockNumber", "[]")["result"].clone();
    for gateway in [&hasty, &patient] {
        until("it has the head", || head(gateway) == "0x5");
    }
    assert_eq!(anvil.ask("evm_revert", json!([snapshot])), Value::Bool(true));
    until("it follows the node", || head(&hasty) == "0x3");
    let polls = || proxy.asked("eth_getBlockByNumber", r#"["latest",false]"#);
    let polls_before = polls();
    until("both have polled the node often", || polls() > polls_before + 50);
    assert_eq!(head(&patient), "0x5");
}

/// Blocks that were removed from below the window of 256 blocks were served until the chain was as high again.
#[test]
fn a_development_node_is_followed_however_far_it_goes_back() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    anvil.mine(2);
    let snapshot = anvil.ask("evm_snapshot", json!([]));
    anvil.mine(400);
    let pool = "[pool]\npoll_interval_ms = 20\nrollback_after_ms = 1\n";
    let gateway = Configured::with("", &format!("{}{pool}", node(&format!("http://{}", anvil.address))));
    let head = || gateway.ask("eth_blockNumber", "[]")["result"].clone();
    let removed = || gateway.ask("eth_getBlockByNumber", r#"["0x10",false]"#)["result"].clone();
    until("it has the head", || head() == "0x192" && removed()["number"] == "0x10");
    assert_eq!(anvil.ask("evm_revert", json!([snapshot])), Value::Bool(true));
    until("it follows the node", || head() == "0x2" && removed() == Value::Null);
}

/// A server that answers nothing and passes on what each connection sends first.
struct Recorder {
    address: SocketAddr,
    heard: Receiver<String>,
}

impl Recorder {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, heard) = mpsc::channel();
        thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                kept.push(stream.try_clone().unwrap());
                thread::spawn(move || record(stream, &sender));
            }
        });
        Self { address, heard }
    }

    /// Waits for a connection that begins like this.
    fn hears(&self, wanted: impl Fn(&str) -> bool) {
        let heard = |_| self.heard.recv_timeout(Duration::from_secs(60)).expect("a connection comes");
        assert!((0..100).map(heard).any(|text| wanted(&text)));
    }
}

fn record(mut stream: TcpStream, heard: &mpsc::Sender<String>) {
    let mut buffer = [0; 4_096];
    if let Ok(length) = stream.read(&mut buffer) {
        let _test_is_over = heard.send(String::from_utf8_lossy(&buffer[..length]).to_lowercase());
    }
}

const HTTP2_PREFACE: &str = "pri * http/2.0";

#[test]
fn a_node_is_connected_to_as_its_entry_says() {
    let (plain, http2, socket) = (Recorder::start(), Recorder::start(), Recorder::start());
    let _gateway = Configured::with(
        "",
        &format!(
            "[[node]]\nurl = \"http://{}/path\"\nheaders = [\"X-Token: t0ken\"]\nws_url = \"ws://{}/heads\"\n\
             [[node]]\nurl = \"http://{}\"\nhttp2 = true\n",
            plain.address, socket.address, http2.address
        ),
    );
    plain.hears(|text| text.starts_with("post /path http/1.1") && text.contains("x-token: t0ken"));
    socket.hears(|text| text.starts_with("get /heads http/1.1") && text.contains("upgrade: websocket"));
    http2.hears(|text| text.starts_with(HTTP2_PREFACE));
}

#[test]
fn a_partner_is_connected_to_as_its_entry_says() {
    let (silent, plain, http2) = (Recorder::start(), Recorder::start(), Recorder::start());
    for (partner, setting) in [(&plain, "headers = [\"X-Token: t0ken\"]"), (&http2, "http2 = true")] {
        let partner = format!("[[partner]]\nurl = \"http://{}\"\n{setting}\n", partner.address);
        let gateway =
            Configured::with("", &format!("{}{partner}", node(&format!("http://{}", silent.address))));
        let storage = json!(["0x00000000000000000000000000000000000000aa", "0x0", "latest"]).to_string();
        let body = call("eth_getStorageAt", &storage);
        let mut wire = TestConnection::connect(gateway.public);
        wire.send(request("/v3/growth", "", body.as_bytes()));
        match setting {
            "http2 = true" => http2.hears(|text| text.starts_with(HTTP2_PREFACE)),
            _ => plain.hears(|text| text.contains("x-token: t0ken")),
        }
    }
}

#[test]
fn metrics_have_the_names_of_nodes_and_partners() {
    let silent = Recorder::start();
    let url = format!("http://{}", silent.address);
    let gateway = Configured::with(
        "",
        &format!(
            "[[node]]\nurl = \"{url}\"\nname = \"alpha\"\n[[partner]]\nurl = \"{url}/p\"\nname = \"beta\"\n"
        ),
    );
    let page = get(gateway.operator, "/metrics");
    for label in ["{node=\"alpha\"", "{partner=\"beta\""] {
        assert!(page.text().contains(label), "{}", page.text());
    }
}
