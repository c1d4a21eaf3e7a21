//! The gateway on its embedded chain, beside a bare hyper server with replies of the same length and beside anvil
//! with the same contracts, blocks and logs. What counts are the ratios within one run.
//!
//! The same call comes again and again, so the gateway is measured twice: as it is, and without the answers that it
//! keeps. anvil is, too: on all cores, and on one.

use crate::{
    load::{self, Load, Traffic},
    peers::{self, BenchServer},
};
use archive::{Archive, LogFilter};
use serde_json::{Value, json};
use std::path::Path;
use testkit::heavy::{self, HeavyChain, LogHeavyChain};

pub(crate) const BLOCKS: u64 = 2000;
pub(crate) const LOGS_PER_BLOCK: u64 = 50;
pub(crate) const ROUNDS: usize = 3;

/// One kind of call.
struct EmbeddedRow {
    name: &'static str,
    /// For the gateway and for anvil; hashes differ between their chains.
    bodies: [String; 2],
    connections: u32,
}

/// Runs everything and prints a table.
pub(crate) fn run(seconds: u64) {
    let chain = heavy::log_heavy(BLOCKS, LOGS_PER_BLOCK);
    let folder = tempfile::tempdir().expect("a folder");
    let data_dir = folder.path().join("archive");
    std::fs::create_dir(&data_dir).expect("a folder to write to");
    import(&chain.chain, &data_dir);
    let [copy, second_copy] = ["copy", "second-copy"].map(|name| {
        let copy = folder.path().join(name);
        std::fs::create_dir(&copy).expect("a folder to write to");
        import(&chain.chain, &copy);
        copy
    });

    let chaingate = peers::chaingate(&data_dir);
    let forgetful = peers::chaingate_forgetful(&copy, folder.path());
    let before = peers::chaingate_before(&second_copy, folder.path());
    let anvil = peers::anvil(BLOCKS, LOGS_PER_BLOCK);
    if anvil.is_none() {
        println!("anvil is left out: neither $ANVIL nor the PATH has it");
    }
    println!(
        "{seconds} s a run, median of {ROUNDS} interleaved rounds, 1 wrk thread; cpu is the server's, per request"
    );
    println!(
        "{:<14}{:<17}{:>11}{:>10}{:>10}{:>10}{:>10}{:>12}",
        "row", "server", "requests/s", "p50 µs", "p99 µs", "cpu µs", "speed", "kept none"
    );
    for row in rows(&chain, &chaingate, anvil.as_ref()) {
        let peers = RowServers {
            chaingate: &chaingate,
            forgetful: &forgetful,
            before: before.as_ref(),
            anvil: anvil.as_ref(),
        };
        measure(&row, peers, seconds, folder.path());
    }
}

/// Makes an archive of a chain.
pub(crate) fn import(chain: &HeavyChain, folder: &Path) {
    let archive = Archive::open_or_create(folder, &chain.genesis_json()).expect("a new archive");
    let blocks: Vec<_> = chain.blocks.iter().map(|built| built.block.clone()).collect();
    archive.import_blocks(blocks, &mut archive::NoProgress).expect("built blocks are valid");
}

fn rows(chain: &LogHeavyChain, chaingate: &BenchServer, anvil: Option<&BenchServer>) -> Vec<EmbeddedRow> {
    let call = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let same = |name, body: String| EmbeddedRow { name, bodies: [body.clone(), body], connections: 64 };
    let receipt = |peer: &BenchServer, block: &str| {
        let block = peer.call("eth_getBlockByNumber", json!([block, false]));
        call("eth_getTransactionReceipt", json!([block["transactions"][0]]))
    };
    let receipts = |name, block| EmbeddedRow {
        name,
        bodies: [receipt(chaingate, block), anvil.map_or_else(String::new, |anvil| receipt(anvil, block))],
        connections: 64,
    };
    let holder = heavy::holder(1).into_word();
    let balance_of = testkit::asm::call_data("balanceOf(address)", &[holder.into()]);
    let message = json!({"to": heavy::TOKEN, "data": balance_of});
    let logs = |filter: &LogFilter| {
        let filter = json!({"fromBlock": "0x0", "toBlock": "latest", "address": filter.addresses, "topics": topics(filter)});
        call("eth_getLogs", json!([filter]))
    };
    vec![
        same("storage", call("eth_getStorageAt", json!([heavy::COUNTER, "0x0", "latest"]))),
        receipts("receipt", "latest"),
        receipts("receipt x50", "0x3e8"),
        same("call", call("eth_call", json!([message, "latest"]))),
        same("logs x1", logs(&chain.one)),
        same("logs x100", logs(&chain.hundred)),
        EmbeddedRow { connections: 4, ..same("logs x10000", logs(&chain.ten_thousand)) },
    ]
}

/// The topics of a filter as callers write them.
pub(crate) fn topics(filter: &LogFilter) -> Vec<Value> {
    let topic = |any: &Vec<_>| if any.is_empty() { Value::Null } else { json!(any) };
    filter.topics.iter().map(topic).collect()
}

/// The servers that a row is measured on, without the bare hyper server.
struct RowServers<'a> {
    chaingate: &'a BenchServer,
    /// The gateway, keeping no answers.
    forgetful: &'a BenchServer,
    /// The build of the gateway from before a change.
    before: Option<&'a BenchServer>,
    anvil: Option<&'a BenchServer>,
}

fn measure(row: &EmbeddedRow, peers: RowServers<'_>, seconds: u64, folder: &Path) {
    let RowServers { chaingate, forgetful, before, anvil } = peers;
    let reply = chaingate.post(&row.bodies[0]);
    assert!(
        !reply.windows(7).any(|text| text == b"\"error\""),
        "{}: {}",
        row.name,
        String::from_utf8_lossy(&reply)
    );
    let hyper = peers::hyper(reply.len());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let ours = &row.bodies[0];
    let mut servers: Vec<(&str, &BenchServer, &String, usize)> = vec![
        ("chaingate", chaingate, ours, cores),
        ("  keeping none", forgetful, ours, cores),
        ("hyper", &hyper, ours, cores),
    ];
    if let Some(before) = before {
        servers.push(("before", before, ours, cores));
    }
    if let Some(anvil) = anvil {
        servers.push(("anvil", anvil, &row.bodies[1], cores));
        servers.push(("anvil, one core", anvil, &row.bodies[1], 1));
    }
    let mut loads: Vec<Vec<Load>> = vec![Vec::new(); servers.len()];
    for _ in 0..ROUNDS {
        for ((_, peer, body, cores), loads) in servers.iter().zip(&mut loads) {
            peer.confine(*cores);
            let traffic =
                Traffic { bodies: std::slice::from_ref(body), connections: row.connections, seconds };
            loads.push(load::run(peer, traffic, folder));
        }
    }
    let medians: Vec<Load> = loads.iter().map(|loads| load::median(loads)).collect();
    for ((name, ..), load) in servers.iter().zip(&medians) {
        let ratio = |of: &Load| of.per_second / load.per_second;
        println!(
            "{:<14}{name:<17}{:>11.0}{:>10.0}{:>10.0}{:>10.1}{:>9.2}x{:>11.2}x",
            row.name,
            load.per_second,
            load.p50_us,
            load.p99_us,
            load.cpu_us,
            ratio(&medians[0]),
            ratio(&medians[1])
        );
    }
}
