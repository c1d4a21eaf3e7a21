//! blutgang in front of the same node: a gateway that keeps what it has seen in a database.

use crate::peers::{self, BenchServer};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

pub(crate) const MISSING: &str = "blutgang is left out: neither $BLUTGANG nor the PATH has it";

/// `None` if it is not installed.
pub(crate) fn start(port: u16, node: &BenchServer, folder: &Path) -> Option<BenchServer> {
    let folder = folder.join(format!("blutgang-{port}"));
    fs::create_dir_all(&folder).expect("a folder to write to");
    let config = folder.join("blutgang.toml");
    fs::write(&config, text(port, node, &folder)).expect("a folder to write to");
    let program = std::env::var("BLUTGANG").unwrap_or_else(|_| "blutgang".to_owned());
    // blutgang logs every request that it passes on.
    let quiet = || Stdio::null();
    let child = Command::new(program).arg("--config").arg(config).stdout(quiet()).stderr(quiet()).spawn();
    Some(peers::ready(BenchServer::new(format!("http://127.0.0.1:{port}/"), child.ok()?)))
}

/// The questions in a form whose answers blutgang keeps: with the number of the head in the place of `latest`. It never keeps
/// answers to questions that name no block.
pub(crate) fn keepable(bodies: &[String], head: &str) -> Option<Vec<String>> {
    let latest = "\"latest\"";
    let numbered =
        |body: &String| body.contains(latest).then(|| body.replace(latest, &format!("\"{head}\"")));
    bodies.iter().map(numbered).collect()
}

/// As its example has it, without checks of the node's health and without limits that this would meet.
fn text(port: u16, node: &BenchServer, folder: &Path) -> String {
    let (url, database) = (&node.url, folder.join("kept"));
    let database = database.display();
    format!(
        "[blutgang]
do_clear = true
address = \"127.0.0.1:{port}\"
ma_length = 100
sort_on_startup = false
health_check = false
header_check = true
ttl = 30000
max_retries = 32
expected_block_time = 0
supress_rpc_check = true
[admin]
enabled = false
[sled]
db_path = \"{database}\"
mode = \"HighThroughput\"
cache_capacity = 1000000000
compression = false
print_profile = false
flush_every_ms = 240
[node]
url = \"{url}\"
max_consecutive = 1000000000
max_per_second = 0
"
    )
}
