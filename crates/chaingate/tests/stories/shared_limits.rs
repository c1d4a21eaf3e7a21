//! Three gateways that share limits over a real Redis.
//!
//! The upper bounds hold on any machine. The lower ones need one that keeps up with the load, and are checked with
//! `CHAINGATE_STRICT_LATENCY=1`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use testkit::http::{TestConnection, get, post};
use testkit::postgres::PostgresServer;
use testkit::redis::RedisServer;

use crate::demo::until;
use crate::gateway_under_test::call;
use crate::process::Process;

const CREDITS_PER_SECOND: u64 = 4_000;
const CREDITS_PER_CALL: u64 = 80;
const CREDITS_PER_DAY: u64 = 200_000;
const DAY_CREDITS_PER_SECOND: u64 = 20_000;
const CREDITS_PER_BLOCK_RECEIPTS: u64 = 1_000;

/// The gateways together get five times as many calls as the limit allows.
const CALLS_PER_SECOND: u64 = 5 * CREDITS_PER_SECOND / CREDITS_PER_CALL / 3;

fn gateways(redis: &RedisServer, plan: &str) -> Vec<Process> {
    let rest = format!(
        "[shared]\nredis_url = \"{}\"\n[plans.shared]\n{plan}\n[[key]]\nkey = \"k1\"\naccount = \"a\"\nplan = \"shared\"\n",
        redis.url()
    );
    let gateways: Vec<Process> = (0..3).map(|_| Process::start("127.0.0.1:0", &rest, "info")).collect();
    until("each gateway knows the others", || {
        gateways.iter().all(|gateway| gauge(gateway, "instances") == 3.0)
    });
    gateways
}

fn gauge(gateway: &Process, name: &str) -> f64 {
    let page = get(gateway.operator, "/metrics");
    let name = format!("chaingate_shared_limits_{name} ");
    let value = page.text().lines().find_map(|line| line.strip_prefix(&name)?.parse().ok());
    value.unwrap_or_else(|| panic!("no {name}in {}", page.text()))
}

fn is_connected(gateway: &Process) -> bool {
    gauge(gateway, "connected") == 1.0
}

/// Callers that offer a constant load until they are dropped.
struct Load {
    granted: Vec<AtomicU64>,
    is_over: AtomicBool,
}

impl Load {
    /// Runs `story` under load. Its argument measures the credits of each gateway in a time.
    fn around(gateways: &[Process], story: impl FnOnce(&dyn Fn(Duration) -> Measured)) {
        let load = Self {
            granted: gateways.iter().map(|_| AtomicU64::new(0)).collect(),
            is_over: AtomicBool::new(false),
        };
        thread::scope(|scope| {
            for (gateway, granted) in gateways.iter().zip(&load.granted) {
                let (public, is_over) = (gateway.public, &load.is_over);
                scope.spawn(move || offer(public, granted, is_over));
            }
            // The callers also end if the story fails.
            let _end = EndOnDrop(&load.is_over);
            story(&|time| load.measure(time));
        });
    }

