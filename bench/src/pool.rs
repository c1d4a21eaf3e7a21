//! The gateway in front of a node, beside nginx and blutgang in front of the same node and a bare hyper server with
//! replies of the same length. What counts are the ratios within one run.
//!
//! Cached: the same body again and again; blutgang is asked the same by number, where it can keep that. Uncached: nothing is
//! kept, and bodies differ from request to request, so that no request can use the answer to another. Cold and warm: questions
//! about many blocks, of which each is fetched and proven for every question, or was proven before; no answer is kept.

use crate::{
    blutgang,
    gateway::{BLOCKS, LOGS_PER_BLOCK, ROUNDS, import, topics},
    load::{self, Load, Traffic},
    nginx::{Nginx, NginxMode},
    peers::{self, BenchServer},
};
use alloy_primitives::Address;
use archive::LogFilter;
use serde_json::{Value, json};
use std::{fs, path::Path};
use testkit::heavy::{self, LogHeavyChain};

/// One kind of call.
pub(crate) struct PoolRow {
    pub(crate) name: &'static str,
    /// Different questions of the same kind with answers of the same size.
    pub(crate) bodies: Vec<String>,
    pub(crate) connections: u32,
}

/// The bounds that the ratios to a peer should keep.
#[derive(Clone, Copy)]
pub(crate) struct Aim {
    peer: &'static str,
    /// Requests per second, at least.
    speed: f64,
    /// CPU time per request, at most.
    cpu: f64,
    /// The slowest percent, at most.
    p99: f64,
}

const NOTHING: Aim = Aim { peer: "", speed: 0.0, cpu: f64::MAX, p99: f64::MAX };

/// A server under comparison, and the bodies that it is sent.
pub(crate) struct MeasuredServer<'a> {
    pub(crate) name: &'static str,
    pub(crate) peer: &'a BenchServer,
    pub(crate) bodies: &'a [String],
}

const CACHED: [Aim; 3] = [
    Aim { peer: "nginx cache", speed: 1.4, p99: 1.2, ..NOTHING },
    Aim { peer: "blutgang", speed: 1.5, ..NOTHING },
    Aim { peer: "hyper", speed: 0.85, ..NOTHING },
];

const UNCACHED: Aim = Aim { peer: "nginx pass", speed: 1.0, cpu: 1.1, p99: 1.2 };

/// Every log of a large answer is looked at.
const UNCACHED_LARGE: Aim = Aim { speed: 0.9, cpu: f64::MAX, ..UNCACHED };

/// Nothing is kept, so that every question fetches and proves its block.
const COLD: &str = "[cache]\nenabled = false\n";

/// Blocks are kept, answers are not.
const WARM: &str = "[cache]\nbytes_max = 1\n";

/// Blocks that cold and warm questions are about.
const PROVEN_BLOCKS: u64 = 1000;

/// Blocks that a cold or warm log query spans.
const LOG_RANGE: u64 = 10;

/// As [`WARM`], with memory for all large answers at once: with the default, most of them would be refused.
const WARM_WITH_MEMORY: &str = "[cache]\nbytes_max = 1\n[limits]\nmemory_bytes_max = 4294967296\n";

/// Large answers at once, for the memory that they take.
const LARGE_CONNECTIONS: u32 = 64;

