//! The servers that are measured, each a process of its own.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};
use testkit::{contracts, heavy};

/// A server under way; it ends when this is dropped.
pub(crate) struct Peer {
    pub(crate) url: String,
    child: Child,
}

impl Peer {
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends one call and gives the whole reply body.
    pub(crate) fn post(&self, body: &str) -> Vec<u8> {
        post(&self.url, body).unwrap_or_else(|| panic!("{} does not answer", self.url))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // One that is gone already needs no killing.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The gateway on an archive.
pub(crate) fn chaingate(data_dir: &Path) -> Peer {
    let child = Command::new("target/release/chaingate")
        .args(["serve", "--listen", "127.0.0.1:18645", "--operator", "127.0.0.1:18646", "--data-dir"])
        .arg(data_dir)
        .stderr(Stdio::null())
        .spawn()
        .expect("target/release/chaingate: build it with `cargo build --release`");
    ready(Peer { url: "http://127.0.0.1:18645/v3/demo".to_owned(), child })
}

/// A bare hyper server whose replies have this length.
pub(crate) fn hyper(bytes: usize) -> Peer {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program)
        .args(["hyper-server", &bytes.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts");
    let mut port = String::new();
    let stdout = child.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut port).expect("a port");
    Peer { url: format!("http://127.0.0.1:{}/", port.trim()), child }
}

/// anvil with the same contracts, and as many blocks and logs, as [`heavy::log_heavy`] has.
pub(crate) fn anvil(blocks: u64, logs_per_block: u64) -> Option<Peer> {
    let program = std::env::var("ANVIL").unwrap_or_else(|_| "anvil".to_owned());
    let child = Command::new(program)
        .args(["--port", "18647", "--silent", "--gas-limit", "100000000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let peer = ready(Peer { url: "http://127.0.0.1:18647/".to_owned(), child });
    let total = blocks * logs_per_block;
    let counter = contracts::counter(total / 100, total / 10_000);
    peer.call("anvil_setCode", json!([heavy::COUNTER, counter]));
    peer.call("anvil_setCode", json!([heavy::TOKEN, contracts::token()]));
    let sender = peer.call("eth_accounts", json!([]))[0].clone();
    let data = testkit::asm::words(&[alloy_primitives::U256::from(logs_per_block)]);
    for _ in 0..blocks {
        let message = json!({"from": sender, "to": heavy::COUNTER, "data": data, "gas": "0x1000000"});
        peer.call("eth_sendTransaction", json!([message]));
    }
    Some(peer)
}

impl Peer {
    /// The result of a call that has one.
    pub(crate) fn call(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut reply: Value = serde_json::from_slice(&self.post(&body)).expect("JSON");
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].take()
    }
}

fn ready(peer: Peer) -> Peer {
    let probe = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
    for _ in 0..300 {
        if post(&peer.url, probe).is_some() {
            return peer;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{} did not start", peer.url);
}

/// One request on a connection of its own.
fn post(url: &str, body: &str) -> Option<Vec<u8>> {
    let (host, path) = url.strip_prefix("http://")?.split_once('/')?;
    let mut stream = TcpStream::connect(host).ok()?;
    let length = body.len();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .ok()?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).ok()?;
    let head = reply.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some(reply.split_off(head + 4))
}
