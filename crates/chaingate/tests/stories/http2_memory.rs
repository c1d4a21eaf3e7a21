//! Small bodies and replies on HTTP/2, where a hundred requests share a connection. None of them was charged for, so a
//! thousand connections could hold 1.6 GB beside the limit.

use testkit::http::post;
use testkit::http2::{DATA, Frame, FrameConnection, HEADERS, INITIAL_WINDOW_SIZE, WINDOW_UPDATE};

use crate::demo::{metric, until};
use crate::gateway_under_test::{Gateway, call, chain_id};

const MEMORY_BYTES_MAX: u64 = 400_000;

/// The share of one account: half of the limit, and a part of its last request.
const SHARE_BYTES: f64 = 210_000.0;

const CONNECTIONS: usize = 4;

/// Requests on each connection.
const STREAMS: u32 = 80;

const SMALL_BYTES: usize = 2_000;

/// A gateway where callers that are slow are not disconnected during the test.
fn start() -> Gateway {
    let limits =
        format!("memory_bytes_max = {MEMORY_BYTES_MAX}\nbody_timeout_ms = 120000\nwrite_timeout_ms = 120000");
    Gateway::with(&limits, "[[key]]\nkey = \"other\"\naccount = \"other\"")
}

/// A connection on which the gateway may send so many bytes of each reply.
fn connect(gateway: &Gateway, window_bytes: u32) -> FrameConnection {
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&Frame::setting(INITIAL_WINDOW_SIZE, window_bytes));
    assert!(wire.next_of(WINDOW_UPDATE).is_some(), "bodies of all streams may be sent");
    wire
}

/// A call whose result is this data, which begins with a byte that says what happens to the call.
fn echo(first: u8, bytes: usize) -> String {
    call("eth_call", &format!(r#"[{{"data":"0x{first:02x}{}"}}]"#, "00".repeat(bytes)))
}

fn held(gateway: &Gateway) -> f64 {
    metric(gateway.operator, "chaingate_memory_bytes")
}

fn refused(gateway: &Gateway) -> f64 {
    metric(gateway.operator, "chaingate_memory_refused_total")
}

/// Waits until the account has no memory left, and looks at what others have.
fn assert_bounded(gateway: &Gateway) {
    until("what does not fit is refused", || refused(gateway) >= 100.0);
    let held = held(gateway);
    assert!((SHARE_BYTES / 2.0..=SHARE_BYTES).contains(&held), "{held} bytes are held");
    assert_eq!(post(gateway.public, "/v3/other", echo(0, 20_000)).status, 200, "another account");
    assert_eq!(gateway.post(chain_id("1")).status, 200, "a small call on a connection of its own");
}

#[test]
fn many_small_bodies_that_do_not_end_are_charged_and_refused_beyond_the_limit() {
    let gateway = start();
    let wires: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut wire = connect(&gateway, 1 << 16);
            for stream in (0..STREAMS).map(|index| 2 * index + 1) {
                let unfinished = Frame::new(DATA, 0, stream, vec![b' '; SMALL_BYTES]);
                wire.send(&Frame::post(stream, "/v3/demo")).send(&unfinished);
            }
            wire
        })
        .collect();
    assert_bounded(&gateway);
    drop(wires);
    until("nothing is held any more", || held(&gateway) == 0.0);
}

#[test]
fn many_small_replies_that_nobody_reads_are_charged_and_refused_beyond_the_limit() {
    let gateway = start();
    let wires: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut wire = connect(&gateway, 0);
            for stream in (0..STREAMS).map(|index| 2 * index + 1) {
                wire.post(stream, "/v3/demo", echo(0, SMALL_BYTES));
            }
            wire
        })
        .collect();
    assert_bounded(&gateway);
    drop(wires);
    until("nothing is held any more", || held(&gateway) == 0.0);
}

/// The data of a revert has up to several megabytes, and error replies were not charged for at all.
#[test]
fn errors_that_nobody_reads_are_charged_by_their_size() {
    const REVERT_BYTES: usize = 25_000;
    const FRAME_BYTES_MAX: usize = 16 << 10;
    let gateway = start();
    let mut wire = connect(&gateway, 0);
    wire.send(&Frame::post(1, "/v3/demo"));
    for piece in echo(1, REVERT_BYTES).as_bytes().chunks(FRAME_BYTES_MAX) {
        wire.send(&Frame::new(DATA, 0, 1, piece));
    }
    wire.send(&Frame::data(1, ""));
    assert!(wire.next_of(HEADERS).is_some(), "the reply is made");
    until("it is charged", || held(&gateway) >= 2.0 * REVERT_BYTES as f64);
    drop(wire);
    until("nothing is held any more", || held(&gateway) == 0.0);
}

