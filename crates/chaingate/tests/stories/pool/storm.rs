//! Everything at once: calls at a steady rate while nodes die, hang, lie and come back.
//!
//! `CHAINGATE_STORM_SECONDS` says how long; a few seconds by default.

use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use testkit::proxy::{Mood, Proxy};

use super::callers::{Stage, ask_during, storm_time};
use super::front::Front;
use super::questions;
use crate::demo::Demo;

/// How long a node keeps its mood.
const MOOD_TIME: Duration = Duration::from_millis(300);

const MOODS: [Mood; 15] = [
    Mood::Honest,
    Mood::Dead,
    Mood::Hung,
    Mood::Slow(Duration::from_millis(200)),
    Mood::Html,
    Mood::Cut,
    Mood::Garbage,
    Mood::WrongId,
    Mood::Swapped,
    Mood::ServerError,
    Mood::RateLimited,
    Mood::Nulls,
    Mood::WrongBlocks,
    Mood::StaleHead,
    Mood::FarAhead,
];

#[test]
fn no_call_fails_and_no_answer_is_wrong_while_one_node_is_honest() {
    let node = Demo::with("");
    let mut questions = questions::all(&node);
    // An old state that is zero is believed only from a node that has shown its old states, which takes longer than a mood.
    questions
        .retain(|question| question.method != "eth_getStorageAt" || !question.params.contains("earliest"));
    // One honest node of three is no quorum that could confirm the state.
    let rest = "[network]\nname = \"demo\"\n[cache]\nbytes_max = 65536\n[integrity]\nstate = \"trust\"\n";
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, rest);
    let time = storm_time(6);
    let times = ask_during(
        &front,
        time,
        |caller| questions::ask_any(caller, &questions),
        |stage| trouble(&proxies, stage),
    );
    times.report(0, "storm");
    times.are_many(time);
}

/// Two of three nodes get into trouble, and out of it again.
fn trouble(proxies: &[Proxy], stage: &Stage<'_>) {
    let mut rng = StdRng::seed_from_u64(1);
    while !stage.is_over() {
        let honest = rng.random_range(0..proxies.len());
        for (place, proxy) in proxies.iter().enumerate() {
            let mood = if place == honest { Mood::Honest } else { MOODS[rng.random_range(0..MOODS.len())] };
            proxy.set(mood);
        }
        thread::sleep(MOOD_TIME);
    }
}
