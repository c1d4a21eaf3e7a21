//! Gateways that execute blocks and are killed, whose disk is full for a while, and whose nodes change to a chain too far away.
//!
//! `CHAINGATE_KILL_ROUNDS` says how often one is killed.

use std::ops::RangeInclusive;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use archive::{ARCHIVE_FILE, Archive};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use testkit::http::{get, post};
use testkit::proxy::Mood;
use testkit::truth::Truth;

use super::executed::{NETWORK, Nodes, executed, executing, stop};
use crate::backup::{back_up, restored};
use crate::demo::{metric, until};
use crate::gateway_under_test::call;
use crate::process::Process;

fn configuration(nodes: &Nodes) -> String {
    let entries = nodes.urls().iter().map(|url| format!("[[node]]\nurl = \"{url}\"\n")).collect::<String>();
    format!(
        "[[key]]\nkey = \"k\"\nplan = \"custom\"\n{NETWORK}[pool]\npoll_interval_ms = 20\n\
         [follow]\nmode = \"full\"\n{entries}"
    )
}

fn head(gateway: &Process) -> u64 {
    metric(gateway.operator, "chaingate_executed_block") as u64
}

/// Waits until the newest block of the nodes is executed.
fn wait_for(gateway: &Process, nodes: &Nodes) {
    let latest = call("eth_getBlockByNumber", r#"["latest",false]"#);
    let truth = nodes.nodes[0].gateway.post(&latest).json();
    until("the newest block is executed", || {
        let told = post(gateway.public, "/v3/k", &latest);
        told.json()["result"]["hash"] == truth["result"]["hash"] && head(gateway) == nodes.head()
    });
}

/// Killed at any moment while blocks come and go, it goes on with a whole block, loses none, and has the chain of the nodes in the end.
#[test]
fn a_gateway_that_is_killed_while_it_executes_blocks_loses_none_of_them() {
    let rounds = std::env::var("CHAINGATE_KILL_ROUNDS").map_or(4, |rounds| rounds.parse().unwrap());
    let mut nodes = Nodes::start(30);
    let genesis_in = |data_dir: &std::path::Path| nodes.genesis_in(data_dir);
    let mut gateway = Process::start_with_data(&configuration(&nodes), "info", "", genesis_in);
    let mut rng = StdRng::seed_from_u64(5);
    for round in 0..rounds {
        for step in 0..rng.random_range(2..8) {
            match rng.random_bool(0.6) {
                true => nodes.grow(1),
                false => nodes.reorganise(rng.random_range(1..=4), 1_000 * round + step),
            }
            // Any moment is as good as any other.
            thread::sleep(Duration::from_millis(rng.random_range(0..100)));
        }
        let before = head(&gateway);
        gateway.start_again("info");
        let now = head(&gateway);
        assert!(now >= before, "block {now} after block {before} in round {round}");
    }
    wait_for(&gateway, &nodes);
    nodes.nodes.iter().for_each(|node| node.proxy.set(Mood::Dead));
    let data_dir = gateway.kill();
    Archive::verify(&data_dir.path()).unwrap();
    let archive = Archive::open(&data_dir.path()).unwrap();
    Truth::new(nodes.newest().model().clone()).check(&archive.snapshot()).unwrap();
}

/// `chaingate import` of the blocks with these numbers, through a gateway.
fn import(gateway: &Process, nodes: &Nodes, numbers: RangeInclusive<u64>) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let (genesis, blocks) = (folder.path().join("genesis.json"), folder.path().join("blocks.rlp"));
    let encoded = numbers.flat_map(|number| nodes.newest().model().block(number).unwrap().rlp());
    std::fs::write(&genesis, &nodes.genesis).unwrap();
    std::fs::write(&blocks, encoded.collect::<Vec<u8>>()).unwrap();
    Command::new(env!("CARGO_BIN_EXE_chaingate"))
        .args(["import", "--data-dir"])
        .arg(gateway.data_dir())
        .arg("--genesis")
        .args([genesis, blocks])
        .output()
        .unwrap()
}

/// Blocks come from files and from nodes at the same time: each is stored once, and the chain is that of the nodes.
#[test]
fn blocks_are_imported_through_a_gateway_that_follows() {
    let mut nodes = Nodes::start(40);
    nodes.nodes.iter().for_each(|node| node.proxy.set(Mood::Dead));
    let genesis_in = |data_dir: &std::path::Path| nodes.genesis_in(data_dir);
    let gateway = Process::start_with_data(&configuration(&nodes), "info", "", genesis_in);
    let imported = import(&gateway, &nodes, 1..=25);
    assert!(imported.status.success(), "{imported:?}");
    assert_eq!(head(&gateway), 25);
    nodes.nodes.iter().for_each(|node| node.proxy.set(Mood::Honest));
    for blocks in [40, 43, 46] {
        thread::scope(|scope| {
            let (gateway, nodes) = (&gateway, &nodes);
            scope.spawn(move || assert!(import(gateway, nodes, 1..=blocks).status.success()));
            wait_for(gateway, nodes);
        });
        nodes.grow(3);
    }
    nodes.reorganise(2, 9);
    wait_for(&gateway, &nodes);
    let data_dir = gateway.kill();
    let archive = Archive::open(&data_dir.path()).unwrap();
    Truth::new(nodes.newest().model().clone()).check(&archive.snapshot()).unwrap();
}

