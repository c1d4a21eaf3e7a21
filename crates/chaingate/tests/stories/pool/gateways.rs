//! Nodes that are gateways themselves, each a process with the demo chain, stopped and killed while they are asked.
//!
//! `CHAINGATE_STORM_SECONDS` says how long.

use std::thread;
use std::time::Duration;

use testkit::ports::free_port;

use super::callers::{Stage, ask_during, storm_time};
use super::front::Front;
use super::questions;
use crate::demo::Demo;
use crate::process::Process;

const LOG: &str = "info";

/// The time for which two of three nodes are away.
const ALONE: Duration = Duration::from_millis(900);
/// The time for which all nodes are there, in between.
const TOGETHER: Duration = Duration::from_millis(600);

const CALM: usize = 0;
const TROUBLE: usize = 1;

#[test]
fn gateways_that_are_stopped_and_killed_cost_no_answer_while_one_is_left() {
    let questions = questions::all(&Demo::with(""));
    let mut nodes: Vec<_> =
        (0..3).map(|_| Process::start(&format!("127.0.0.1:{}", free_port()), "", LOG)).collect();
    let urls: Vec<_> = nodes.iter().map(|node| format!("http://{}/v3/demo", node.public)).collect();
    // Nothing is kept, so that every question reaches a node. One node of three is no quorum that could confirm the state.
    let rest = "[network]\nname = \"demo\"\n[cache]\nenabled = false\n[integrity]\nstate = \"trust\"\n";
    let front = Front::of(&urls, rest);
    let time = storm_time(6);
    let times = ask_during(
        &front,
        time,
        |caller| questions::ask_any(caller, &questions),
        |stage| trouble(&mut nodes, stage),
    );
    times.report(CALM, "all there");
    times.report(TROUBLE, "one stopped and one killed");
    times.are_many(time);
}

/// The promised bound of the time of a call with two of three nodes frozen.
const FROZEN_COST_MAX: Duration = Duration::from_millis(300);
/// The bound on a machine that has other things to do.
const FROZEN_COST_MAX_BUSY: Duration = Duration::from_secs(4);

/// Calls went to nodes that were frozen until enough of them had failed, and took two seconds each.
#[test]
fn two_frozen_gateways_of_three_cost_little_time_from_the_first_call_on() {
    let mut questions = questions::all(&Demo::with(""));
    // Block data that exists needs no quorum. Uncles are fetched by several calls to one node, which took longest.
    questions.retain(|question| {
        (question.method.contains("Block") || question.method.contains("Uncle")) && question.truth.is_object()
    });
    assert!(questions.iter().any(|question| question.method.contains("Uncle")));
    let nodes: Vec<_> = (0..3).map(|_| Process::start("127.0.0.1:0", "", LOG)).collect();
    let urls: Vec<_> = nodes.iter().map(|node| format!("http://{}/v3/demo", node.public)).collect();
    let front = Front::of(&urls, "[network]\nname = \"demo\"\n[cache]\nenabled = false\n");
    let signal = |name: &str| nodes[..2].iter().for_each(|node| node.signal(name));
    let trouble = |stage: &Stage<'_>| {
        thread::sleep(Duration::from_secs(2));
        stage.begin(TROUBLE);
        signal("STOP");
        thread::sleep(Duration::from_secs(1));
        stage.begin(CALM);
        signal("CONT");
    };
    let times = ask_during(&front, Duration::ZERO, |caller| questions::ask_any(caller, &questions), trouble);
    times.report(CALM, "all there");
    times.report(TROUBLE, "the first second with two of three frozen");
    let strict = std::env::var_os("CHAINGATE_STRICT_LATENCY").is_some();
    let most = if strict { FROZEN_COST_MAX } else { FROZEN_COST_MAX_BUSY };
    assert!(times.share(TROUBLE, 990) <= most, "{:?}", times.share(TROUBLE, 990));
}

/// One node after the other is alone for a while: of the others one is stopped, and one is killed.
fn trouble(nodes: &mut [Process], stage: &Stage<'_>) {
    for turn in 0.. {
        let (stopped, killed) = (turn % nodes.len(), (turn + 1) % nodes.len());
        thread::sleep(TOGETHER);
        stage.begin(TROUBLE);
        nodes[stopped].signal("STOP");
        nodes[killed].signal("KILL");
        thread::sleep(ALONE);
        nodes[stopped].signal("CONT");
        nodes[killed].start_again(LOG);
        stage.begin(CALM);
        if stage.is_over() {
            return;
        }
    }
}
