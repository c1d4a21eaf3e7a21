//! Nodes that run as processes of their own: what the starters of all makes share.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::post;
use crate::skip;

/// A node of its own that is ended when it is dropped.
#[derive(Debug)]
pub struct NodeProcess {
    child: Child,
    pub address: SocketAddr,
    /// Its working directory, where it has one of its own.
    _folder: Option<TempDir>,
}

/// The file or folder that this variable names. `None` means that the calling test is skipped, which has been reported.
pub(crate) fn installed(variable: &str, what: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        skip::missing(&format!("{variable} does not name {what}"));
    }
    path
}

/// Node.js with this script.
pub(crate) fn node(script: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("node");
    command.arg(script);
    command
}

impl NodeProcess {
    /// Starts a program and waits for the line of its standard output that has `ready` in it.
    pub(crate) fn start(
        command: &mut Command,
        ready: &str,
        folder: Option<TempDir>,
        address: impl FnOnce(&str) -> SocketAddr,
    ) -> Self {
        if let Some(folder) = &folder {
            // Some write settings into the home directory.
            command.current_dir(folder.path()).env("HOME", folder.path());
        }
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = started.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        let mut complaints = child.stderr.take().expect("it is piped");
        let complaining = thread::spawn(move || {
            let mut text = Vec::new();
            let _read = complaints.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        match read_until(child.stdout.take().expect("it is piped"), ready) {
            Ok(line) => Self { child, address: address(&line), _folder: folder },
            Err(said) => {
                panic!("{command:?} does not start: {said}{}", complaining.join().unwrap_or_default())
            }
        }
    }

    /// Asks it, and gives the result.
    pub fn ask(&self, method: &str, params: Value) -> Value {
        let reply = self.reply(method, &params);
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].clone()
    }

    /// Asks it, and gives the whole reply.
    pub fn reply(&self, method: &str, params: &Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let reply = post(self.address, "/", call.to_string());
        serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{call}: {error}: {reply:?}"))
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

/// The first line with this text, or everything that was said before the end. Later lines are read too, because a program is
/// stopped by a pipe that nobody reads.
fn read_until(output: ChildStdout, text: &str) -> Result<String, String> {
    let mut said = String::new();
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let found = lines.by_ref().find(|line| {
        said.push_str(line);
        said.push('\n');
        line.contains(text)
    });
    thread::spawn(move || lines.for_each(drop));
    found.ok_or(said)
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, which is as good.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}
