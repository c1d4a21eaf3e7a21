//! Nodes whose replies need more memory than there is.

use std::io::Write;
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use testkit::http::{TestConnection, get, post};
use testkit::proxy::Proxy;

use crate::demo::{Demo, metric, until};
use crate::gateway_under_test::call;
use crate::memory::non_reader;
use crate::process::Process;

const MIB: u64 = 1 << 20;

/// Memory that replies of nodes may take.
const BUDGET: u64 = 16 * MIB;
/// Memory that the gateway may need beside the budget: buffers that it keeps for the next replies, replies that are too
/// small to count, and threads.
const BESIDE: u64 = 96 * MIB;

/// Memory that a gateway may take beside both limits while replies are not read: copies while buffers grow, buffers that are
/// kept for the next replies, and memory that the allocator has not given back yet.
const SLACK: u64 = 96 * MIB;

const CALLERS: usize = 24;
const CALLS: usize = 4;

/// The size of a reply that fits once into the share of its node.
const LARGE: usize = 5 << 20;
/// The size to which a bomb inflates.
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
    until("all of it was given back", || {
        let page = get(gateway.operator, "/metrics");
        page.text().lines().any(|line| line == "chaingate_node_reply_memory_bytes 0")
    });
}

/// 3,200 logs, which take 2 MB; no two of these share an answer.
fn logs(number: usize) -> String {
    let chatter = "0x536F14E49e1Bb927003E83aDEBF295F3682ff121";
    let filter =
        format!(r#"{{"fromBlock":"0xb4","toBlock":"0xc3","address":["{chatter}","0x{number:040x}"]}}"#);
    call("eth_getLogs", &format!("[{filter}]"))
}

/// How many log queries were answered or refused.
fn ended(gateway: &Process) -> u64 {
    let page = get(gateway.operator, "/metrics");
    let count = |line: &str| {
        line.strip_prefix("chaingate_calls_total{method=\"eth_getLogs\"")?
            .rsplit(' ')
            .next()?
            .parse::<u64>()
            .ok()
    };
    page.text().lines().filter_map(count).sum()
}

/// Each of the 64 calls of a batch that are asked at once had its whole answer in memory, uncounted, and so had the reply:
/// one request could take more than a gigabyte.
#[test]
fn batches_of_large_answers_that_nobody_reads_stay_within_both_limits() {
    const BATCHES: usize = 24;
    const CALLS_PER_BATCH: usize = 6;
    const REPLIES_OF_NODES: u64 = 12 * MIB;
    const REPLIES_TO_CALLERS: u64 = 32 * MIB;
    let node = Process::start("127.0.0.1:0", "", "info");
    let rest = format!(
        "[[key]]\nkey = \"one\"\nplan = \"custom\"\n[[key]]\nkey = \"other\"\nplan = \"custom\"\n\
         [network]\nname = \"front\"\n[cache]\nenabled = false\n\
         [limits]\npool_threads = 2\nmemory_bytes_max = {REPLIES_TO_CALLERS}\nwrite_timeout_ms = 120000\nlog_timeout_ms = 120000\n\
         [pool]\nreply_memory_bytes = {REPLIES_OF_NODES}\n[[node]]\nurl = \"http://{}/v3/demo\"\n",
        node.public
    );
    let gateway = Process::start("127.0.0.1:0", &rest, "info");
    until("it is ready", || get(gateway.operator, "/ready").status == 200);
    let before = gateway.memory();
    let batch = |number: usize| {
        let calls = number * CALLS_PER_BATCH..(number + 1) * CALLS_PER_BATCH;
        format!("[{}]", calls.map(logs).collect::<Vec<_>>().join(","))
    };
    let streams: Vec<_> =
        (0..BATCHES).map(|number| non_reader(gateway.public, "/v3/one", &batch(number))).collect();
    until("every call has ended", || ended(&gateway) == (BATCHES * CALLS_PER_BATCH) as u64);
    assert!(metric(gateway.operator, "chaingate_memory_refused_total") > 0.0, "they do not all fit");
    let served = post(gateway.public, "/v3/other", logs(999)).json();
    assert_eq!(served["result"].as_array().map(Vec::len), Some(3_200), "others are served");
    let grown = gateway.peak_memory().saturating_sub(before);
    eprintln!("memory grew by {} KiB", grown >> 10);
    assert!(grown < REPLIES_TO_CALLERS + REPLIES_OF_NODES + SLACK, "memory grew by {} MiB", grown / MIB);
    drop(streams);
    for held in ["chaingate_memory_bytes", "chaingate_node_reply_memory_bytes"] {
        until("nothing is held any more", || metric(gateway.operator, held) == 0.0);
    }
}

/// Asks for storage values that nobody else asks for.
fn ask(public: std::net::SocketAddr, caller: usize) {
    let mut wire = TestConnection::connect(public);
    for turn in 0..CALLS {
        let position = 1_000 + caller * CALLS + turn;
        let params = format!(r#"["0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","{position:#x}","latest"]"#);
        let reply = wire.post("/v3/custom", call("eth_getStorageAt", &params)).json();
        assert_eq!(reply["result"], format!("0x{:064x}", 0), "{reply}");
    }
}
