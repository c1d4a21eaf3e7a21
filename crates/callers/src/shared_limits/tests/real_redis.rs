//! The script in a real Redis.

#[path = "../../../../testkit/src/ports.rs"]
#[allow(unreachable_pub, reason = "the file belongs to another crate, where others use it")]
mod ports; // ports that stay free
#[path = "../../../../testkit/src/redis.rs"]
#[allow(unreachable_pub, dead_code, reason = "the file belongs to another crate, where others use it")]
mod redis_server; // a real Redis
#[path = "../../../../testkit/src/skip.rs"]
#[allow(unreachable_pub, dead_code, reason = "the file belongs to another crate, where others use it")]
mod skip; // tests that leave themselves out

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use redis_server::RedisServer;
use resources::{Clock, Supervisor};

use super::super::exchange::{INSTANCES_KEY, ScriptItem};
use super::super::redis_link::{RedisLink, Reporter, ScriptReply};
use super::super::{LimitSharing, RedisUrl};
use super::model_redis::{ModelRedis, ModelReport};
use crate::credit_limits::CreditLimits;

/// Reports in one comparison, most of them while nobody gets more than it holds, and the pause between two.
const REPORTS: usize = 80;
const REPORT_PAUSE: Duration = Duration::from_millis(30);

/// Reports in one comparison while limits are divided.
const DIVIDED_REPORTS: usize = 50;

fn item() -> impl Strategy<Value = ScriptItem> {
    let limit = prop_oneof![1 => Just(0), 4 => Just(500), 4 => Just(4_000), 4 => Just(7)];
    let amount = || prop_oneof![Just(0), 0..3_000_u64];
    (1..3_u64, limit, amount(), amount()).prop_map(|(hash, limit, demand, rate)| ScriptItem {
        key: format!("rate:{hash}"),
        arguments: [limit, demand, rate],
    })
}

/// The time at which the script ran.
fn latest_ms(connection: &mut redis::Connection) -> u64 {
    redis::cmd("HGET").arg(INSTANCES_KEY).arg("#latest").query(connection).unwrap()
}

/// The model is what the simulations rely on.
#[test]
fn the_script_does_what_the_model_does() {
    let Some(server) = RedisServer::start() else { return };
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let mut link = RedisLink::new(client);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::deterministic();
    let reports = prop::collection::vec((0..4_usize, prop::collection::vec(item(), 0..4)), REPORTS);
    let mut model = ModelRedis::default();
    let reports = reports.new_tree(&mut runner).unwrap().current();
    let (mut compared, mut divided) = (0, 0);
    for (sequence, (index, mut items)) in (1..).zip(reports.into_iter().cycle()) {
        std::thread::sleep(REPORT_PAUSE);
        items.dedup_by(|one, other| one.key == other.key);
        let instance = format!("instance-{index}");
        // Now and then a report arrives after a later one.
        let sequence = if sequence % 7 == 0 { sequence - 5 } else { sequence };
        let reporter = Reporter { instance: &instance, sequence, is_ending: false };
        let reply = runtime.block_on(link.exchange(reporter, &items)).unwrap();
        let now = latest_ms(&mut connection);
        let report = ModelReport { instance: instance.clone(), sequence, now };
        assert_eq!(reply, model.divide(&report, &items), "{reporter:?} {items:?} {model:?}");
        compared += 1;
        divided += usize::from(reply.is_settled);
        if compared >= REPORTS && divided >= DIVIDED_REPORTS {
            break;
        }
    }
}

/// Calls of the script by several instances, without gateways.
struct Script {
    link: RedisLink,
    connection: redis::Connection,
    runtime: tokio::runtime::Runtime,
    sequence: u64,
}

impl Script {
    fn new(server: &RedisServer) -> Self {
        let client = redis::Client::open(server.url()).unwrap();
        let connection = client.get_connection().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { link: RedisLink::new(client), connection, runtime, sequence: 0 }
    }

    fn report(&mut self, instance: &str, item: ScriptItem) -> ScriptReply {
        self.exchange(instance, false, &[item])
    }

    fn end(&mut self, instance: &str) {
        self.exchange(instance, true, &[]);
    }

    fn exchange(&mut self, instance: &str, is_ending: bool, items: &[ScriptItem]) -> ScriptReply {
        self.sequence += 1;
        let reporter = Reporter { instance, sequence: self.sequence, is_ending };
        self.runtime.block_on(self.link.exchange(reporter, items)).unwrap()
    }

    fn set(&mut self, hash: &str, field: &str, value: &str) {
        let () = redis::cmd("HSET").arg(hash).arg(field).arg(value).query(&mut self.connection).unwrap();
    }
}

fn rate_item() -> ScriptItem {
    ScriptItem { key: "rate:1".to_owned(), arguments: [4_000, 4_000, 0] }
}

/// The next instance waited ten seconds for one that had left.
#[test]
fn an_instance_that_has_left_is_not_counted() {
    let Some(server) = RedisServer::start() else { return };
    let mut script = Script::new(&server);
    script.end("first");
    assert_eq!(script.report("second", rate_item()).instances, 1);
    assert_eq!(script.report("third", rate_item()).instances, 2);
    script.end("third");
    assert_eq!(script.report("second", rate_item()).instances, 1);
}

/// Nobody got more until the clock showed the old time again.
#[test]
fn limits_are_divided_again_after_the_clock_of_redis_was_set_back() {
    let Some(server) = RedisServer::start() else { return };
    let mut script = Script::new(&server);
    script.report("first", rate_item());
    let in_an_hour = (latest_ms(&mut script.connection) + 3_600_000).to_string();
    for field in ["#latest", "#since", "first", "crashed"] {
        script.set(INSTANCES_KEY, field, &in_an_hour);
    }
    script.set("rate:1", "crashed", &format!("1 {in_an_hour} 4000 4000"));
    wait_until("the limit is given to one that is alone", || {
        let reply = script.report("first", rate_item());
        (reply.instances, reply.is_settled, &reply.rates[..]) == (1, true, &[Some(4_000)])
    });
}

