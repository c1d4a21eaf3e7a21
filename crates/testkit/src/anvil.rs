//! A real anvil, where there is one.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::http::post;
use crate::skip;

/// A node of its own that is ended when it is dropped.
#[derive(Debug)]
pub struct Anvil {
    child: Child,
    pub address: SocketAddr,
}

/// The program that `ANVIL` names. `None` means that the calling test is skipped, which has been reported.
pub fn program() -> Option<PathBuf> {
    let program = std::env::var_os("ANVIL").map(PathBuf::from);
    if program.is_none() {
        skip::missing("ANVIL does not name the program anvil");
    }
    program
}

impl Anvil {
    /// Starts one that makes blocks only when it is told to, with these arguments besides.
    pub fn start(arguments: &[&str]) -> Option<Self> {
        Self::start_at(0, arguments)
    }

    /// The same at a port of the test's own, so that it can be started there again.
    pub fn start_at(port: u16, arguments: &[&str]) -> Option<Self> {
        let mut child = Command::new(program()?)
            .args(["--port", &port.to_string(), "--host", "127.0.0.1", "--no-mining"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program that ANVIL names can be started");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let address = lines.by_ref().find_map(|line| {
            let line = line.expect("it says where it listens");
            line.strip_prefix("Listening on ").map(|address| address.trim().parse().expect("an address"))
        });
        // It would be stopped by a pipe that nobody reads.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, address: address.expect("it says where it listens") })
    }

    /// Asks it, and gives the result.
    pub fn ask(&self, method: &str, params: Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let reply = post(self.address, "/", call.to_string());
        let reply: Value = serde_json::from_slice(&reply.body).expect("it answers in JSON");
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].clone()
    }

    pub fn mine(&self, blocks: u64) {
        self.ask("anvil_mine", json!([format!("{blocks:#x}")]));
    }

    pub fn head(&self) -> u64 {
        let number = self.ask("eth_blockNumber", json!([]));
        u64::from_str_radix(&number.as_str().expect("a quantity")[2..], 16).expect("a quantity")
    }

    /// Sends a signal: `KILL`, `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().expect("a shell is there");
        assert!(sent.success());
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, which is as good.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}
