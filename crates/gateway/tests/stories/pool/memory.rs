//! Nodes whose replies want more memory than there is.

use std::io::Write;
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use testkit::http::{Wire, get};
use testkit::proxy::Proxy;

use crate::demo::{Demo, until};
use crate::gateway_under_test::call;
use crate::process::Process;

const MIB: u64 = 1 << 20;

/// What replies of nodes may take, and what else the gateway may need meanwhile: buffers that it keeps for the next
/// replies, those that are too small to count, and threads.
const BUDGET: u64 = 16 * MIB;
const BESIDE: u64 = 96 * MIB;

const CALLERS: usize = 24;
const CALLS: usize = 4;

/// A reply that fits once into the share of its node, and what a bomb inflates to.
const LARGE: usize = 5 << 20;
const INFLATED: usize = 48 << 20;

fn reply(headers: &str, body: &[u8]) -> Vec<u8> {
    let mut reply =
        format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n", body.len()).into_bytes();
    reply.extend_from_slice(body);
    reply
}

fn body(bytes: usize) -> Vec<u8> {
    let mut body = br#"{"jsonrpc":"2.0","id":1,"result":"0x"#.to_vec();
    body.resize(bytes, b'0');
    body.extend_from_slice(b"\"}");
    body
}

fn bomb() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&body(INFLATED)).unwrap();
    reply("content-encoding: gzip\r\n", &encoder.finish().unwrap())
}

/// A reply that found no memory free went on without after a second, and inflated bytes were not counted at all: one node of
/// three that answered with gzip bombs took the gateway to 3 GB at 200 calls a second.
#[test]
fn large_and_inflated_replies_stay_within_their_memory_and_cost_no_answer() {
    let chain = Demo::with("");
    let nodes: Vec<_> = (0..2).map(|_| Proxy::start(chain.public, "/v3/demo")).collect();
    let mut rest = format!(
        "[[key]]\nkey = \"custom\"\nplan = \"custom\"\n[network]\nname = \"demo\"\n[cache]\nenabled = false\n[pool]\nreply_memory_bytes = {BUDGET}\n"
    );
    nodes.iter().for_each(|node| rest.push_str(&format!("[[node]]\nurl = \"{}\"\n", node.url())));
    let gateway = Process::start("127.0.0.1:0", &rest, "warn,chaingate=info,gateway=info");
    until("it is ready", || get(gateway.operator, "/ready").status == 200);
    let before = gateway.memory();
    for large in [bomb(), reply("", &body(LARGE))] {
        nodes[0].script("eth_getStorageAt", large);
        let most = thread::scope(|scope| {
            let callers: Vec<_> =
                (0..CALLERS).map(|caller| scope.spawn(move || ask(gateway.public, caller))).collect();
            let mut most = 0;
            while callers.iter().any(|caller| !caller.is_finished()) {
                most = gateway.memory().max(most);
                thread::sleep(Duration::from_millis(5));
            }
            callers.into_iter().for_each(|caller| caller.join().unwrap());
            most
        });
        assert!(most < before + BUDGET + BESIDE, "{} MiB, {} before", most / MIB, before / MIB);
    }
    let page = get(gateway.operator, "/metrics");
    let used = page.text().lines().find_map(|line| line.strip_prefix("chaingate_node_reply_memory_bytes "));
    assert_eq!(used, Some("0"), "all of it was given back");
}

/// Asks for storage values that nobody else asks for.
fn ask(public: std::net::SocketAddr, caller: usize) {
    let mut wire = Wire::connect(public);
    for turn in 0..CALLS {
        let position = 1_000 + caller * CALLS + turn;
        let params = format!(r#"["0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","{position:#x}","latest"]"#);
        let reply = wire.post("/v3/custom", call("eth_getStorageAt", &params)).json();
        assert_eq!(reply["result"], format!("0x{:064x}", 0), "{reply}");
    }
}