    fn measure(&self, time: Duration) -> Measured {
        let counts = || self.granted.iter().map(|count| count.load(Relaxed)).collect::<Vec<_>>();
        let (began, before) = (Instant::now(), counts());
        thread::sleep(time);
        let after = counts();
        let each = after.iter().zip(&before).map(|(after, before)| after - before).collect();
        Measured { each, seconds: began.elapsed().as_secs_f64() }
    }
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn offer(public: SocketAddr, granted: &AtomicU64, is_over: &AtomicBool) {
    let mut connection = TestConnection::connect(public);
    let began = Instant::now();
    for index in 1.. {
        if is_over.load(Relaxed) {
            return;
        }
        let reply = connection.post("/v3/k1", call("eth_blockNumber", "[]"));
        if reply.status == 200 {
            granted.fetch_add(CREDITS_PER_CALL, Relaxed);
        } else {
            assert_eq!(reply.status, 429, "{}", reply.text());
        }
        let next = began + Duration::from_secs(1) * index / u32::try_from(CALLS_PER_SECOND).unwrap();
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// The credits that each gateway granted in a time.
struct Measured {
    each: Vec<u64>,
    seconds: f64,
}

impl Measured {
    /// Compares the sum with the limit, apart from `burst` seconds and the calls that were on their way at both ends.
    fn check(&self, what: &str, lowest: f64, highest: f64, burst: f64) {
        let (sum, limit) = (self.each.iter().sum::<u64>() as f64, CREDITS_PER_SECOND as f64);
        let part = sum / limit / self.seconds;
        eprintln!(
            "{what}: {:?} credits in {:.2} s, {:.1} % of the limit",
            self.each,
            self.seconds,
            part * 100.0
        );
        let is_strict = std::env::var_os("CHAINGATE_STRICT_LATENCY").is_some();
        // On a busy machine the load may pause, and a second's worth of credits is saved up meanwhile.
        let burst = if is_strict { burst } else { 1.0 };
        let on_their_way = (6 * CREDITS_PER_CALL) as f64;
        assert!(
            sum <= highest * limit * self.seconds + burst * limit + on_their_way,
            "{what}: {part} of the limit"
        );
        if is_strict {
            assert!(sum >= lowest * limit * self.seconds - on_their_way, "{what}: {part} of the limit");
        }
    }
}

#[test]
fn three_gateways_hold_one_limit_while_redis_comes_and_goes() {
    let Some(mut redis) = RedisServer::start() else { return };
    let gateways = gateways(&redis, &format!("credits_per_second = {CREDITS_PER_SECOND}"));
    let (short, long) = (Duration::from_secs(3), Duration::from_secs(6));
    Load::around(&gateways, |measure| {
        measure(short).check("at first, with the burst", 0.9, 1.05, 1.0);
        measure(long).check("with Redis", 0.98, 1.02, 0.0);
        redis.kill();
        until("all gateways know that Redis is gone", || !gateways.iter().any(is_connected));
        let without = measure(long);
        without.check("without Redis", 0.8, 1.2, 0.0);
        assert!(without.each.iter().all(|&granted| granted > 0), "{:?}", without.each);
        redis.restart();
        until("all gateways have found Redis", || gateways.iter().all(is_connected));
        measure(short).check("while the gateways find each other again", 0.8, 1.2, 0.0);
        measure(long).check("with Redis again", 0.98, 1.02, 0.0);
        redis.command("FLUSHALL");
        measure(short).check("after Redis has lost everything", 0.8, 1.2, 0.0);
        redis.signal("STOP");
        measure(short).check("while Redis is silent", 0.8, 1.2, 0.0);
        redis.signal("CONT");
        until("all gateways hear Redis again", || gateways.iter().all(is_connected));
        measure(short).check("after the silence", 0.8, 1.2, 0.0);
        measure(long).check("with Redis at last", 0.98, 1.02, 0.0);
    });
    assert!(get(gateways[0].operator, "/status").json()["shared_limits"]["connected"].as_bool().unwrap());
    let [one, two, three] = <[Process; 3]>::try_from(gateways).ok().unwrap();
    three.terminate();
    until("the others know that it has stopped", || {
        gauge(&one, "instances") == 2.0 && gauge(&two, "instances") == 2.0
    });
}

/// Uses up the credits of the day that a gateway grants, and returns their number.
fn use_up_day(gateway: &Process) -> u64 {
    let mut granted = 0;
    loop {
        match post(gateway.public, "/v3/k1", call("eth_getBlockReceipts", r#"["0x1"]"#)).status {
            200 => granted += CREDITS_PER_BLOCK_RECEIPTS,
            429 => thread::sleep(Duration::from_millis(10)),
            402 => return granted,
            status => panic!("{status}"),
        }
    }
}

#[test]
fn the_credits_of_a_day_end_on_all_gateways_with_one_store() {
    let (Some(redis), Some(postgres)) = (RedisServer::start(), PostgresServer::start()) else { return };
    let limits =
        format!("credits_per_second = {DAY_CREDITS_PER_SECOND}\ncredits_per_day = {CREDITS_PER_DAY}\n");
    let gateways = gateways(&redis, &format!("{limits}[store]\nurl = \"{}\"", postgres.url()));
    let granted: u64 = thread::scope(|scope| {
        let uses: Vec<_> = gateways.iter().map(|gateway| scope.spawn(|| use_up_day(gateway))).collect();
        uses.into_iter().map(|used| used.join().unwrap()).sum()
    });
    // Three seconds, and as many on a busy machine.
    let most = CREDITS_PER_DAY + 6 * DAY_CREDITS_PER_SECOND;
    assert!((CREDITS_PER_DAY..=most).contains(&granted), "{granted}");
}

#[test]
fn a_gateway_starts_without_redis_and_answers() {
    let rest = "[shared]\nredis_url = \"redis://:S3CRET@127.0.0.1:1/0\"\n";
    let gateway = Process::start("127.0.0.1:0", rest, "trace");
    assert_eq!(post(gateway.public, "/v3/demo", call("eth_blockNumber", "[]")).status, 200);
    assert_eq!(get(gateway.operator, "/ready").status, 200);
    assert!(!is_connected(&gateway));
    until("the log says so", || gateway.lines_with("cannot reach Redis") > 0);
    assert_eq!(gateway.lines_with("S3CRET"), 0);
}