/// While the disk is full nodes answer, and when there is room execution goes on.
#[test]
fn a_full_disk_pauses_execution_until_there_is_room() {
    let mut nodes = Nodes::start(20);
    let genesis_in = |data_dir: &std::path::Path| nodes.genesis_in(data_dir);
    let gateway = Process::start_with_data(&configuration(&nodes), "info", "trap '' XFSZ;", genesis_in);
    wait_for(&gateway, &nodes);
    let pid = Pid::from_raw(i32::try_from(gateway.id()).unwrap());
    let all = getrlimit(Resource::Fsize);
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(4096), ..all }).unwrap();
    nodes.grow(5);
    let says_so = "the archive cannot be read or written";
    until("execution pauses", || gateway.lines_with(says_so) == 1);
    let newest = format!("{:#x}", nodes.head());
    until("nodes answer", || {
        post(gateway.public, "/v3/k", call("eth_blockNumber", "[]")).json()["result"] == newest
    });
    assert_eq!(get(gateway.operator, "/ready").status, 200);
    assert_eq!(head(&gateway), 20);
    let stopped = || metric(gateway.operator, "chaingate_executed_stopped");
    until("it is told", || stopped() == 1.0);
    let status = get(gateway.operator, "/status").json();
    let reason = status["executed"]["stopped_because"].as_str().unwrap();
    assert!(reason.starts_with(says_so), "{status}");
    prlimit(pid, Resource::Fsize, all).unwrap();
    wait_for(&gateway, &nodes);
    until("it goes on", || stopped() == 0.0);
    nodes.reorganise(4, 9);
    wait_for(&gateway, &nodes);
    assert_eq!(gateway.lines_with(says_so), 1);
    let data_dir = gateway.kill();
    let archive = Archive::open(&data_dir.path()).unwrap();
    Truth::new(nodes.newest().model().clone()).check(&archive.snapshot()).unwrap();
}

/// The nodes have other blocks from further below than blocks can be replaced: that is said, and nodes answer everything.
#[test]
fn a_reorganisation_that_is_too_deep_stops_execution() {
    let (nodes, others) = (Nodes::start(90), Nodes::on_another_branch(5, 95));
    let data_dir = tempfile::tempdir().unwrap();
    nodes.genesis_in(data_dir.path());
    let front = executing(data_dir.path(), &nodes.urls());
    nodes.wait_for(&front);
    stop(front, data_dir.path());
    let size = || std::fs::metadata(data_dir.path().join(ARCHIVE_FILE)).unwrap().len();
    let before = size();
    let front = executing(data_dir.path(), &others.urls());
    until("execution has stopped", || executed(&front, "stopped") == 1.0);
    let status = get(front.operator, "/status").json();
    assert_eq!(status["executed"]["state"], "stopped", "{status}");
    assert_eq!(
        status["executed"]["stopped_because"],
        "the nodes have none of the last 64 blocks of the archive up to block 90, and older ones cannot be replaced; \
         make a new archive with `chaingate import`"
    );
    others.results_are_equal(&front);
    assert_eq!((executed(&front, "block"), size()), (90.0, before));
    stop(front, data_dir.path());
    let front = executing(data_dir.path(), &nodes.urls());
    nodes.wait_for(&front);
    nodes.answers_are_equal(&front);
}

#[test]
fn a_gateway_that_executes_blocks_is_backed_up_and_its_copy_follows_on() {
    let mut nodes = Nodes::start(30);
    let genesis_in = |data_dir: &std::path::Path| nodes.genesis_in(data_dir);
    let gateway = Process::start_with_data(&configuration(&nodes), "info", "", genesis_in);
    wait_for(&gateway, &nodes);
    nodes.grow(3);
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup");
    let made = back_up(&gateway.data_dir(), &backup);
    let at = made["manifest"]["archive"]["head"].as_u64().unwrap();
    assert!((30..=nodes.head()).contains(&at), "{made}");
    nodes.grow(5);
    let again = restored(&backup, &configuration(&nodes));
    wait_for(&again, &nodes);
    nodes.reorganise(2, 77);
    wait_for(&again, &nodes);
}