/// Runs everything, or the rows whose kind and name have `part` in them, and prints two tables.
pub(crate) fn run(seconds: u64, part: &str) {
    let chain = heavy::log_heavy(BLOCKS, LOGS_PER_BLOCK);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let data_dir = folder.join("archive");
    fs::create_dir(&data_dir).expect("a folder to write to");
    import(&chain.chain, &data_dir);
    let original = peers::chaingate(&data_dir);
    let node = peers::mock_node(&original.url);
    let rows = rows(&chain, &original);
    let of = |kind: &str| -> Vec<&PoolRow> {
        rows.iter().filter(|row| format!(" {kind} {}", row.name).contains(part)).collect()
    };
    println!(
        "{seconds} s a run, median of {ROUNDS} interleaved rounds, 1 wrk thread; cpu is the server's, per request;\n\
         ratios are the gateway's to its peer's, with ! where they miss their aim; load average {}",
        load_average()
    );
    let head = original.call("eth_blockNumber", json!([]));
    cached(&of("cached"), &node, head.as_str().expect("a quantity"), seconds, folder);
    uncached(&of("uncached"), &node, seconds, folder);
    let proven_rows = proven_rows(&chain, &original);
    for (kind, cache) in [("cold", COLD), ("warm", WARM)] {
        let of_kind = proven_rows.iter().filter(|row| format!(" {kind} {}", row.name).contains(part));
        proven(kind, cache, &of_kind.collect::<Vec<_>>(), &node, seconds, folder);
    }
    if part.is_empty() {
        large(&rows, &node, seconds, folder);
    }
    println!("load average {}", load_average());
}

fn rows(chain: &LogHeavyChain, original: &BenchServer) -> Vec<PoolRow> {
    let call = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let storage =
        |number: u64| call("eth_getStorageAt", json!([heavy::COUNTER, format!("{number:#x}"), "latest"]));
    let last = original.call("eth_getBlockByNumber", json!(["latest", false]));
    let receipt =
        |number: u64| call("eth_getTransactionReceipt", json!([last["transactions"][number as usize]]));
    let large_receipt = |number: u64| {
        let block = original.call("eth_getBlockByNumber", json!([format!("{:#x}", BLOCKS - number), false]));
        call("eth_getTransactionReceipt", json!([block["transactions"][0]]))
    };
    let balance = |number: u64| {
        let holder = heavy::holder(number).into_word();
        let data = testkit::asm::call_data("balanceOf(address)", &[holder.into()]);
        call("eth_call", json!([{"to": heavy::TOKEN, "data": data}, "latest"]))
    };
    let logs = |filter: &LogFilter, number: u64| {
        // Another address, which has no logs, makes it another question with the same answer.
        let nobody =
            Address::from_word(alloy_primitives::B256::from(alloy_primitives::U256::from(number + 1)));
        let addresses = filter.addresses.iter().copied().chain([nobody]).collect::<Vec<_>>();
        let filter =
            json!({"fromBlock": "0x0", "toBlock": "latest", "address": addresses, "topics": topics(filter)});
        call("eth_getLogs", json!([filter]))
    };
    let many = |name, count, body: &dyn Fn(u64) -> String| PoolRow {
        name,
        bodies: (0..count).map(body).collect(),
        connections: 64,
    };
    vec![
        many("storage", 2000, &storage),
        many("receipt", heavy::TRANSFERS, &receipt),
        many("receipt x50", 1000, &large_receipt),
        many("call", 2000, &balance),
        many("logs x1", 1000, &|number| logs(&chain.one, number)),
        many("logs x100", 256, &|number| logs(&chain.hundred, number)),
        PoolRow { connections: 4, ..many("logs x10000", 128, &|number| logs(&chain.ten_thousand, number)) },
    ]
}

/// Questions about [`PROVEN_BLOCKS`] blocks, the newest first.
fn proven_rows(chain: &LogHeavyChain, original: &BenchServer) -> Vec<PoolRow> {
    let call = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let quantity = |number: u64| format!("{number:#x}");
    let blocks = || (0..PROVEN_BLOCKS).map(|below| BLOCKS - below);
    let receipts = blocks().map(|number| {
        let block = original.call("eth_getBlockByNumber", json!([quantity(number), false]));
        call("eth_getTransactionReceipt", json!([block["transactions"][0]]))
    });
    let logs = blocks().map(|number| {
        let (from, to) = (quantity(number - LOG_RANGE + 1), quantity(number));
        let filter = &chain.hundred;
        let filter =
            json!({"fromBlock": from, "toBlock": to, "address": filter.addresses, "topics": topics(filter)});
        call("eth_getLogs", json!([filter]))
    });
    let row = |name, bodies, connections| PoolRow { name, bodies, connections };
    let whole = blocks().map(|number| call("eth_getBlockByNumber", json!([quantity(number), false])));
    vec![
        row("block", whole.collect(), 64),
        row("receipts", receipts.collect(), 64),
        row("log range", logs.collect(), 4),
    ]
}

