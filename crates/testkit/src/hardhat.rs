//! A real Hardhat of version 2 or 3, where there is one.

use serde_json::Value;

use crate::node_process::{NodeProcess, installed, node};
use crate::ports::free_port;

/// Which of the two that projects use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardhatVersion {
    V2,
    V3,
}

/// Starts the node as `hardhat node` does. The command line is not used: that of Hardhat 3 refuses Node.js before 22, which the rest
/// of it does not need, and both ask whether they may send statistics.
const START_2: &str = r#"
const fs = require("node:fs"), path = require("node:path");
const [port, config] = process.argv.slice(2);
const file = path.resolve("hardhat.config.js");
const networks = { hardhat: JSON.parse(config) };
fs.writeFileSync(file, "module.exports = " + JSON.stringify({ solidity: "0.8.28", networks }));
process.env.HARDHAT_CONFIG = file;
process.env.HARDHAT_DISABLE_TELEMETRY_PROMPT = "true";
const hre = require(path.join(process.env.HARDHAT2, "internal/lib/hardhat-lib.js"));
hre.run("node", { port: Number(port), hostname: "127.0.0.1" });
"#;
const START_3: &str = r#"
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
const [port, config] = process.argv.slice(2);
// A project is where this file is.
fs.writeFileSync("package.json", '{"type":"module"}');
const library = pathToFileURL(path.join(process.env.HARDHAT3, "dist/src/hre.js")).href;
const { createHardhatRuntimeEnvironment } = await import(library);
const networks = { node: { type: "edr-simulated", chainType: "l1", ...JSON.parse(config) } };
const hre = await createHardhatRuntimeEnvironment({ networks }, {}, process.cwd());
await hre.tasks.getTask("node").run({ port: Number(port), hostname: "127.0.0.1" });
"#;

/// Starts one with this configuration of its network. `None` means that the calling test is skipped, which has been reported.
pub fn start(version: HardhatVersion, config: &Value) -> Option<NodeProcess> {
    let (variable, what, file, script) = match version {
        HardhatVersion::V2 => ("HARDHAT2", "the folder of Hardhat 2", "start.cjs", START_2),
        HardhatVersion::V3 => ("HARDHAT3", "the folder of Hardhat 3", "start.mjs", START_3),
    };
    installed(variable, what)?;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join(file);
    std::fs::write(&path, script).expect("the folder can be written to");
    let port = free_port();
    let mut command = node(path);
    command.arg(port.to_string()).arg(config.to_string());
    let ready = "Started HTTP and WebSocket JSON-RPC server at";
    Some(NodeProcess::start(&mut command, ready, Some(folder), |_| ([127, 0, 0, 1], port).into()))
}
