//! Stopping: not ready at once, answers finish, idle connections are closed politely.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use testkit::http::{TestConnection, get};

use crate::demo::{metric, until};
use crate::gateway_under_test::{Gateway, call, chain_id};

#[test]
fn answers_under_way_are_finished_and_idle_connections_closed() {
    let mut gateway = Gateway::with("drain_timeout_ms = 60000", "");
    let (public, operator) = (gateway.public, gateway.operator);
    let mut idle = TestConnection::connect(public);
    assert_eq!(idle.post("/v3/demo", chain_id("1")).status, 200);
    let mut silent = TestConnection::connect(public);
    let slow = thread::spawn(move || {
        let mut wire = TestConnection::connect(public);
        let reply = wire.post("/v3/demo", call("eth_call", r#"[{"data":"0x06"}]"#));
        (reply, wire.is_closed())
    });
    until("it is under way", || metric(operator, "chaingate_calls_in_flight") == 1.0);
    let started = Instant::now();
    let stopping = thread::spawn(move || gateway.stop());
    until("it is not ready", || get(operator, "/ready").status == 503);
    let (reply, closed) = slow.join().unwrap();
    assert_eq!(reply.json()["result"], "0x06");
    assert_eq!((reply.header("connection"), closed), (Some("close"), true));
    assert!(idle.is_closed() && silent.is_closed());
    stopping.join().unwrap();
    assert!(started.elapsed() < Duration::from_secs(30), "nothing had to be waited for");
    assert!(TcpStream::connect(public).is_err(), "nobody is let in any more");
}

// Connections were closed and refused in the same moment in which `/ready` turned 503, before any load balancer could know.
#[test]
fn everything_is_still_answered_for_the_delay_and_told_to_go_elsewhere() {
    let mut gateway = Gateway::with("drain_delay_ms = 5000\ndrain_timeout_ms = 60000", "");
    let (public, operator) = (gateway.public, gateway.operator);
    let (mut idle, mut unused) = (TestConnection::connect(public), TestConnection::connect(public));
    assert_eq!(idle.post("/v3/demo", chain_id("1")).status, 200);
    let stopping = thread::spawn(move || gateway.stop());
    until("it is not ready", || get(operator, "/ready").status == 503);
    for wire in [&mut idle, &mut unused, &mut TestConnection::connect(public)] {
        let reply = wire.post("/v3/demo", chain_id("1"));
        assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
        assert!(wire.is_closed());
    }
    let mut waits = TestConnection::connect(public);
    assert!(waits.is_closed(), "closed at the end, without a reset");
    stopping.join().unwrap();
    assert!(TcpStream::connect(public).is_err(), "nobody is let in any more");
}

#[test]
fn requests_that_were_sent_ahead_are_answered_before_the_connection_ends() {
    let mut gateway = Gateway::with("drain_delay_ms = 5000\ndrain_timeout_ms = 60000", "");
    let (public, operator) = (gateway.public, gateway.operator);
    let mut wire = TestConnection::connect(public);
    let slow = testkit::http::request("/v3/demo", "", call("eth_call", r#"[{"data":"0x06"}]"#).as_bytes());
    let next = |id: &str| testkit::http::request("/v3/demo", "", chain_id(id).as_bytes());
    wire.send([slow, next("2"), next("3")].concat());
    let stopping = thread::spawn(move || gateway.stop());
    until("it is not ready", || get(operator, "/ready").status == 503);
    let replies: Vec<_> = std::iter::from_fn(|| wire.next_reply()).collect();
    assert_eq!(replies.len(), 3);
    assert_eq!((replies[2].status, replies[2].header("connection")), (200, Some("close")));
    stopping.join().unwrap();
}

/// Longer than a busy machine needs to stop.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn what_takes_too_long_is_cut_off() {
    let mut gateway =
        Gateway::with(&format!("drain_timeout_ms = 200\ncall_timeout_ms = {}", CALL_TIMEOUT.as_millis()), "");
    let (public, operator) = (gateway.public, gateway.operator);
    let hanging = thread::spawn(move || {
        let mut wire = TestConnection::connect(public);
        wire.send(testkit::http::request(
            "/v3/demo",
            "",
            call("eth_call", r#"[{"data":"0x02"}]"#).as_bytes(),
        ));
        wire.next_reply().is_none()
    });
    until("it is under way", || metric(operator, "chaingate_calls_in_flight") == 1.0);
    // The call would go on for as long as a call may take.
    let started = Instant::now();
    gateway.stop();
    assert!(started.elapsed() < CALL_TIMEOUT);
    assert!(hanging.join().unwrap());
}