fn proven(kind: &str, cache: &str, rows: &[&PoolRow], node: &BenchServer, seconds: u64, folder: &Path) {
    let gateway = peers::chaingate_pool(18667, node, cache, folder);
    let before = peers::chaingate_pool_before(18673, node, cache, folder);
    let nginx = Nginx::start(NginxMode::Pass, 18669, node, folder);
    say_title(kind, nginx.is_some(), true);
    for row in rows {
        let bodies = &row.bodies[..];
        // The node learns all ways to ask, and a gateway that keeps blocks proves them.
        let nginx = nginx.as_ref().map(|nginx| &nginx.peer);
        let servers = checked(&gateway, &[("before", before.as_ref()), ("nginx pass", nginx)], bodies);
        measure(row, &servers, &[], seconds, folder);
    }
}

fn cached(rows: &[&PoolRow], node: &BenchServer, head: &str, seconds: u64, folder: &Path) {
    let gateway = peers::chaingate_pool(18653, node, "", folder);
    let before = peers::chaingate_pool_before(18675, node, "", folder);
    let nginx = Nginx::start(NginxMode::Cache, 18651, node, folder);
    let blutgang = blutgang::start(18659, node, folder);
    say_title("cached", nginx.is_some(), blutgang.is_some());
    for row in rows {
        let bodies = &row.bodies[..1];
        let by_number = blutgang::keepable(bodies, head);
        let hyper = peers::hyper(check(&gateway, bodies));
        let nginx = nginx.as_ref().map(|nginx| &nginx.peer);
        let mut servers = checked(&gateway, &[("before", before.as_ref()), ("nginx cache", nginx)], bodies);
        if let (Some(blutgang), Some(bodies)) = (&blutgang, &by_number) {
            check(blutgang, bodies);
            servers.push(MeasuredServer { name: "blutgang", peer: blutgang, bodies });
        }
        servers.push(MeasuredServer { name: "hyper", peer: &hyper, bodies });
        measure(row, &servers, &CACHED, seconds, folder);
    }
}

fn uncached(rows: &[&PoolRow], node: &BenchServer, seconds: u64, folder: &Path) {
    let gateway = peers::chaingate_pool(18655, node, WARM, folder);
    let before = peers::chaingate_pool_before(18677, node, WARM, folder);
    let nginx = Nginx::start(NginxMode::Pass, 18657, node, folder);
    let blutgang = blutgang::start(18661, node, folder);
    say_title("uncached", nginx.is_some(), blutgang.is_some());
    for row in rows {
        let bodies = &row.bodies[..];
        // The node learns all ways to ask.
        let nginx = nginx.as_ref().map(|nginx| &nginx.peer);
        let others = [("before", before.as_ref()), ("nginx pass", nginx), ("blutgang", blutgang.as_ref())];
        let servers = checked(&gateway, &others, bodies);
        let aim = if row.connections < 64 { UNCACHED_LARGE } else { UNCACHED };
        measure(row, &servers, &[aim], seconds, folder);
    }
}

/// The memory that many large answers take.
fn large(rows: &[PoolRow], node: &BenchServer, seconds: u64, folder: &Path) {
    let Some(row) = rows.last() else { return };
    let gateway = peers::chaingate_pool(18663, node, WARM_WITH_MEMORY, folder);
    check(&gateway, &row.bodies[..1]);
    let nginx = Nginx::start(NginxMode::Pass, 18665, node, folder);
    println!("\nmemory with {LARGE_CONNECTIONS} connections that ask for 6 MB each, no answer kept");
    let nginx = nginx.as_ref().map(|nginx| ("nginx pass", &nginx.peer));
    for (name, peer) in [("chaingate", &gateway)].into_iter().chain(nginx) {
        memory(name, peer, Traffic { bodies: &row.bodies, connections: LARGE_CONNECTIONS, seconds }, folder);
    }
}

