//! The servers that are measured, each a process of its own.

use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use testkit::{contracts, heavy};

/// A server under way; it ends when this is dropped.
pub(crate) struct BenchServer {
    pub(crate) url: String,
    child: Child,
}

impl BenchServer {
    pub(crate) fn new(url: String, child: Child) -> Self {
        Self { url, child }
    }

    /// The server's process and those that it has started.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|child| child.parse().ok());
        std::iter::once(id).chain(children).collect()
    }

    /// Lets the server run on so many cores from now on.
    pub(crate) fn confine(&self, cores: usize) {
        let list = format!("0-{}", cores - 1);
        let confined = Command::new("taskset")
            .args(["--all-tasks", "--cpu-list", "--pid", &list, &self.child.id().to_string()])
            .stdout(Stdio::null())
            .status();
        assert!(confined.is_ok_and(|status| status.success()), "taskset is part of util-linux");
    }

    /// Waits until the server has ended by itself.
    pub(crate) fn wait(&mut self) {
        let _ended = self.child.wait();
    }

    /// Sends one call and gives the whole reply body.
    pub(crate) fn post(&self, body: &str) -> Vec<u8> {
        post(&self.url, body).unwrap_or_else(|| panic!("{} does not answer", self.url))
    }
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        // One that is gone already needs no killing.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The gateway on an archive.
pub(crate) fn chaingate(data_dir: &Path) -> BenchServer {
    chaingate_on(18645, data_dir, data_dir, "")
}

/// The gateway on an archive, keeping no answers.
pub(crate) fn chaingate_forgetful(data_dir: &Path, folder: &Path) -> BenchServer {
    chaingate_on(18649, data_dir, folder, "[cache]\nenabled = false\n")
}

/// The gateway on an archive; its configuration, of which `rest` is a part, is written into `folder`.
fn chaingate_on(port: u16, data_dir: &Path, folder: &Path, rest: &str) -> BenchServer {
    serve(CHAINGATE.as_ref(), port, &archive_config(port, data_dir, folder, rest))
}

/// The build of the gateway from before a change, if there is one, on an archive.
pub(crate) fn chaingate_before(data_dir: &Path, folder: &Path) -> Option<BenchServer> {
    let port = 18671;
    Some(serve(&before()?, port, &archive_config(port, data_dir, folder, "")))
}

fn archive_config(port: u16, data_dir: &Path, folder: &Path, rest: &str) -> PathBuf {
    let config = folder.join(format!("{port}.toml"));
    let data_dir = data_dir.display();
    let text = format!(
        "data_dir = \"{data_dir}\"\n[network]\nname = \"bench\"\n[[key]]\nkey = \"bench\"\nplan = \"custom\"\n{rest}"
    );
    fs::write(&config, text).expect("a folder to write to");
    config
}

/// The gateway in front of a node. `rest` is any other part of its configuration.
pub(crate) fn chaingate_pool(port: u16, node: &BenchServer, rest: &str, folder: &Path) -> BenchServer {
    chaingate_pool_of(port, &[node], rest, folder)
}

/// The build of the gateway from before a change, if there is one, in front of a node.
pub(crate) fn chaingate_pool_before(
    port: u16,
    node: &BenchServer,
    rest: &str,
    folder: &Path,
) -> Option<BenchServer> {
    Some(serve(&before()?, port, &pool_config(port, &[node], rest, folder)))
}

/// The gateway in front of nodes.
pub(crate) fn chaingate_pool_of(port: u16, nodes: &[&BenchServer], rest: &str, folder: &Path) -> BenchServer {
    serve(CHAINGATE.as_ref(), port, &pool_config(port, nodes, rest, folder))
}

