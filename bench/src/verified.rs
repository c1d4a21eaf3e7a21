//! State that three nodes confirm or that one proves, beside nginx that passes the same questions to one node; and how fast
//! older blocks are fetched, proven and kept.
//!
//! Cold: nothing is kept, so that every question asks nodes. Warm: proven state is kept, answers are not. Kept: answers are.

use crate::{
    gateway::{BLOCKS, LOGS_PER_BLOCK, import},
    nginx::{Nginx, NginxMode},
    peers::{self, BenchServer},
    pool::{PoolRow, checked, load_average, measure, say_title},
};
use serde_json::{Value, json};
use std::{
    fs,
    net::SocketAddr,
    path::Path,
    thread,
    time::{Duration, Instant},
};
use testkit::{heavy, http, proofs::ProvableStates, proxy::Proxy};

/// Blocks and transactions in each, of the chains that are kept from their first block on.
const KEPT: [(u64, u64); 2] = [(6_000, 1), (1_000, 50)];

/// Blocks that are not kept on disk: they might still be reorganised.
const IN_MEMORY: u64 = 63;

/// No machine takes so long to keep these blocks.
const KEPT_TIMEOUT: Duration = Duration::from_secs(300);

/// Nothing is kept.
const COLD: &str = "[cache]\nenabled = false\n[follow]\nmode = \"off\"\n";

/// Answers are not kept, everything that was proven is.
const WARM: &str = "[cache]\nbytes_max = 1\n";

pub(crate) fn run(seconds: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    println!("{seconds} s a run, 1 wrk thread; load average {}", load_average());
    state(seconds, folder.path());
    for (blocks, transactions) in KEPT {
        backfill(blocks, transactions, folder.path());
    }
    println!("load average {}", load_average());
}

fn state(seconds: u64, folder: &Path) {
    let chain = heavy::log_heavy(BLOCKS, LOGS_PER_BLOCK).chain;
    let data_dir = folder.join("archive");
    fs::create_dir(&data_dir).expect("a folder to write to");
    import(&chain, &data_dir);
    let genesis = folder.join("genesis.json");
    fs::write(&genesis, chain.genesis_json()).expect("a folder to write to");
    let original = peers::chaingate(&data_dir);
    let proxy = Proxy::start(address(&original), "/v3/bench");
    proxy.prove_with(&ProvableStates::of_newest(&chain.genesis, &chain.blocks, 2).into(), None);
    let nodes = [(); 3].map(|()| peers::mock_node(&format!("{}/", proxy.url())));
    let rules = format!("[network]\nname = \"bench\"\ngenesis = {genesis:?}\n");
    let kinds = [
        ("confirm cold", 3, "confirm", COLD),
        ("confirm kept", 3, "confirm", ""),
        ("prove cold", 1, "prove", COLD),
        ("prove warm", 1, "prove", WARM),
        ("prove kept", 1, "prove", ""),
    ];
    for (number, (kind, asked, mode, cache)) in kinds.into_iter().enumerate() {
        let nodes: Vec<&BenchServer> = nodes.iter().take(asked).collect();
        let config = format!("{rules}[integrity]\nstate = \"{mode}\"\n{cache}");
        let gateway = peers::chaingate_pool_of(18701 + 4 * number as u16, &nodes, &config, folder);
        let nginx = Nginx::start(NginxMode::Pass, 18703 + 4 * number as u16, nodes[0], folder);
        say_title(kind, nginx.is_some(), true);
        for row in rows() {
            let bodies = &row.bodies[..];
            // The nodes learn all questions, and a gateway that keeps something learns the answers.
            let servers =
                checked(&gateway, &[("nginx pass", nginx.as_ref().map(|nginx| &nginx.peer))], bodies);
            measure(&row, &servers, &[], seconds, folder);
        }
    }
}

fn rows() -> Vec<PoolRow> {
    let call = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let storage =
        |number: u64| call("eth_getStorageAt", json!([heavy::COUNTER, format!("{number:#x}"), "latest"]));
    let balance = |number: u64| call("eth_getBalance", json!([heavy::holder(number), "latest"]));
    let token = |number: u64| {
        let data = testkit::asm::call_data("balanceOf(address)", &[heavy::holder(number).into_word().into()]);
        call("eth_call", json!([{"to": heavy::TOKEN, "data": data}, "latest"]))
    };
    let row = |name, body: &dyn Fn(u64) -> String| PoolRow {
        name,
        bodies: (0..500).map(body).collect(),
        connections: 64,
    };
    vec![row("storage", &storage), row("balance", &balance), row("call", &token)]
}

/// Starts a gateway that keeps a chain from its first block on, and waits until it does.
fn backfill(blocks: u64, transactions: u64, folder: &Path) {
    let chain = heavy::transaction_heavy(blocks, transactions);
    let data_dir = folder.join(format!("blocks-{transactions}"));
    fs::create_dir(&data_dir).expect("a folder to write to");
    import(&chain, &data_dir);
    let original = peers::chaingate(&data_dir);
    let folder = folder.join(format!("front-{transactions}"));
    fs::create_dir(&folder).expect("a folder to write to");
    let begun = Instant::now();
    let port = 18751;
    let gateway = peers::chaingate_pool(port, &original, "[follow]\nfrom = \"earliest\"\n", &folder);
    let operator = SocketAddr::from(([127, 0, 0, 1], port + 1));
    while metric(operator, "chaingate_follow_blocks") < blocks - IN_MEMORY {
        assert!(begun.elapsed() < KEPT_TIMEOUT, "the blocks are not kept");
        thread::sleep(Duration::from_millis(10));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let bytes = metric(operator, "chaingate_follow_file_bytes");
    drop(gateway);
    println!(
        "\nkept from the first on: {blocks} blocks of {transactions} transactions in {seconds:.1} s, {:.0} blocks/s, {} bytes of \
         disk each; the node is a gateway on the same cores",
        blocks as f64 / seconds,
        bytes / blocks
    );
}

fn address(peer: &BenchServer) -> SocketAddr {
    let host = peer.url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    host.parse().expect("an address")
}

fn metric(operator: SocketAddr, name: &str) -> u64 {
    let page = http::get(operator, "/metrics");
    let line = page
        .text()
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix([' ', '{']).map(str::to_owned));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
}
