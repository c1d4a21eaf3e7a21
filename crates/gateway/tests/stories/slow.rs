//! Callers that take their time: each is let go, and told so where there is something to tell.

use std::thread;
use std::time::{Duration, Instant};

use testkit::http::Wire;

use crate::gateway_under_test::{Gateway, call, chain_id, edge};

const LIMITS: &str = "first_byte_timeout_ms = 300\nheader_timeout_ms = 300\nbody_timeout_ms = 300\nkeep_alive_timeout_ms = 300\nwrite_timeout_ms = 300";

fn within(time: Duration) -> bool {
    time > Duration::from_millis(100) && time < Duration::from_millis(1_500)
}

#[test]
fn a_silent_connection_is_closed() {
    let gateway = Gateway::with(LIMITS, "");
    let mut wire = Wire::connect(gateway.public);
    assert!(within(wire.closed_after()));
    assert!(wire.is_closed(), "nothing is said to who says nothing");
}

#[test]
fn a_head_that_trickles_in_is_408() {
    let gateway = Gateway::with(LIMITS, "");
    for beginning in ["P", "POST /v3/demo HT", "POST /v3/demo HTTP/1.1\r\nhost: x\r\nx-slow: "] {
        let mut wire = Wire::connect(gateway.public);
        let started = Instant::now();
        wire.send(beginning);
        while started.elapsed() < Duration::from_millis(500) {
            thread::sleep(Duration::from_millis(50));
            wire.send("y");
        }
        let reply = wire.reply();
        assert_eq!((reply.status, reply.header("connection")), (408, Some("close")), "{beginning:?}");
        assert!(wire.is_closed());
    }
}

#[test]
fn a_body_that_trickles_in_is_408() {
    let gateway = Gateway::with(LIMITS, "");
    for framing in ["content-length: 1000", "transfer-encoding: chunked"] {
        let mut wire = Wire::connect(gateway.public);
        wire.send(format!("POST /v3/demo HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n"));
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(500) {
            thread::sleep(Duration::from_millis(50));
            wire.send(if framing.starts_with('c') { " " } else { "1\r\n \r\n" });
        }
        assert_eq!(wire.reply().status, 408, "{framing}");
        assert!(wire.is_closed());
    }
}

#[test]
fn a_second_request_has_the_same_time_as_the_first() {
    let gateway = Gateway::with(LIMITS, "");
    let mut wire = Wire::connect(gateway.public);
    assert_eq!(wire.post("/v3/demo", chain_id("1")).status, 200);
    wire.send("POST /v3/demo HTTP/1.1\r\n");
    assert_eq!(wire.reply().status, 408);
}

