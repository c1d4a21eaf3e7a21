//! Real nodes that are stopped, killed, started again and reorganised while they are asked. Needs anvil: `ANVIL` names the
//! program.
//!
//! `CHAINGATE_STORM_SECONDS` says how long; `CHAINGATE_STRICT_LATENCY` makes the story as strict about time as the promise
//! is, for machines that do nothing else meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use rand::Rng;

use super::callers::{Caller, Stage, Times, ask_during, storm_time};
use super::front::Front;
use super::identical_nodes::{BOX, Twins};
use super::reorg_consistency::Told;

const MS: Duration = Duration::from_millis(1);
const BLOCK_TIME: Duration = Duration::from_millis(200);

/// The time between the reorganisations of two nodes.
const DISAGREEMENT: Duration = Duration::from_millis(250);
const DEPTH_MAX: u64 = 6;

/// No node is replaced sooner than after this time, however quick it is.
const HEDGE_DELAY_MIN: Duration = Duration::from_millis(5);
/// The time that a stopped node may cost beyond the hedge delay.
const STOPPED_COST_MAX: Duration = Duration::from_millis(20);
/// The time that a stopped node may cost on a machine that has other things to do.
const STOPPED_COST_MAX_BUSY: Duration = Duration::from_secs(4);

/// The state of the nodes while a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scene {
    Calm,
    Stopped,
    Killed,
    Reorganised,
}

const SCENES: [Scene; 4] = [Scene::Calm, Scene::Stopped, Scene::Killed, Scene::Reorganised];

#[test]
fn nodes_that_are_stopped_killed_and_reorganised_cost_no_answer_and_hardly_any_time() {
    let Some(mut twins) = Twins::start() else { return };
    (0..2 * DEPTH_MAX).for_each(|_| twins.mine());
    let front = Front::of(&twins.urls(), "[network]\nname = \"anvil\"\n[cache]\nenabled = false\n");
    let told = Told::new(twins.truths.clone());
    let time = storm_time(8);
    let times = ask_during(&front, time, |caller| told.ask(caller), |stage| trouble(&mut twins, stage));
    times.are_many(time);
    report(&times);
}

/// How long two of three nodes are watched after they were frozen.
const FROZEN_TIME: Duration = Duration::from_secs(1);
/// The promised bound of the time of a call with two of three nodes frozen.
const FROZEN_COST_MAX: Duration = Duration::from_millis(300);

/// A state that two of three nodes must confirm, while two are frozen: the third one proves it.
#[test]
fn two_frozen_nodes_of_three_cost_no_read_of_the_state() {
    let Some(mut twins) = Twins::start() else { return };
    (0..4 * DEPTH_MAX).for_each(|_| twins.mine());
    let front = Front::of(&twins.urls(), "[network]\nname = \"anvil\"\n[cache]\nenabled = false\n");
    let branch = twins.truths.read().unwrap()[0].clone();
    let ask = |caller: &mut Caller| {
        // The state of anvil's first block cannot be proven.
        let number = caller.rng.random_range(1..branch.len());
        let reply = caller.ask("eth_getBalance", &format!(r#"["{BOX}","{number:#x}"]"#));
        assert_eq!(reply["result"], branch[number].balance, "block {number}: {reply}");
    };
    let times = ask_during(&front, Duration::ZERO, ask, |stage| {
        thread::sleep(2 * FROZEN_TIME);
        stage.begin(Scene::Stopped as usize);
        (0..2).for_each(|node| twins.stop(node));
        thread::sleep(FROZEN_TIME);
        stage.begin(Scene::Calm as usize);
    });
    times.report(Scene::Calm as usize, "all there, and later");
    times.report(Scene::Stopped as usize, "state in the first second with two of three frozen");
    if std::env::var_os("CHAINGATE_STRICT_LATENCY").is_some() {
        let p99 = times.share(Scene::Stopped as usize, 990);
        assert!(p99 <= FROZEN_COST_MAX, "{p99:?}");
    }
}

/// Turn by turn a node is stopped, another one is killed, and all of them are reorganised.
fn trouble(twins: &mut Twins, stage: &Stage<'_>) {
    let begin = |scene: Scene| stage.begin(scene as usize);
    for turn in 0.. {
        let (stopped, killed) = (turn % twins.count(), (turn + 1) % twins.count());
        live(twins, 1_000 * MS);
        begin(Scene::Stopped);
        twins.stop(stopped);
        live(twins, 1_500 * MS);
        begin(Scene::Calm);
        twins.go_on(stopped);
        live(twins, 600 * MS);
        begin(Scene::Killed);
        twins.kill(killed);
        live(twins, 600 * MS);
        twins.start_again(killed);
        begin(Scene::Calm);
        live(twins, 600 * MS);
        begin(Scene::Reorganised);
        reorganise(twins, 1 + turn as u64 % DEPTH_MAX);
        begin(Scene::Calm);
        if stage.is_over() {
            return;
        }
    }
}

fn live(twins: &mut Twins, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        twins.mine();
        thread::sleep(BLOCK_TIME);
    }
}

/// Moves the nodes to another branch, one after the other. The second of three makes it the canonical one.
fn reorganise(twins: &mut Twins, depth: u64) {
    twins.branch_off(depth);
    for node in 0..twins.count() {
        twins.follow(node, depth);
        thread::sleep(DISAGREEMENT);
    }
}

fn report(times: &Times) {
    SCENES.iter().for_each(|&scene| times.report(scene as usize, &format!("{scene:?}")));
    let hedge_delay = times.share(Scene::Calm as usize, 950).max(HEDGE_DELAY_MIN);
    let cost = times.share(Scene::Stopped as usize, 990).saturating_sub(hedge_delay);
    eprintln!("a stopped node costs {cost:?} beyond the hedge delay of {hedge_delay:?}");
    let strict = std::env::var_os("CHAINGATE_STRICT_LATENCY").is_some();
    assert!(cost <= if strict { STOPPED_COST_MAX } else { STOPPED_COST_MAX_BUSY }, "{cost:?}");
}
