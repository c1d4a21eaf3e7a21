//! Real nodes that are stopped, killed and started again while they are asked. Needs anvil: `ANVIL` names the program.
//!
//! `CHAINGATE_STORM_SECONDS` says how long; `CHAINGATE_STRICT_LATENCY` makes the story as strict about time as the promise
//! is, for machines that do nothing else meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use testkit::http::Wire;

use super::front::Front;
use super::twins::{BOB, Truths, Twins};
use crate::gateway_under_test::call;

const MS: Duration = Duration::from_millis(1);
const CALLERS: u32 = 4;
/// Between two calls of one caller: 200 calls each second in all.
const PAUSE: Duration = Duration::from_millis(20);
const BLOCK_TIME: Duration = Duration::from_millis(200);

/// No node is replaced sooner than after this time, however quick it is.
const HEDGE_DELAY_MIN: Duration = Duration::from_millis(5);
/// What a stopped node may cost beyond the hedge delay.
const STOPPED_COST_MAX: Duration = Duration::from_millis(20);
/// The same on a machine that has other things to do.
const STOPPED_COST_MAX_BUSY: Duration = Duration::from_millis(1_000);

/// What is the matter while a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Calm,
    Stopped,
    Killed,
}

const PHASES: [Phase; 3] = [Phase::Calm, Phase::Stopped, Phase::Killed];

#[test]
fn nodes_that_are_stopped_and_killed_cost_no_answer_and_hardly_any_time() {
    let Some(mut twins) = Twins::start() else {
        return eprintln!("skipped: ANVIL does not name the program anvil");
    };
    (0..4).for_each(|_| twins.mine());
    let front = Front::of(&twins.urls(), "[network]\nname = \"anvil\"\n[cache]\nbytes_max = 0\n");
    let (over, phase, truths) = (AtomicBool::new(false), AtomicU8::new(0), twins.truths.clone());
    let times = thread::scope(|scope| {
        let (front, over, phase, truths) = (&front, &over, &phase, &truths);
        let callers: Vec<_> = (0..CALLERS)
            .map(|seed| scope.spawn(move || Caller::new(front, truths, seed).call_until(over, phase)))
            .collect();
        trouble(&mut twins, phase, || callers.iter().any(thread::ScopedJoinHandle::is_finished));
        over.store(true, Relaxed);
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    report(&times);
}

/// One node after the other is stopped, and another one killed, while blocks are made all the time.
fn trouble(twins: &mut Twins, phase: &AtomicU8, is_over: impl Fn() -> bool) {
    let seconds = std::env::var("CHAINGATE_STORM_SECONDS").map_or(8, |seconds| seconds.parse().unwrap());
    let started = Instant::now();
    let begin = |now: Phase| phase.store(now as u8, Relaxed);
    for turn in 0.. {
        let (stopped, killed) = (turn % 3, (turn + 1) % 3);
        live(twins, 1_000 * MS);
        begin(Phase::Stopped);
        twins.stop(stopped);
        live(twins, 1_500 * MS);
        begin(Phase::Calm);
        twins.go_on(stopped);
        live(twins, 600 * MS);
        begin(Phase::Killed);
        twins.kill(killed);
        live(twins, 600 * MS);
        twins.start_again(killed);
        begin(Phase::Calm);
        if is_over() || started.elapsed() >= Duration::from_secs(seconds) {
            return;
        }
    }
}

fn live(twins: &Twins, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        twins.mine();
        thread::sleep(BLOCK_TIME);
    }
}

/// One who asks, and knows what is true.
struct Caller<'a> {
    wire: Wire,
    truths: &'a Truths,
    rng: StdRng,
    /// The newest block that it was told of.
    latest: usize,
}

impl<'a> Caller<'a> {
    fn new(front: &Front, truths: &'a Truths, seed: u32) -> Self {
        Self { wire: front.wire(), truths, rng: StdRng::seed_from_u64(seed.into()), latest: 0 }
    }

    fn call_until(mut self, over: &AtomicBool, phase: &AtomicU8) -> Vec<(Phase, Duration)> {
        let mut times = Vec::new();
        while !over.load(Relaxed) {
            let (now, begun) = (PHASES[usize::from(phase.load(Relaxed))], Instant::now());
            self.call();
            times.push((now, begun.elapsed()));
            thread::sleep(PAUSE.saturating_sub(begun.elapsed()));
        }
        times
    }

    fn call(&mut self) {
        let number = self.rng.random_range(0..=self.latest);
        let truth = self.truths.read().unwrap()[number].clone();
        let (hash, tag) = (&truth.transaction["hash"], format!("{number:#x}"));
        match self.rng.random_range(0..6) {
            0 => {
                let reply = self.ask("eth_blockNumber", json!([]));
                self.is_told_of(&reply);
            }
            1 => {
                let block = self.ask("eth_getBlockByNumber", json!(["latest", false]));
                self.is_told_of(&block["number"]);
                assert_eq!(block, self.truths.read().unwrap()[self.latest].block);
            }
            2 if hash.is_string() => {
                assert_eq!(self.ask("eth_getTransactionByHash", json!([hash])), truth.transaction);
            }
            3 if hash.is_string() => {
                assert_eq!(self.ask("eth_getTransactionReceipt", json!([hash])), truth.receipt);
            }
            4 => assert_eq!(self.ask("eth_getBalance", json!([BOB, tag])), truth.balance),
            _ => assert_eq!(self.ask("eth_getBlockByNumber", json!([tag, false])), truth.block),
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let reply = self.wire.post("/v3/custom", call(method, &params.to_string())).json();
        assert!(reply.get("error").is_none(), "{method} {params}: {reply}");
        reply["result"].clone()
    }

    fn is_told_of(&mut self, quantity: &Value) {
        let digits = quantity.as_str().unwrap().trim_start_matches("0x");
        let latest = usize::from_str_radix(digits, 16).unwrap();
        assert!(latest >= self.latest, "the head was {}, and is {latest}", self.latest);
        self.latest = latest;
    }
}

fn report(times: &[(Phase, Duration)]) {
    let share = |phase: Phase, part: usize| {
        let mut times: Vec<_> = times.iter().filter(|call| call.0 == phase).map(|call| call.1).collect();
        times.sort_unstable();
        times[times.len() * part / 1_000]
    };
    for phase in PHASES {
        let calls = times.iter().filter(|call| call.0 == phase).count();
        let [p50, p95, p99, most] = [500, 950, 990, 999].map(|part| share(phase, part));
        eprintln!("{phase:?}: {calls} calls, p50 {p50:?}, p95 {p95:?}, p99 {p99:?}, most {most:?}");
    }
    let hedge_delay = share(Phase::Calm, 950).max(HEDGE_DELAY_MIN);
    let cost = share(Phase::Stopped, 990).saturating_sub(hedge_delay);
    eprintln!("a stopped node costs {cost:?} beyond the hedge delay of {hedge_delay:?}");
    let strict = std::env::var_os("CHAINGATE_STRICT_LATENCY").is_some();
    assert!(cost <= if strict { STOPPED_COST_MAX } else { STOPPED_COST_MAX_BUSY }, "{cost:?}");
}
