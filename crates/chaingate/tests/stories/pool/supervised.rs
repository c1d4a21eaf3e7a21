//! The tasks that watch and follow nodes panic.

use serde_json::Value;
use testkit::http::get;

use super::executed::{self, NETWORK, Nodes};
use super::front::Front;
use crate::demo::{Demo, metric, until};
use crate::supervision::{is_ready_without, is_shown_as_down, panic_for_ever, panic_once};
use testkit::proxy::Proxy;

const FOLLOWER: &str = "follower of blocks";
const EXECUTION: &str = "execution of blocks";

/// A header of a node made the thread panic. It was gone for the life of the process, while `chaingate_follow_running` was 1. Once it
/// was started again, it went on from the newest block, without those that had come in between.
#[test]
fn the_follower_of_blocks_goes_on_after_a_panic_and_says_when_it_cannot() {
    let mut nodes = Nodes::start(3);
    let folder = tempfile::tempdir().unwrap();
    let front = Front::following(folder.path(), &nodes.urls(), "", NETWORK);
    let in_memory = || metric(front.operator, "chaingate_follow_memory_blocks") as u64;
    until("the head is kept", || in_memory() > 0);
    panic_once(&front.supervisor, FOLLOWER);
    let before = in_memory();
    // A second panic lengthens the pause in which blocks come.
    front.supervisor.inject_panics(FOLLOWER, 1);
    nodes.grow(2);
    until("new blocks are kept", || in_memory() >= before + 2);
    assert_eq!(metric(front.operator, "chaingate_follow_running") as u64, 1);
    panic_for_ever(&front.supervisor, FOLLOWER);
    assert_eq!(metric(front.operator, "chaingate_follow_running") as u64, 0);
    let status: Value = get(front.operator, "/status").json();
    let state = status["follow"]["state"].as_str().unwrap();
    assert!(state.starts_with("stopped: the task that follows does not run: it panicked"), "{state}");
    is_ready_without(front.operator, FOLLOWER);
    is_shown_as_down(front.operator, FOLLOWER);
}

#[test]
fn blocks_are_executed_after_a_panic() {
    let mut nodes = Nodes::start(3);
    let folder = tempfile::tempdir().unwrap();
    nodes.genesis_in(folder.path());
    let front = executed::executing(folder.path(), &nodes.urls());
    nodes.wait_for(&front);
    panic_once(&front.supervisor, EXECUTION);
    nodes.grow(2);
    nodes.wait_for(&front);
    panic_for_ever(&front.supervisor, EXECUTION);
    let status: Value = get(front.operator, "/status").json();
    assert_eq!(status["executed"]["state"], "stopped");
    let reason = status["executed"]["stopped_because"].as_str().unwrap();
    assert!(reason.starts_with("the task that executes new blocks does not run: it panicked"), "{reason}");
    is_ready_without(front.operator, EXECUTION);
    is_shown_as_down(front.operator, EXECUTION);
}

#[test]
fn a_watcher_and_the_probe_of_a_partner_that_do_not_run_are_named() {
    let node = Demo::with("");
    let partner = Proxy::start(node.public, "/v3/demo");
    let rest = format!("[[partner]]\nname = \"far\"\nurl = \"{}\"\n", partner.url());
    let (_proxies, front) = Front::behind(node.public, "/v3/demo", 3, &rest);
    let replies = partner.replies();
    panic_once(&front.supervisor, "probe of partner far");
    until("the partner is probed again", || partner.replies() > replies);
    panic_for_ever(&front.supervisor, "probe of partner far");
    is_ready_without(front.operator, "probe of partner far");
    is_shown_as_down(front.operator, "probe of partner far");
    let watcher =
        front.supervisor.report().into_iter().find(|task| task.name.starts_with("watcher of node "));
    let watcher = watcher.unwrap().name;
    panic_for_ever(&front.supervisor, &watcher);
    is_shown_as_down(front.operator, &watcher);
    assert!(front.ask("eth_blockNumber", "[]")["result"].is_string(), "two of three nodes are a quorum");
}