/// One hash that something else had written stopped the division of all limits.
#[test]
fn values_that_the_script_cannot_read_are_replaced_and_do_not_stop_other_limits() {
    let Some(server) = RedisServer::start() else { return };
    let mut script = Script::new(&server);
    let damages: [&[&str]; 7] = [
        &["SET", INSTANCES_KEY, "text"],
        &["HSET", INSTANCES_KEY, "#latest", "text", "#since", "nan", "other", "1e15"],
        &["SET", "rate:1", "text"],
        &["RPUSH", "rate:1", "text"],
        &["HSET", "rate:1", "other", "1 2 3"],
        &["HSET", "rate:1", "other", "1 99999999999999 nan 1e18"],
        &["HSET", "rate:1", "other", "text", "#since", "text"],
    ];
    for damage in damages {
        for key in [INSTANCES_KEY, "rate:1"] {
            let _removed: i64 = redis::cmd("DEL").arg(key).query(&mut script.connection).unwrap();
        }
        let (name, arguments) = damage.split_first().unwrap();
        let _done: redis::Value = redis::cmd(name).arg(arguments).query(&mut script.connection).unwrap();
        wait_until("limits are divided", || {
            let reply = script.report("first", rate_item());
            (reply.instances, reply.is_settled, &reply.rates[..]) == (1, true, &[Some(4_000)])
        });
    }
}

/// Asks until the limit refuses, for as long as `is_done` says; credits that were granted.
fn grant_until(limits: &CreditLimits, mut is_done: impl FnMut() -> bool) -> u64 {
    let (clock, mut granted) = (Clock::default(), 0);
    while !is_done() {
        if limits.take(clock.now(), || clock.unix_seconds(), 10).is_ok() {
            granted += 10;
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    granted
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not happen within a minute");
}

#[test]
fn redis_may_end_and_return_while_limits_are_shared() {
    let Some(mut server) = RedisServer::start() else { return };
    let start =
        || LimitSharing::start(RedisUrl::parse(&server.url()).unwrap(), &Supervisor::default()).unwrap();
    let (one, two) = (start(), start());
    wait_until("both know of each other", || one.limits().status().instances == 2);
    let limits: Vec<CreditLimits> = [&one, &two]
        .map(|sharing| {
            let limits = CreditLimits::new(Some(10_000), None);
            limits.share_as("account", sharing.limits());
            limits
        })
        .into();
    let exchanges = |sharing: &LimitSharing| sharing.limits().status().exchanges;
    let until = exchanges(&one) + 5;
    assert!(grant_until(&limits[0], || exchanges(&one) >= until) > 0);
    server.kill();
    wait_until("Redis is gone", || {
        !one.limits().status().is_connected && !two.limits().status().is_connected
    });
    let failures = one.limits().status().failures + 5;
    assert!(grant_until(&limits[0], || one.limits().status().failures >= failures) > 0);
    server.restart();
    wait_until("Redis is back", || one.limits().status().is_connected && two.limits().status().is_connected);
    server.signal("STOP");
    wait_until("Redis is silent", || !one.limits().status().is_connected);
    server.signal("CONT");
    wait_until("Redis speaks again", || {
        one.limits().status().is_connected && two.limits().status().is_connected
    });
    drop(two);
    wait_until("one is alone", || one.limits().status().instances == 1);
}

/// A thread that had panicked was gone for good, and its instance kept the part of each limit that it had then.
#[test]
fn limits_are_shared_after_a_panic() {
    const TASK: &str = "shared limits";
    let Some(server) = RedisServer::start() else { return };
    let supervisor = Supervisor::default();
    let one = LimitSharing::start(RedisUrl::parse(&server.url()).unwrap(), &supervisor).unwrap();
    supervisor.inject_panics(TASK, 1);
    wait_until("it panics", || supervisor.report()[0].panics == 1);
    let exchanges = one.limits().status().exchanges;
    wait_until("it reports again", || one.limits().status().exchanges > exchanges);
    supervisor.inject_panics(TASK, u32::MAX);
    wait_until("it is down", || supervisor.why_down(TASK).is_some());
    assert!(!one.limits().status().is_connected);
    // A task that does not run does not hold up the end of its gateway.
    drop(one);
}

#[test]
fn an_instance_starts_without_redis_and_uses_little_of_each_limit() {
    let sharing =
        LimitSharing::start(RedisUrl::parse("redis://127.0.0.1:1/0").unwrap(), &Supervisor::default())
            .unwrap();
    let limits = CreditLimits::new(Some(4_000), None);
    limits.share_as("account", &Arc::clone(sharing.limits()));
    let clock = Clock::default();
    let now = clock.now();
    let granted = (0..100).filter(|_| limits.take(now, || clock.unix_seconds(), 10).is_ok()).count();
    assert_eq!(granted, 10, "a fortieth of the limit");
    assert!(!format!("{sharing:?}").contains("127.0.0.1"));
}

/// The cryptography of TLS is chosen when a connection is opened, and a wrong choice ends the thread.
#[test]
fn a_server_that_does_not_answer_over_tls_is_a_failure_like_any_other() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("rediss://{}/0", listener.local_addr().unwrap());
    let sharing = LimitSharing::start(RedisUrl::parse(&url).unwrap(), &Supervisor::default()).unwrap();
    wait_until("two connections have failed", || sharing.limits().status().failures >= 2);
}
