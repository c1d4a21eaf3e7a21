//! A real EthereumJS client, where there is one.

use std::path::{Path, PathBuf};

use crate::node_process::{NodeProcess, installed, node};

/// The script that `ETHEREUMJS` names. `None` means that the calling test is skipped, which has been reported.
pub fn program() -> Option<PathBuf> {
    installed("ETHEREUMJS", "the EthereumJS client")
}

/// Starts one that executes these blocks, keeps its data in the folder, and then answers at the first port. The second
/// one is for other nodes, of which there are none.
pub fn start(folder: &Path, genesis: &str, rlp: &[u8], ports: [u16; 2]) -> Option<NodeProcess> {
    let script = program()?;
    let file = |name: &str| folder.join(name).into_os_string();
    std::fs::write(file("genesis.json"), genesis).expect("the folder can be written to");
    std::fs::write(file("chain.rlp"), rlp).expect("the folder can be written to");
    let mut command = node(script);
    // It logs to a file beside it, whatever it is told.
    command
        .current_dir(folder)
        .args(["--sync", "none", "--isSingleNode", "--discDns", "false", "--discV4", "false"])
        .args(["--extIP", "127.0.0.1", "--logFile", "false", "--rpc", "--rpcAddr", "127.0.0.1"])
        .args(["--rpcPort", &ports[0].to_string(), "--port", &ports[1].to_string()])
        .arg("--dataDir")
        .arg(folder.join("data"))
        .arg("--gethGenesis")
        .arg(file("genesis.json"))
        .arg("--loadBlocksFromRlp")
        .arg(file("chain.rlp"));
    let ready = "Client started successfully";
    Some(NodeProcess::start(&mut command, ready, None, |_| ([127, 0, 0, 1], ports[0]).into()))
}
