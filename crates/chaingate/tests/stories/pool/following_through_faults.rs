//! Following gateways in processes of their own that are killed, and whose disk is full for a while.
//!
//! `CHAINGATE_KILL_ROUNDS` says how often one is killed.

use std::thread;
use std::time::Duration;

use rand::Rng;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;
use testkit::http::{get, post};
use testkit::proxy::{Mood, Proxy};

use super::following::Growing;
use super::long;
use super::questions::outcome;
use crate::demo::{Demo, metric, until};
use crate::gateway_under_test::call;
use crate::process::Process;

const BLOCKS: u64 = 900;

fn configuration(node: &Proxy) -> String {
    format!(
        "[[key]]\nkey = \"k\"\nplan = \"custom\"\n[network]\nname = \"long\"\n[pool]\npoll_interval_ms = 20\n\
         [follow]\nfrom = \"earliest\"\n[[node]]\nurl = \"{}\"\n",
        node.url()
    )
}

fn stored_blocks(gateway: &Process) -> u64 {
    metric(gateway.operator, "chaingate_follow_blocks") as u64
}

fn ask(gateway: &Process, method: &str, params: &str) -> Value {
    outcome(&post(gateway.public, "/v3/k", call(method, params)).json())
}

/// These blocks, and their receipts, are there without a node.
fn has(gateway: &Process, node: &Demo, numbers: impl Iterator<Item = u64>) {
    for number in numbers {
        for (method, params) in [
            ("eth_getBlockByNumber", format!(r#"["{number:#x}",true]"#)),
            ("eth_getBlockReceipts", format!(r#"["{number:#x}"]"#)),
        ] {
            assert_eq!(
                ask(gateway, method, &params),
                outcome(&node.call(method, &params)),
                "{method} {number}"
            );
        }
    }
}

/// Killed at any moment of its life, it goes on with what it had, and misses nothing in the end.
#[test]
fn a_gateway_that_is_killed_while_it_keeps_blocks_loses_none_of_them() {
    let rounds = std::env::var("CHAINGATE_KILL_ROUNDS").map_or(4, |rounds| rounds.parse().unwrap());
    let (growing, node) = Growing::start(long::chain_of(BLOCKS, 1), 400);
    let proxy = Proxy::start(node.public, "/v3/demo");
    let mut gateway = Process::start("127.0.0.1:0", &configuration(&proxy), "info");
    let mut rng = rand::rng();
    for round in 0..rounds {
        let left = BLOCKS - growing.head();
        growing.grow(usize::try_from(left / (rounds - round)).unwrap());
        // Any moment is as good as any other.
        thread::sleep(Duration::from_millis(rng.random_range(0..400)));
        let before = stored_blocks(&gateway);
        gateway.start_again("info");
        let now = stored_blocks(&gateway);
        assert!(now >= before, "{now} blocks after {before} in round {round}");
    }
    until("all blocks are stored", || stored_blocks(&gateway) == BLOCKS - 63);
    until("the newest ones, too", || metric(gateway.operator, "chaingate_follow_memory_blocks") == 64.0);
    proxy.set(Mood::Dead);
    has(&gateway, &node, 0..=BLOCKS);
}

/// While the disk is full calls are answered, and when there is room following goes on.
#[test]
fn a_full_disk_pauses_following_until_there_is_room() {
    let (growing, node) = Growing::start(long::chain_of(BLOCKS, 12), 300);
    let proxy = Proxy::start(node.public, "/v3/demo");
    let gateway = Process::start_without_file_size_signal(&configuration(&proxy), "info");
    until("the first blocks are stored", || stored_blocks(&gateway) == 237);
    let pid = Pid::from_raw(i32::try_from(gateway.id()).unwrap());
    let file = metric(gateway.operator, "chaingate_follow_file_bytes") as u64;
    let all = getrlimit(Resource::Fsize);
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(file), ..all }).unwrap();
    growing.grow(600);
    until("following pauses", || metric(gateway.operator, "chaingate_follow_running") == 0.0);
    assert!(metric(gateway.operator, "chaingate_follow_disk_failures_total") > 0.0);
    let head = format!("{:#x}", growing.head());
    until("the head goes on", || ask(&gateway, "eth_blockNumber", "[]") == *head);
    for number in [7, 250, 500, 890] {
        let params = format!(r#"["{number:#x}",true]"#);
        assert_eq!(
            ask(&gateway, "eth_getBlockByNumber", &params),
            outcome(&node.call("eth_getBlockByNumber", &params))
        );
    }
    assert_eq!(get(gateway.operator, "/ready").status, 200);
    prlimit(pid, Resource::Fsize, all).unwrap();
    until("all blocks are stored", || stored_blocks(&gateway) == BLOCKS - 63);
    until("following goes on", || metric(gateway.operator, "chaingate_follow_running") == 1.0);
    proxy.set(Mood::Dead);
    has(&gateway, &node, (0..=BLOCKS).step_by(10));
    until("the log says that following resumes", || {
        gateway.lines_with("following resumes") == gateway.lines_with("following pauses")
    });
    // A file that may not grow has room for some blocks, so that following can go on for a moment. The log is not filled by it.
    assert!((1..=5).contains(&gateway.lines_with("following pauses")));
}