#[test]
fn the_time_before_a_request_is_not_counted_as_part_of_it() {
    let gateway = Gateway::with("header_timeout_ms = 300\nbody_timeout_ms = 300", "");
    let mut wire = Wire::connect(gateway.public);
    let body = chain_id("1");
    for _ in 0..2 {
        thread::sleep(Duration::from_millis(500));
        for piece in ["POST /v3/demo HTTP/1.1\r\n", &format!("content-length: {}\r\n\r\n", body.len()), &body]
        {
            wire.send(piece);
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(wire.reply().status, 200);
    }
}

#[test]
fn our_own_slowness_is_not_the_callers() {
    let gateway = Gateway::with("header_timeout_ms = 100\nbody_timeout_ms = 100", "");
    for cut in [20, chain_id("2").len() + 20] {
        let mut wire = Wire::connect(gateway.public);
        let (slow, next) = (call("eth_call", r#"[{"data":"0x04"}]"#), chain_id("2"));
        let next = testkit::http::request("/v3/demo", "", next.as_bytes());
        let (beginning, rest) = next.split_at(next.len() - cut);
        wire.send([&testkit::http::request("/v3/demo", "", slow.as_bytes()), beginning].concat());
        assert_eq!(wire.reply().json()["result"], "0x04");
        assert_eq!(wire.send(rest).reply().json()["id"], 2, "all but the last {cut} bytes came early");
    }
}

#[test]
fn a_line_behind_a_body_is_no_request() {
    let gateway = Gateway::with(LIMITS, "");
    let mut wire = Wire::connect(gateway.public);
    wire.send([&testkit::http::request("/v3/demo", "", chain_id("1").as_bytes())[..], b"\r\n"].concat());
    assert_eq!(wire.reply().status, 200);
    wire.closed_after();
    assert!(wire.next_reply().is_none(), "it idled, and nothing was said about that");
}

#[test]
fn who_hangs_up_in_the_middle_is_told_nothing() {
    let gateway = Gateway::start();
    let mut wire = Wire::connect(gateway.public);
    let slow = call("eth_call", r#"[{"data":"0x04"}]"#);
    wire.send(testkit::http::request("/v3/demo", "", slow.as_bytes())).hang_up();
    assert!(wire.is_closed());
}

#[tokio::test]
async fn what_a_caller_sends_ahead_is_not_piled_up() {
    use tokio::io::AsyncWriteExt;
    const PIPE: usize = 4 << 10;
    let edge = edge("");
    let (mut near, far) = tokio::io::duplex(PIPE);
    tokio::spawn(gateway::listen::serve_stream(edge, far));
    let slow = call("eth_call", r#"[{"data":"0x04"}]"#);
    let slow = testkit::http::request("/v3/demo", "", slow.as_bytes());
    let mut sent = 0;
    while tokio::time::timeout(Duration::from_millis(50), near.write_all(&slow)).await.is_ok() {
        sent += slow.len();
        assert!(sent < 100 << 10, "it is all read, and nothing is answered");
    }
}

#[test]
fn an_idle_connection_has_its_time_once() {
    let gateway = Gateway::with("keep_alive_timeout_ms = 1000", "");
    let mut wire = Wire::connect(gateway.public);
    assert_eq!(wire.post("/v3/demo", chain_id("1")).status, 200);
    let time = wire.closed_after();
    assert!(time > Duration::from_millis(900) && time < Duration::from_millis(1_900), "{time:?}");
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let gateway = Gateway::with(LIMITS, "");
    let mut wire = Wire::connect(gateway.public);
    assert_eq!(wire.post("/v3/demo", chain_id("1")).status, 200);
    assert!(within(wire.closed_after()));
    assert!(wire.next_reply().is_none());
}

#[test]
fn a_slow_answer_is_no_idling() {
    let gateway =
        Gateway::with("keep_alive_timeout_ms = 100\nbody_timeout_ms = 100\nfirst_byte_timeout_ms = 100", "");
    let mut wire = Wire::connect(gateway.public);
    assert_eq!(wire.post("/v3/demo", call("eth_call", r#"[{"data":"0x04"}]"#)).json()["result"], "0x04");
}

#[test]
fn who_does_not_read_is_cut_off() {
    let gateway = Gateway::with(&format!("{LIMITS}\nbatch_reply_bytes_max = 100_000_000"), "");
    let mut wire = Wire::connect(gateway.public);
    let code = call("eth_getCode", r#"["0x00000000000000000000000000000000000000aa"]"#);
    let batch = format!("[{}]", vec![code; 900].join(","));
    wire.send(testkit::http::request("/v3/demo", "", batch.as_bytes()));
    thread::sleep(Duration::from_millis(1_500));
    assert!(wire.next_reply().is_none(), "29 MB were not sent to someone who does not read");
}

#[tokio::test]
async fn who_reads_a_little_now_and_then_is_cut_off_too() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let edge = edge(&format!("{LIMITS}\nbatch_reply_bytes_max = 100_000_000"));
    let (mut near, far) = tokio::io::duplex(4 << 10);
    let serving = tokio::spawn(gateway::listen::serve_stream(edge, far));
    let code = call("eth_getCode", r#"["0x00000000000000000000000000000000000000aa"]"#);
    let batch = format!("[{}]", vec![code; 100].join(","));
    near.write_all(&testkit::http::request("/v3/demo", "", batch.as_bytes())).await.unwrap();
    let mut read = 0;
    let mut piece = [0; 1 << 10];
    while let Ok(len @ 1..) = near.read(&mut piece).await {
        read += len;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    serving.await.unwrap();
    assert!(read < 1 << 20, "3 MB were sent to someone who reads 50 KB a second: {read}");
}

#[tokio::test]
async fn who_reads_steadily_gets_it_all_however_long_it_takes() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let edge = edge("write_timeout_ms = 1000");
    let (mut near, far) = tokio::io::duplex(4 << 10);
    tokio::spawn(gateway::listen::serve_stream(edge, far));
    let code = call("eth_getCode", r#"["0x00000000000000000000000000000000000000aa"]"#);
    let batch = format!("[{}]", vec![code; 100].join(","));
    near.write_all(&testkit::http::request("/v3/demo", "connection: close\r\n", batch.as_bytes()))
        .await
        .unwrap();
    let mut reply = Vec::new();
    while near.read_buf(&mut reply).await.unwrap() > 0 {
        // 4 KB every three milliseconds, which takes more than twice the time for writes.
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    assert!(reply.len() > 3 << 20 && reply.ends_with(b"}]"), "{}", reply.len());
}

#[test]
fn honest_callers_do_not_notice_the_others() {
    let gateway = Gateway::with(LIMITS, "");
    let mut hostile: Vec<_> = (0..200).map(|_| Wire::connect(gateway.public)).collect();
    for (index, wire) in hostile.iter_mut().enumerate() {
        wire.send(["", "P", "POST /v3/demo HTTP/1.1\r\ncontent-length: 9\r\n\r\n"][index % 3]);
    }
    for _ in 0..50 {
        assert_eq!(gateway.post(chain_id("1")).status, 200);
    }
    for mut wire in hostile {
        wire.closed_after();
    }
}