/// Errors counted towards no limit, so batches of reverts took as much memory as they liked.
#[test]
fn errors_count_towards_the_limit_of_their_batch() {
    for revert_bytes in [30_000, 1_500] {
        let text_bytes = 2 * revert_bytes;
        let gateway = Gateway::with(&format!("batch_reply_bytes_max = {}", 5 * text_bytes / 2), "");
        let reply = gateway.post(format!("[{}]", vec![echo(1, revert_bytes); 4].join(",")));
        let reply = reply.json();
        let errors: Vec<_> =
            reply.as_array().unwrap().iter().map(|element| &element["error"]["message"]).collect();
        let (reverted, too_large) = ("execution reverted", "response too large");
        assert_eq!(errors, [reverted, reverted, too_large, too_large], "{revert_bytes}");
    }
}

#[test]
fn ids_count_towards_the_limit_of_their_batch() {
    let gateway = Gateway::with("batch_reply_bytes_max = 2000", "");
    let call = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"eth_chainId"}}"#, "i".repeat(900));
    let reply = gateway.post(format!("[{}]", vec![call; 3].join(",")));
    assert_eq!(reply.json()[1]["result"], "0x539");
    assert_eq!(reply.json()[2]["error"]["message"], "response too large");
}

/// The null in place of a block that is not there counted towards no limit, and neither did the id of its call.
#[test]
fn absent_blocks_count_towards_the_limit_of_their_batch() {
    let gateway = Gateway::with("batch_reply_bytes_max = 2000", "");
    let (id, method) = ("i".repeat(900), "eth_getBlockByNumber");
    let call = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":["0xffff",false]}}"#);
    let reply = gateway.post(format!("[{}]", vec![call; 3].join(","))).json();
    assert_eq!(
        (&reply[1]["error"], &reply[1]["result"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    assert_eq!(reply[2]["error"]["message"], "response too large");
}

/// The head of a preflight whose body does not come.
fn unfinished_preflight(stream: u32) -> Frame {
    let mut frame = Frame::post(stream, "/v3/demo");
    // A literal `:method` in place of the indexed `POST`.
    frame.payload.splice(..1, *b"\x02\x07OPTIONS");
    frame
}

/// Requests of an account without memory, and preflights, were held for a second to wait for their bodies although nobody is
/// charged for them: 1,000 connections could hold 1 GB beside the limit.
#[test]
fn requests_that_nobody_is_charged_for_do_not_wait_for_their_bodies() {
    let gateway = Gateway::with("memory_bytes_max = 1\nbody_timeout_ms = 120000", "");
    let mut wire = connect(&gateway, 1 << 16);
    // As many as a connection may hold without a charge.
    let held = [1, 3, 5].map(|stream| Frame::post(stream, "/v3/demo"));
    let (waits, refused) = (Frame::post(7, "/v3/nobody"), Frame::post(9, "/v3/demo"));
    let frames = held.into_iter().chain([waits, refused, unfinished_preflight(11)]);
    wire.send_bytes(&frames.flat_map(|frame| frame.bytes()).collect::<Vec<_>>());
    let mut answered = [(); 3].map(|()| wire.next_of(HEADERS).unwrap().stream);
    answered[..2].sort_unstable();
    assert_eq!(answered, [9, 11, 7], "only the refusal of an unknown key waits");
}

/// A small call that has its connection to itself is not refused for lack of memory.
#[test]
fn a_small_call_alone_on_its_connection_is_not_charged() {
    let gateway = Gateway::with("memory_bytes_max = 1", "");
    let mut wire = connect(&gateway, 1 << 16);
    for stream in [1, 3, 5] {
        wire.post(stream, "/v3/demo", echo(0, SMALL_BYTES));
        let reply = wire.body(stream).unwrap();
        assert!(reply.starts_with(br#"{"jsonrpc":"2.0","id":1,"result":"0x00"#));
    }
    assert_eq!((held(&gateway), refused(&gateway)), (0.0, 0.0));
}
