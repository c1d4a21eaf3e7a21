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
use resources::Clock;

use super::super::exchange::{ScriptItem, leave_instance};
use super::super::redis_link::{RedisLink, Reporter};
use super::super::{LimitSharing, RedisUrl};
use super::model_redis::{ModelRedis, ModelReport};
use crate::credit_limits::CreditLimits;

/// Reports in one comparison: enough for each instance to raise, lower and leave its part several times.
const REPORTS: usize = 400;

fn item() -> impl Strategy<Value = ScriptItem> {
    let operation =
        prop_oneof![8 => Just("rate"), 6 => Just("day"), 1 => Just("leave-rate"), 1 => Just("leave-day")];
    let amount = || prop_oneof![Just(0), 0..3_000_u64];
    (operation, 1..3_u64, prop_oneof![Just(500), Just(4_000), Just(7)], amount(), amount(), amount())
        .prop_map(|(operation, hash, limit, second, third, fourth)| ScriptItem {
            key: format!("{}:{hash}", if operation.ends_with("rate") { "rate" } else { "day" }),
            operation,
            arguments: [limit, second, third, if operation == "day" { fourth } else { 0 }],
        })
}

fn time_ms(connection: &mut redis::Connection) -> u64 {
    let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(connection).unwrap();
    seconds * 1_000 + micros / 1_000
}

/// The model is what the simulations rely on.
#[test]
fn the_script_does_what_the_model_does() {
    let Some(server) = RedisServer::start() else { return };
    let client = redis::Client::open(server.url()).unwrap();
    let mut times = client.get_connection().unwrap();
    let mut link = RedisLink::new(client);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::deterministic();
    let reports = prop::collection::vec((0..4_u64, 0..5_u64, prop::collection::vec(item(), 0..4)), REPORTS);
    let mut model = ModelRedis::default();
    for (sequence, (instance, known, mut items)) in
        (1..).zip(reports.new_tree(&mut runner).unwrap().current())
    {
        items.dedup_by(|one, other| one.key == other.key);
        let instance = format!("instance-{instance}");
        // Now and then a report arrives after a later one.
        let sequence = if sequence % 7 == 0 { sequence - 5 } else { sequence };
        let reporter = Reporter { instance: &instance, sequence, known };
        let before = time_ms(&mut times);
        let reply = runtime.block_on(link.exchange(reporter, &items)).unwrap();
        // The time at which the script ran is one of these; only at the end of a period it matters which.
        let expected = (before..=time_ms(&mut times)).find_map(|now| {
            let mut next = model.clone();
            let report = ModelReport { instance: instance.clone(), sequence, known, now };
            let expected = next.divide(&report, &items);
            (expected == (reply.instances, reply.values.clone())).then_some(next)
        });
        model = expected.unwrap_or_else(|| panic!("{reporter:?} {items:?} gave {reply:?}, but {model:?}"));
    }
}

/// The next instance waited ten seconds for one that had left.
#[test]
fn an_instance_that_has_left_is_not_waited_for() {
    let Some(server) = RedisServer::start() else { return };
    let mut link = RedisLink::new(redis::Client::open(server.url()).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut exchange = |instance: &str, item: ScriptItem| {
        let reporter = Reporter { instance, sequence: 1, known: 0 };
        runtime.block_on(link.exchange(reporter, &[item])).unwrap()
    };
    exchange("first", leave_instance());
    let rate = ScriptItem { key: "rate:1".to_owned(), operation: "rate", arguments: [4_000, 4_000, 0, 0] };
    let reply = exchange("second", rate);
    assert_eq!((reply.instances, &reply.values[..]), (1, &[(4_000, 0)][..]));
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
    let start = || LimitSharing::start(RedisUrl::parse(&server.url()).unwrap()).unwrap();
    let (one, two) = (start(), start());
    wait_until("both know of each other", || one.limits().status().instances == 2);
    let limits: Vec<CreditLimits> = [&one, &two]
        .map(|sharing| {
            let limits = CreditLimits::new(Some(10_000), Some(50_000_000));
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

#[test]
fn an_instance_starts_without_redis_and_uses_little_of_each_limit() {
    let sharing = LimitSharing::start(RedisUrl::parse("redis://127.0.0.1:1/0").unwrap()).unwrap();
    let limits = CreditLimits::new(Some(4_000), Some(40_000));
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
    let sharing = LimitSharing::start(RedisUrl::parse(&url).unwrap()).unwrap();
    wait_until("two connections have failed", || sharing.limits().status().failures >= 2);
}