/// The gateway and the peers that run. Each was asked everything once.
pub(crate) fn checked<'a>(
    gateway: &'a BenchServer,
    others: &[(&'static str, Option<&'a BenchServer>)],
    bodies: &'a [String],
) -> Vec<MeasuredServer<'a>> {
    let others = others.iter().filter_map(|(name, peer)| Some((*name, (*peer)?)));
    let servers = std::iter::once(("chaingate", gateway)).chain(others);
    let checked = servers.inspect(|(_, peer)| _ = check(peer, bodies));
    checked.map(|(name, peer)| MeasuredServer { name, peer, bodies }).collect()
}

/// Sends every body once, and returns the length of the last reply.
pub(crate) fn check(peer: &BenchServer, bodies: &[String]) -> usize {
    let mut bytes = 0;
    for body in bodies {
        let reply = peer.post(body);
        let start = String::from_utf8_lossy(&reply[..reply.len().min(200)]);
        assert!(start.contains("\"result\":") && !start.contains("\"result\":null"), "{body}: {start}");
        bytes = reply.len();
    }
    bytes
}

pub(crate) fn say_title(kind: &str, nginx: bool, blutgang: bool) {
    if !nginx {
        println!("nginx is left out: neither the PATH nor /usr/sbin has it");
    }
    if !blutgang {
        println!("{}", blutgang::MISSING);
    }
    println!(
        "\n{kind:<14}{:<13}{:>11}{:>10}{:>10}{:>10}{:>10}{:>8}{:>8}",
        "server", "requests/s", "p50 µs", "p99 µs", "cpu µs", "speed", "cpu", "p99"
    );
}

pub(crate) fn measure(
    row: &PoolRow,
    servers: &[MeasuredServer<'_>],
    aims: &[Aim],
    seconds: u64,
    folder: &Path,
) {
    let mut loads: Vec<Vec<Load>> = vec![Vec::new(); servers.len()];
    for _ in 0..ROUNDS {
        for (server, loads) in servers.iter().zip(&mut loads) {
            let traffic = Traffic { bodies: server.bodies, connections: row.connections, seconds };
            loads.push(load::run(server.peer, traffic, folder));
        }
    }
    let medians: Vec<Load> = loads.iter().map(|loads| load::median(loads)).collect();
    let ours = medians[0];
    for (MeasuredServer { name, .. }, load) in servers.iter().zip(&medians) {
        let aim = aims.iter().find(|aim| aim.peer == *name).copied().unwrap_or(NOTHING);
        let speed = ours.per_second / load.per_second;
        let (cpu, p99) = (ours.cpu_us / load.cpu_us, ours.p99_us / load.p99_us);
        println!(
            "{:<14}{name:<13}{:>11.0}{:>10.0}{:>10.0}{:>10.1}{:>10}{:>8}{:>8}",
            row.name,
            load.per_second,
            load.p50_us,
            load.p99_us,
            load.cpu_us,
            marked(speed, speed < aim.speed),
            marked(cpu, cpu > aim.cpu),
            marked(p99, p99 > aim.p99)
        );
    }
}

fn marked(ratio: f64, missed: bool) -> String {
    format!("{ratio:.2}{}", if missed { "!" } else { " " })
}

fn memory(name: &str, peer: &BenchServer, traffic: Traffic<'_>, folder: &Path) {
    let before = status_mb(peer, "VmRSS:");
    let load = load::try_run(peer, traffic, folder);
    println!(
        "{name:<14}{before:.0} MB before, {:.0} MB after, {:.0} MB at most; {:.0} requests/s, {:.0} failed",
        status_mb(peer, "VmRSS:"),
        status_mb(peer, "VmHWM:"),
        load.per_second,
        load.errors
    );
}

/// The sum of a figure of `/proc/PID/status` over the server's processes, in MB.
fn status_mb(peer: &BenchServer, figure: &str) -> f64 {
    let of = |process: u32| -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(figure))?;
        line.trim().trim_end_matches(" kB").parse::<f64>().ok()
    };
    peer.processes().into_iter().filter_map(of).sum::<f64>() / 1024.0
}

pub(crate) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
