//! Callers that take their time: each is let go, and told so where there is something to tell.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use testkit::http::TestConnection;

use crate::demo::{metric, until};
use crate::gateway_under_test::{Gateway, call, chain_id, state};

/// Each story shortens one timeout. The defaults of the others do not pass, however busy the machine is.
const SHORT_MS: u64 = 300;

/// Long enough for a busy machine, and shorter than any default.
const SOON: Duration = Duration::from_secs(6);

fn short(timeout: &str) -> String {
    format!("{timeout} = {SHORT_MS}")
}

/// Waits until the other side closes. Whether that was when a short timeout had passed that began after `before`.
fn closes_in_time(wire: &mut TestConnection, before: Instant) -> bool {
    wire.closed_after();
    (Duration::from_millis(SHORT_MS)..SOON).contains(&before.elapsed())
}

#[test]
fn a_silent_connection_is_closed() {
    let gateway = Gateway::with(&short("first_byte_timeout_ms"), "");
    let before = Instant::now();
    let mut wire = TestConnection::connect(gateway.public);
    assert!(closes_in_time(&mut wire, before));
    assert!(wire.is_closed(), "nothing is said to who says nothing");
}

#[test]
fn a_head_that_trickles_in_is_408() {
    let gateway = Gateway::with(&short("header_timeout_ms"), "");
    for beginning in ["P", "POST /v3/demo HT", "POST /v3/demo HTTP/1.1\r\nhost: x\r\nx-slow: "] {
        let mut wire = TestConnection::connect(gateway.public);
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
    let gateway = Gateway::with(&short("body_timeout_ms"), "");
    for framing in ["content-length: 1000", "transfer-encoding: chunked"] {
        let mut wire = TestConnection::connect(gateway.public);
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

/// A blank line in a packet of its own, as some callers send it after a body, began a head, and the caller got a 408 that it
/// had not asked for.
#[test]
fn a_connection_is_idle_after_a_blank_line_behind_a_body() {
    let gateway = Gateway::with(&short("keep_alive_timeout_ms"), "");
    for pieces in [&["\r\n"][..], &["\r", "\n"]] {
        let mut wire = TestConnection::connect(gateway.public);
        assert_eq!(wire.post("/v3/demo", chain_id("1")).status, 200);
        for piece in pieces {
            wire.send(piece);
        }
        assert!(wire.is_closed(), "it is closed without a word: {pieces:?}");
    }
    let mut wire = TestConnection::connect(gateway.public);
    wire.send("\r\n");
    assert_eq!(wire.post("/v3/demo", chain_id("1")).status, 200, "a request may follow");
}

#[test]
fn a_second_request_has_the_same_time_as_the_first() {
    let gateway = Gateway::with("header_timeout_ms = 2000", "");
    let mut wire = TestConnection::connect(gateway.public);
    assert_eq!(wire.post("/v3/demo", chain_id("1")).status, 200);
    wire.send("POST /v3/demo HTTP/1.1\r\n");
    assert_eq!(wire.reply().status, 408);
}

#[test]
fn the_time_before_a_request_is_not_counted_as_part_of_it() {
    let gateway = Gateway::with("header_timeout_ms = 2000\nbody_timeout_ms = 2000", "");
    let mut wire = TestConnection::connect(gateway.public);
    let body = chain_id("1");
    for _ in 0..2 {
        thread::sleep(Duration::from_millis(2_200));
        for piece in [
            "POST /v3/demo HTTP/1.1\r\nhost: x\r\n",
            &format!("content-length: {}\r\n\r\n", body.len()),
            &body,
        ] {
            wire.send(piece);
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(wire.reply().status, 200);
    }
}

#[test]
fn our_own_slowness_is_not_the_callers() {
    let gateway = Gateway::with("header_timeout_ms = 1400\nbody_timeout_ms = 1400", "");
    for cut in [20, chain_id("2").len() + 20] {
        let mut wire = TestConnection::connect(gateway.public);
        let (slow, next) = (call("eth_call", r#"[{"data":"0x06"}]"#), chain_id("2"));
        let next = testkit::http::request("/v3/demo", "", next.as_bytes());
        let (beginning, rest) = next.split_at(next.len() - cut);
        wire.send([&testkit::http::request("/v3/demo", "", slow.as_bytes()), beginning].concat());
        assert_eq!(wire.reply().json()["result"], "0x06");
        assert_eq!(wire.send(rest).reply().json()["id"], 2, "all but the last {cut} bytes came early");
    }
}

#[test]
fn a_line_behind_a_body_is_no_request() {
    let gateway = Gateway::with(&short("keep_alive_timeout_ms"), "");
    let mut wire = TestConnection::connect(gateway.public);
    wire.send([&testkit::http::request("/v3/demo", "", chain_id("1").as_bytes())[..], b"\r\n"].concat());
    assert_eq!(wire.reply().status, 200);
    wire.closed_after();
    assert!(wire.next_reply().is_none(), "it idled, and nothing was said about that");
}

// A caller that ends its side after the request (`nc -N`, some HTTP/1.0 clients) got the reply to a cheap call, but a call
// that went to the pool was given up in the same moment.
#[test]
fn a_half_closed_caller_gets_the_reply_to_a_slow_call_as_to_a_quick_one() {
    let gateway = Gateway::start();
    for (question, answer) in [(chain_id("1"), "0x539"), (call("eth_call", r#"[{"data":"0x04"}]"#), "0x04")] {
        let mut wire = TestConnection::connect(gateway.public);
        wire.send(testkit::http::request("/v3/demo", "", question.as_bytes())).hang_up();
        assert_eq!(wire.reply().json()["result"], answer);
        assert!(wire.is_closed());
    }
}

#[tokio::test]
async fn what_a_caller_sends_ahead_is_not_piled_up() {
    use tokio::io::AsyncWriteExt;
    const PIPE: usize = 4 << 10;
    let state = state("");
    let (mut near, far) = tokio::io::duplex(PIPE);
    tokio::spawn(gateway::serve_stream(state, far));
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
    const TIMEOUT: Duration = Duration::from_secs(4);
    let gateway = Gateway::with("keep_alive_timeout_ms = 4000", "");
    let mut wire = TestConnection::connect(gateway.public);
    let before = Instant::now();
    assert_eq!(wire.post("/v3/demo", chain_id("1")).status, 200);
    wire.closed_after();
    let time = before.elapsed();
    assert!((TIMEOUT..2 * TIMEOUT).contains(&time), "{time:?}");
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let gateway = Gateway::with(&short("keep_alive_timeout_ms"), "");
    let mut wire = TestConnection::connect(gateway.public);
    let before = Instant::now();
    assert_eq!(wire.post("/v3/demo", chain_id("1")).status, 200);
    assert!(closes_in_time(&mut wire, before));
    assert!(wire.next_reply().is_none());
}

#[test]
fn a_slow_answer_is_no_idling() {
    let limits = "keep_alive_timeout_ms = 1400\nbody_timeout_ms = 1400\nfirst_byte_timeout_ms = 1400";
    let gateway = Gateway::with(limits, "");
    let mut wire = TestConnection::connect(gateway.public);
    assert_eq!(wire.post("/v3/demo", call("eth_call", r#"[{"data":"0x06"}]"#)).json()["result"], "0x06");
}

#[test]
fn who_does_not_read_is_cut_off() {
    let limits = format!("{}\nbatch_reply_bytes_max = 100_000_000", short("write_timeout_ms"));
    let gateway = Gateway::with(&limits, "");
    let mut wire = TestConnection::connect(gateway.public);
    let code = call("eth_getCode", r#"["0x00000000000000000000000000000000000000aa"]"#);
    let batch = format!("[{}]", vec![code; 900].join(","));
    wire.send(testkit::http::request("/v3/demo", "", batch.as_bytes()));
    until("it is let in", || metric(gateway.operator, "chaingate_connections_total") == 1.0);
    until("it is cut off", || metric(gateway.operator, "chaingate_connections_open") == 0.0);
    assert!(wire.next_reply().is_none(), "29 MB were not sent to someone who does not read");
}

#[tokio::test]
async fn who_reads_less_than_the_minimum_rate_is_cut_off_too() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let write_timeout = short("write_timeout_ms");
    let state = state(&format!(
        "{write_timeout}\nread_rate_min_bytes = 200_000\nbatch_reply_bytes_max = 100_000_000"
    ));
    let (mut near, far) = tokio::io::duplex(4 << 10);
    let serving = tokio::spawn(gateway::serve_stream(state, far));
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
    let state = state("write_timeout_ms = 2000");
    let (mut near, far) = tokio::io::duplex(4 << 10);
    tokio::spawn(gateway::serve_stream(state, far));
    let code = call("eth_getCode", r#"["0x00000000000000000000000000000000000000aa"]"#);
    let batch = format!("[{}]", vec![code; 100].join(","));
    near.write_all(&testkit::http::request("/v3/demo", "connection: close\r\n", batch.as_bytes()))
        .await
        .unwrap();
    let mut reply = Vec::new();
    while near.read_buf(&mut reply).await.unwrap() > 0 {
        // 4 KB every five milliseconds, which takes twice the time for writes.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(reply.len() > 3 << 20 && reply.ends_with(b"}]"), "{}", reply.len());
}

/// Reads a reply at a steady rate, as a slow connection does, until the other side closes.
fn read_steadily(address: SocketAddr, request: &[u8], bytes_per_second: usize) -> Vec<u8> {
    const READS_PER_SECOND: usize = 50;
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    // As little as the kernel takes, or it would read ahead megabytes.
    socket.set_recv_buffer_size(16 << 10).unwrap();
    socket.connect(&address.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request).unwrap();
    let (mut reply, started) = (Vec::new(), Instant::now());
    let mut piece = vec![0; bytes_per_second / READS_PER_SECOND];
    // A connection that is cut off ends with an error or early; both show in what was read.
    loop {
        match stream.read(&mut piece) {
            Ok(len @ 1..) => reply.extend_from_slice(&piece[..len]),
            // The test was stopped and goes on.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => break,
        }
        let due = Duration::from_secs_f64(reply.len() as f64 / bytes_per_second as f64);
        thread::sleep(due.saturating_sub(started.elapsed()));
    }
    reply
}

fn large_batch(headers: &str) -> Vec<u8> {
    let code = call("eth_getCode", r#"["0x00000000000000000000000000000000000000aa"]"#);
    let batch = format!("[{}]", vec![code; 100].join(","));
    testkit::http::request("/v3/demo", headers, batch.as_bytes())
}

// An answer of 6.3 MB that was read at a steady 25 to 100 KB a second was cut off after 4 MB: the kernel had taken megabytes
// of it at once, and then nothing for longer than the write timeout, although the caller read all the time.
#[test]
fn a_slow_but_steady_reader_gets_all_of_a_large_answer() {
    let gateway = Gateway::with("write_timeout_ms = 1000\nread_rate_min_bytes = 100_000", "");
    let reply = read_steadily(gateway.public, &large_batch("connection: close\r\n"), 600_000);
    assert!(reply.len() > 3 << 20 && reply.ends_with(b"}]"), "{}", reply.len());
}

#[test]
fn a_reader_below_the_minimum_rate_is_cut_off() {
    let gateway = Gateway::with("write_timeout_ms = 1000\nread_rate_min_bytes = 600_000", "");
    let reply = read_steadily(gateway.public, &large_batch("connection: close\r\n"), 50_000);
    assert!(reply.len() < 2 << 20, "{}", reply.len());
}

// A timeout of 2^64 - 1 ms overflowed when it was added to the time, and the connection panicked.
#[test]
fn timeouts_that_never_pass_are_allowed() {
    let mut config = crate::gateway_under_test::config("", "", "");
    let listen = &mut config.limits.listen;
    for time in [
        &mut listen.first_byte_timeout,
        &mut listen.header_timeout,
        &mut listen.body_timeout,
        &mut listen.write_timeout,
        &mut listen.keep_alive_timeout,
    ] {
        *time = Duration::MAX;
    }
    let gateway = Gateway::configured(&config);
    let mut wire = TestConnection::connect(gateway.public);
    let request = testkit::http::request("/v3/demo", "", chain_id("1").as_bytes());
    for cut in [0, 10, request.len() - 5] {
        wire.send(&request[..cut]);
        thread::sleep(Duration::from_millis(20));
        assert_eq!(wire.send(&request[cut..]).reply().status, 200);
    }
}

#[test]
fn honest_callers_do_not_notice_the_others() {
    let limits = "first_byte_timeout_ms = 3000\nheader_timeout_ms = 3000\nbody_timeout_ms = 3000";
    let gateway = Gateway::with(limits, "");
    let mut hostile: Vec<_> = (0..200).map(|_| TestConnection::connect(gateway.public)).collect();
    for (index, wire) in hostile.iter_mut().enumerate() {
        wire.send(["", "P", "POST /v3/demo HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n"][index % 3]);
    }
    for _ in 0..50 {
        assert_eq!(gateway.post(chain_id("1")).status, 200);
    }
    for mut wire in hostile {
        wire.closed_after();
    }
}
