//! Callers who ask at a steady rate while their nodes are in trouble.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use testkit::http::TestConnection;

use super::front::Front;
use crate::gateway_under_test::call;

const CALLS_PER_SECOND: u32 = 500;
const CALLERS: u32 = 4;

/// How long the trouble lasts: `CHAINGATE_STORM_SECONDS`, by default `seconds`.
pub(super) fn storm_time(seconds: u64) -> Duration {
    let said = std::env::var("CHAINGATE_STORM_SECONDS");
    Duration::from_secs(said.map_or(seconds, |seconds| seconds.parse().unwrap()))
}

/// A caller with one connection.
pub(super) struct Caller {
    wire: TestConnection,
    pub(super) rng: StdRng,
}

impl Caller {
    pub(super) fn ask(&mut self, method: &str, params: &str) -> Value {
        self.wire.post("/v3/custom", call(method, params)).json()
    }
}

/// The progress of the trouble: its present scene, and whether its time is over.
pub(super) struct Stage<'a> {
    scene: &'a AtomicUsize,
    started: Instant,
    time: Duration,
    is_lost: &'a dyn Fn() -> bool,
}

impl Stage<'_> {
    /// Calls from now on are counted under this number.
    pub(super) fn begin(&self, scene: usize) {
        self.scene.store(scene, Relaxed);
    }

    /// Whether the time is over, or a caller has failed.
    pub(super) fn is_over(&self) -> bool {
        self.started.elapsed() >= self.time || (self.is_lost)()
    }
}

/// Lets callers ask again and again until the trouble has ended. Returns how long each call took, and during which scene.
pub(super) fn ask_during(
    front: &Front,
    time: Duration,
    ask: impl Fn(&mut Caller) + Sync,
    trouble: impl FnOnce(&Stage<'_>),
) -> Times {
    let (over, scene) = (AtomicBool::new(false), AtomicUsize::new(0));
    let times = thread::scope(|scope| {
        let (ask, over, scene) = (&ask, &over, &scene);
        let callers: Vec<_> = (0..CALLERS)
            .map(|seed| {
                let caller = Caller { wire: front.wire(), rng: StdRng::seed_from_u64(seed.into()) };
                scope.spawn(move || steadily(caller, ask, over, scene))
            })
            .collect();
        // The callers also end when the trouble fails.
        let end = End(over);
        let is_lost = || callers.iter().any(thread::ScopedJoinHandle::is_finished);
        trouble(&Stage { scene, started: Instant::now(), time, is_lost: &is_lost });
        drop(end);
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    Times(times)
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn steadily(
    mut caller: Caller,
    ask: impl Fn(&mut Caller),
    over: &AtomicBool,
    scene: &AtomicUsize,
) -> Vec<(usize, Duration)> {
    let (started, pause) = (Instant::now(), Duration::from_secs(1) / (CALLS_PER_SECOND / CALLERS));
    let mut times = Vec::new();
    while !over.load(Relaxed) {
        let (now, begun) = (scene.load(Relaxed), Instant::now());
        ask(&mut caller);
        times.push((now, begun.elapsed()));
        thread::sleep((pause * times.len() as u32).saturating_sub(started.elapsed()));
    }
    times
}

/// How long calls took, by scene.
pub(super) struct Times(Vec<(usize, Duration)>);

impl Times {
    pub(super) fn calls(&self) -> usize {
        self.0.len()
    }

    /// The time within which so many of a thousand calls of a scene were answered. On a busy machine a scene may have no call.
    pub(super) fn share(&self, scene: usize, part: usize) -> Duration {
        let times = self.of(scene);
        times.get(times.len() * part / 1_000).copied().unwrap_or_default()
    }

    pub(super) fn report(&self, scene: usize, name: &str) {
        let calls = self.of(scene).len();
        let [p50, p95, p99, most] = [500, 950, 990, 999].map(|part| self.share(scene, part));
        eprintln!("{name}: {calls} calls, p50 {p50:?}, p95 {p95:?}, p99 {p99:?}, p99.9 {most:?}");
    }

    /// Checks that at least a twentieth of the calls was made. A busy machine may be slower than the rate.
    pub(super) fn are_many(&self, time: Duration) {
        let wanted = u64::from(CALLS_PER_SECOND) * time.as_secs() / 20;
        assert!(self.calls() as u64 >= wanted, "hardly a call was made: {}", self.calls());
    }

    fn of(&self, scene: usize) -> Vec<Duration> {
        let mut times: Vec<_> = self.0.iter().filter(|call| call.0 == scene).map(|call| call.1).collect();
        times.sort_unstable();
        times
    }
}