fn pool_config(port: u16, nodes: &[&BenchServer], rest: &str, folder: &Path) -> PathBuf {
    let config = folder.join(format!("{port}.toml"));
    let data_dir = folder.join(format!("{port}-data"));
    let nodes: String = nodes.iter().map(|node| format!("[[node]]\nurl = \"{}\"\n", node.url)).collect();
    let text = format!("data_dir = {data_dir:?}\n{nodes}[[key]]\nkey = \"bench\"\nplan = \"custom\"\n{rest}");
    fs::write(&config, text).expect("a folder to write to");
    config
}

const CHAINGATE: &str = "target/dist/chaingate";

/// The program that `$CHAINGATE_BEFORE` names.
fn before() -> Option<PathBuf> {
    std::env::var_os("CHAINGATE_BEFORE").map(PathBuf::from)
}

/// Starts a build of the gateway with a configuration that has the key `bench`.
fn serve(program: &Path, port: u16, config: &Path) -> BenchServer {
    let (listen, operator) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{}", port + 1));
    let child = Command::new(program)
        .args(["serve", "--listen", &listen, "--operator", &operator, "--config"])
        .arg(config)
        // An option would be unknown to the earlier version that it is compared with.
        .env("CHAINGATE_CONSOLE", "off")
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("{}: {error}; `cargo build --profile dist` builds it", program.display())
        });
    ready(BenchServer { url: format!("http://{listen}/v3/bench"), child })
}

/// A bare hyper server whose replies have this length.
pub(crate) fn hyper(bytes: usize) -> BenchServer {
    this_program(["hyper-server", &bytes.to_string()])
}

/// A node that repeats what another has said.
pub(crate) fn mock_node(original: &str) -> BenchServer {
    this_program(["mock-node", original])
}

/// A server that is part of this program, and says its port.
fn this_program(arguments: [&str; 2]) -> BenchServer {
    let program = std::env::current_exe().expect("this program");
    let mut child =
        Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().expect("this program starts");
    let mut port = String::new();
    let stdout = child.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut port).expect("a port");
    BenchServer { url: format!("http://127.0.0.1:{}/", port.trim()), child }
}

/// anvil with the same contracts, and as many blocks and logs, as [`heavy::log_heavy`] has.
pub(crate) fn anvil(blocks: u64, logs_per_block: u64) -> Option<BenchServer> {
    let program = std::env::var("ANVIL").unwrap_or_else(|_| "anvil".to_owned());
    let child = Command::new(program)
        .args(["--port", "18647", "--silent", "--gas-limit", "100000000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let peer = ready(BenchServer { url: "http://127.0.0.1:18647/".to_owned(), child });
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
    let transfer = testkit::asm::call_data(
        "transfer(address,uint256)",
        &[heavy::holder(0).into_word().into(), alloy_primitives::U256::ONE],
    );
    let message = json!({"from": sender, "to": heavy::TOKEN, "data": transfer, "gas": "0x186a0"});
    peer.call("eth_sendTransaction", json!([message]));
    Some(peer)
}

impl BenchServer {
    /// The result of a call that has one.
    pub(crate) fn call(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut reply: Value = serde_json::from_slice(&self.post(&body)).expect("JSON");
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].take()
    }
}

/// Waits until a server knows its head.
pub(crate) fn ready(peer: BenchServer) -> BenchServer {
    let probe = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}"#;
    for _ in 0..300 {
        if post(&peer.url, probe).is_some_and(|reply| reply.windows(8).any(|text| text == b"\"result\"")) {
            return peer;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{} did not start", peer.url);
}

/// One request on a connection of its own.
pub(crate) fn post(url: &str, body: &str) -> Option<Vec<u8>> {
    let (host, path) = url.strip_prefix("http://")?.split_once('/')?;
    let mut stream = TcpStream::connect(host).ok()?;
    let length = body.len();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .ok()?;
    read_body(&mut BufReader::new(stream))
}

/// The body of a reply, as long as its head says: not everybody closes the connection.
fn read_body(reply: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        reply.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok();
            }
            None if line == "\r\n" => break,
            _ => {}
        }
    }
    let mut body = vec![0; length?];
    reply.read_exact(&mut body).ok()?;
    Some(body)
}
