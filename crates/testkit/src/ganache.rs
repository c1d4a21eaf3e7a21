//! A real Ganache, where there is one.

use crate::node_process::{NodeProcess, installed, node};
use crate::ports::free_port;

/// Longer than any test: blocks are made only when it is told to. It has no option for that.
const BLOCK_SECONDS: &str = "1000000";

/// Starts one with these arguments besides. `None` means that the calling test is skipped, which has been reported.
pub fn start(arguments: &[&str]) -> Option<NodeProcess> {
    let script = installed("GANACHE", "the script that starts Ganache")?;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let port = free_port();
    let mut command = node(script);
    command
        .args(["--server.host", "127.0.0.1", "--server.port", &port.to_string()])
        .args(["--miner.blockTime", BLOCK_SECONDS])
        .args(arguments);
    let ready = "RPC Listening on ";
    Some(NodeProcess::start(&mut command, ready, Some(folder), |_| ([127, 0, 0, 1], port).into()))
}
