//! A real EthereumJS client, where there is one.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::skip;

/// A node with a chain of its own that is ended when it is dropped.
#[derive(Debug)]
pub struct EthereumJs {
    child: Child,
    pub address: SocketAddr,
}

/// The script that `ETHEREUMJS` names. `None` means that the calling test is skipped, which has been reported.
pub fn program() -> Option<PathBuf> {
    let script = std::env::var_os("ETHEREUMJS").map(PathBuf::from);
    if script.is_none() {
        skip::missing("ETHEREUMJS does not name the EthereumJS client");
    }
    script
}

impl EthereumJs {
    /// Starts one that executes these blocks, keeps its data in the folder, and then answers at the first port. The second
    /// one is for other nodes, of which there are none.
    pub fn start(folder: &Path, genesis: &str, rlp: &[u8], ports: [u16; 2]) -> Option<Self> {
        let script = program()?;
        let file = |name: &str| folder.join(name).into_os_string();
        std::fs::write(file("genesis.json"), genesis).expect("the folder can be written to");
        std::fs::write(file("chain.rlp"), rlp).expect("the folder can be written to");
        let mut child = Command::new("node")
            .arg(script)
            // It logs to a file beside it, whatever it is told.
            .current_dir(folder)
            .args(["--sync", "none", "--isSingleNode", "--discDns", "false", "--discV4", "false"])
            .args(["--extIP", "127.0.0.1", "--logFile", "false", "--rpc", "--rpcAddr", "127.0.0.1"])
            .args(["--rpcPort", &ports[0].to_string(), "--port", &ports[1].to_string()])
            .arg("--dataDir")
            .arg(folder.join("data"))
            .arg("--gethGenesis")
            .arg(file("genesis.json"))
            .arg("--loadBlocksFromRlp")
            .arg(file("chain.rlp"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node can be started");
        let mut said = String::new();
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let started = lines.by_ref().map_while(Result::ok).any(|line| {
            said.push_str(&line);
            said.push('\n');
            line.contains("Client started successfully")
        });
        assert!(started, "it does not start: {said}");
        // It would be stopped by a pipe that nobody reads.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, address: ([127, 0, 0, 1], ports[0]).into() })
    }
}

impl Drop for EthereumJs {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, which is as good.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}
