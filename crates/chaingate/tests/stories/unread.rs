//! Large answers to callers that ask for them and do not read: memory stays within its bound.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use testkit::http::{post, request};

use crate::demo::{metric, until};
use crate::gateway_under_test::{call, chain_id};
use crate::process::Process;

const CALLERS: usize = 64;

const MEMORY_BYTES_MAX: u64 = 64 << 20;

/// Room for a few answers, so that those who read one hold it when it is kept no longer.
const CACHE_BYTES_MAX: u64 = 64 << 20;

/// Two answers that are being made while the limit is reached, the copies that an allocator makes when a buffer grows, and
/// what the connections themselves take.
const SLACK_BYTES: u64 = 96 << 20;

/// 10,000 logs; no two of these share an answer.
fn logs(number: usize) -> String {
    let chatter = "0x536F14E49e1Bb927003E83aDEBF295F3682ff121";
    let filter =
        format!(r#"{{"fromBlock":"0xb4","toBlock":"0xe5","address":["{chatter}","0x{number:040x}"]}}"#);
    call("eth_getLogs", &format!("[{filter}]"))
}

/// A caller with a receive buffer of 4 KiB, so that hardly anything of a reply leaves the gateway.
fn narrow(address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    socket.connect(&address.into()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket.into()
}

/// Whether a caller got nothing, a part of a reply, or a whole reply.
fn is_json_rpc_or_cut_off(mut stream: TcpStream) -> bool {
    let mut got = Vec::new();
    // The connection may be cut off in the middle.
    let _cut = stream.read_to_end(&mut got);
    let Some(end) = got.windows(4).position(|window| window == b"\r\n\r\n") else { return got.is_empty() };
    let body = &got[end + 4..];
    body.starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":1,")
}

#[test]
fn large_answers_that_nobody_reads_are_held_within_bounds_and_let_go() {
    let limits = format!(
        "[limits]\nmemory_bytes_max = {MEMORY_BYTES_MAX}\nwrite_timeout_ms = 3000\nkeep_alive_timeout_ms = 3000\n\
         [cache]\nbytes_max = {CACHE_BYTES_MAX}"
    );
    let process = Process::start("127.0.0.1:0", &limits, "info");
    let one = post(process.public, "/v3/demo", logs(0));
    assert_eq!(one.json()["result"].as_array().unwrap().len(), 10_000);
    assert!(
        one.body.len() as u64 * CALLERS as u64 > MEMORY_BYTES_MAX + CACHE_BYTES_MAX + SLACK_BYTES,
        "worth the test"
    );
    // Asked for often enough to be kept.
    for _ in 0..2 {
        assert_eq!(post(process.public, "/v3/demo", logs(0)).body.len(), one.body.len());
    }
    let before = process.memory();

    let callers: Vec<_> = (1..=CALLERS)
        .map(|number| {
            let mut stream = narrow(process.public);
            let question = logs(number);
            // Every second one is kept by the time that it is asked for.
            if number % 2 == 0 {
                post(process.public, "/v3/demo", &question);
                post(process.public, "/v3/demo", &question);
            }
            stream.write_all(&request("/v3/demo", "", question.as_bytes())).unwrap();
            stream
        })
        .collect();
    let mut most = 0;
    until("the slow ones are let go", || {
        most = most.max(process.memory());
        assert_eq!(post(process.public, "/v3/demo", chain_id("1")).status, 200, "others are served");
        metric(process.operator, "chaingate_memory_bytes") == 0.0
            && metric(process.operator, "chaingate_connections_open") < 2.0
    });

    let grown = most.saturating_sub(before);
    assert!(grown < MEMORY_BYTES_MAX + CACHE_BYTES_MAX + SLACK_BYTES, "memory grew by {grown} bytes");
    assert!(callers.into_iter().all(is_json_rpc_or_cut_off));
    assert_eq!(post(process.public, "/v3/demo", logs(0)).body.len(), one.body.len());
}
