//! Everything at once: calls at a steady rate while nodes die, hang, lie and come back.
//!
//! `CHAINGATE_STORM_SECONDS` says how long; a few seconds by default.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::questions::{self, Question, outcome};
use crate::demo::Demo;
use crate::gateway_under_test::call;

const CALLS_PER_SECOND: u64 = 500;
const CALLERS: u64 = 4;

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

fn seconds() -> u64 {
    std::env::var("CHAINGATE_STORM_SECONDS").map_or(6, |seconds| seconds.parse().unwrap())
}

#[test]
fn no_call_fails_and_no_answer_is_wrong_while_one_node_is_honest() {
    let node = Demo::with("");
    let questions = questions::all(&node);
    let rest = "[network]\nname = \"demo\"\n[cache]\nbytes_max = 65536\n";
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, rest);
    let over = AtomicBool::new(false);
    let asked = AtomicU64::new(0);
    let mut times = thread::scope(|scope| {
        scope.spawn(|| trouble(&proxies, &over));
        // Also when a caller fails, or the trouble would never end.
        let _end = End(&over);
        let (front, questions, asked) = (&front, &questions, &asked);
        let callers: Vec<_> =
            (0..CALLERS).map(|seed| scope.spawn(move || steady(front, questions, seed, asked))).collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    times.sort();
    let at = |part: usize| times[times.len() * part / 1_000];
    eprintln!("{} calls, p50 {:?}, p99 {:?}, most {:?}", times.len(), at(500), at(990), at(999));
    // A busy machine may be slower than the rate; what counts is what the calls came to.
    assert!(times.len() as u64 >= CALLS_PER_SECOND * seconds() / 20, "hardly a call was made");
}

/// Ends the trouble when it goes.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Two of three nodes get into trouble, and out of it again.
fn trouble(proxies: &[Proxy], over: &AtomicBool) {
    let mut rng = StdRng::seed_from_u64(1);
    while !over.load(Relaxed) {
        let honest = rng.random_range(0..proxies.len());
        for (place, proxy) in proxies.iter().enumerate() {
            let mood = if place == honest { Mood::Honest } else { MOODS[rng.random_range(0..MOODS.len())] };
            proxy.set(mood);
        }
        thread::sleep(MOOD_TIME);
    }
}

/// One caller's share of the calls; how long each took.
fn steady(front: &Front, questions: &[Question], seed: u64, asked: &AtomicU64) -> Vec<Duration> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut wire = front.wire();
    let (started, pause) = (Instant::now(), Duration::from_secs(1) / (CALLS_PER_SECOND / CALLERS) as u32);
    let mut times = Vec::new();
    while started.elapsed() < Duration::from_secs(seconds()) {
        let Question { method, params, truth } = &questions[rng.random_range(0..questions.len())];
        let begun = Instant::now();
        let reply = wire.post("/v3/custom", call(method, params)).json();
        times.push(begun.elapsed());
        let number = asked.fetch_add(1, Relaxed);
        assert_eq!(outcome(&reply), *truth, "call {number}: {method} {params}");
        thread::sleep((pause * times.len() as u32).saturating_sub(started.elapsed()));
    }
    times
}
