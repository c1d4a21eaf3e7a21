//! A real anvil, where there is one.

use std::ops::Deref;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::node_process::{NodeProcess, installed};

/// A node of its own that is ended when it is dropped.
#[derive(Debug)]
pub struct Anvil(NodeProcess);

/// The program that `ANVIL` names. `None` means that the calling test is skipped, which has been reported.
pub fn program() -> Option<PathBuf> {
    installed("ANVIL", "the program anvil")
}

impl Anvil {
    /// Starts a node that makes blocks only when it is told to, with these arguments besides.
    pub fn start(arguments: &[&str]) -> Option<Self> {
        Self::start_at(0, arguments)
    }

    /// Like [`start`](Self::start), at a port of the test's own, so that the node can be started there again.
    pub fn start_at(port: u16, arguments: &[&str]) -> Option<Self> {
        let mut command = Command::new(program()?);
        command.args(["--port", &port.to_string(), "--host", "127.0.0.1", "--no-mining"]).args(arguments);
        let ready = "Listening on ";
        Some(Self(NodeProcess::start(&mut command, ready, None, |line| {
            line.trim().trim_start_matches(ready).parse().expect("an address")
        })))
    }

    pub fn mine(&self, blocks: u64) {
        self.ask("anvil_mine", json!([format!("{blocks:#x}")]));
    }
}

impl Deref for Anvil {
    type Target = NodeProcess;

    fn deref(&self) -> &NodeProcess {
        &self.0
    }
}

impl From<Anvil> for NodeProcess {
    fn from(anvil: Anvil) -> Self {
        anvil.0
    }
}
