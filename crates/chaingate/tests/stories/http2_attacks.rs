//! HTTP/2 as no honest client speaks it, frame by frame: silence, callers that do not read, floods.

use std::thread;
use std::time::Duration;

use testkit::http::TestConnection;
use testkit::http2::{
    ACK, CONTINUATION, DATA, END_HEADERS, Frame, FrameConnection, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, PING,
    PREFACE, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE, head,
};

use crate::demo::{metric, until};
use crate::gateway_under_test::{Gateway, call, chain_id};

/// More than any window in these tests.
const WINDOW_BYTES: u32 = 1 << 20;

fn window(bytes: u32) -> Frame {
    Frame::setting(INITIAL_WINDOW_SIZE, bytes)
}

/// Its reply has more than 3 MB.
fn large_batch() -> String {
    let code = call("eth_getCode", r#"["0x00000000000000000000000000000000000000aa"]"#);
    format!("[{}]", vec![code; 100].join(","))
}

// With an initial window of 0 and pings that were answered, replies were held for ever: the write timeout watched the
// socket, which took everything there was to send.
#[test]
fn a_caller_that_takes_nothing_of_its_replies_has_its_streams_reset() {
    // Long enough that all three replies are seen waiting.
    let gateway = Gateway::with("write_timeout_ms = 5000", "");
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&window(0));
    for stream in [1, 3, 5] {
        wire.post(stream, "/v3/demo", large_batch());
    }
    let held = || metric(gateway.operator, "chaingate_memory_bytes");
    until("replies wait for the caller", || held() > 9e6);
    let mut reset = Vec::new();
    while reset.len() < 3 {
        wire.send(&Frame::ping());
        let frame = wire.next_frame().expect("the connection stays open");
        assert_ne!(frame.kind, DATA);
        if frame.kind == RST_STREAM {
            reset.push(frame.stream);
        }
        thread::sleep(Duration::from_millis(5));
    }
    reset.sort_unstable();
    assert_eq!(reset, [1, 3, 5]);
    until("their memory is free", || held() == 0.0);
    wire.send(&window(WINDOW_BYTES)).post(7, "/v3/demo", chain_id("1"));
    assert_eq!(wire.body(7).as_deref(), Some(&br#"{"jsonrpc":"2.0","id":1,"result":"0x539"}"#[..]));
}

#[test]
fn a_stream_that_is_not_read_is_reset_while_others_go_on() {
    let gateway = Gateway::with("write_timeout_ms = 2000\nread_rate_min_bytes = 100_000", "");
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&window(0)).send(&Frame::window_update(0, WINDOW_BYTES));
    wire.post(1, "/v3/demo", large_batch());
    let (mut next, mut replies) = (3, 0);
    loop {
        wire.post(next, "/v3/demo", large_batch()).send(&Frame::window_update(next, 8 * WINDOW_BYTES));
        let frame = loop {
            let frame = wire.next_frame().expect("the connection stays open");
            if frame.kind == DATA && !frame.payload.is_empty() {
                wire.send(&Frame::window_update(0, frame.payload.len() as u32));
            }
            if frame.kind == RST_STREAM || frame.ends_stream() {
                break frame;
            }
        };
        if frame.kind == RST_STREAM {
            assert_eq!(frame.stream, 1);
            break;
        }
        assert_eq!(frame.stream, next);
        (next, replies) = (next + 2, replies + 1);
    }
    assert!(replies > 0);
}

#[test]
fn a_slow_but_steady_reader_gets_all_of_a_large_answer() {
    let gateway = Gateway::with("write_timeout_ms = 1000\nread_rate_min_bytes = 100_000", "");
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&window(16 << 10)).post(1, "/v3/demo", large_batch());
    let mut read = 0;
    loop {
        let frame = wire.next_frame().expect("the connection stays open");
        assert_ne!(frame.kind, RST_STREAM, "after {read} bytes");
        read += if frame.kind == DATA { frame.payload.len() } else { 0 };
        if frame.ends_stream() {
            break;
        }
        if frame.kind == DATA {
            let len = frame.payload.len() as u32;
            wire.send(&Frame::window_update(0, len)).send(&Frame::window_update(1, len));
            // At most 800 KB a second, which takes several times the write timeout.
            thread::sleep(Duration::from_micros(u64::from(len) * 5 / 4));
        }
    }
    assert!(read > 3 << 20);
}

// Such connections were closed after 24 to 30 seconds only, by the pings of the HTTP/2 library.
#[test]
fn silence_is_cut_off_after_the_time_for_a_head() {
    let limits = "first_byte_timeout_ms = 1000\nheader_timeout_ms = 1000\nkeep_alive_timeout_ms = 600000";
    let gateway = Gateway::with(limits, "");
    let block = head("/v3/demo");
    let half = &Frame::post(3, "/v3/demo").bytes()[..12];
    let begun = Frame::new(HEADERS, 0, 3, &block[..4]).bytes();
    let settings = window(WINDOW_BYTES).bytes();
    for silence in [&PREFACE[..20], PREFACE, &[PREFACE, &settings].concat()] {
        assert!(FrameConnection::connect(gateway.public).send_bytes(silence).is_closed());
    }
    for answered_before in [false, true] {
        for last in [half, &begun] {
            let mut wire = FrameConnection::connect(gateway.public);
            wire.greet(&window(WINDOW_BYTES));
            if answered_before {
                assert!(wire.post(1, "/v3/demo", chain_id("1")).body(1).is_some());
            }
            assert!(wire.send_bytes(last).is_closed());
        }
        let mut wire = FrameConnection::connect(gateway.public);
        wire.greet(&window(WINDOW_BYTES)).send_bytes(&begun);
        let trickle = Frame::new(CONTINUATION, 0, 3, &block[4..5]).bytes();
        until("slow continuations are cut off", || {
            thread::sleep(Duration::from_millis(50));
            !wire.try_send_bytes(&trickle)
        });
    }
}

#[test]
fn an_idle_connection_is_told_to_go_and_closed() {
    let gateway = Gateway::with("keep_alive_timeout_ms = 1000", "");
    let mut wire = FrameConnection::connect(gateway.public);
    assert!(wire.greet(&window(WINDOW_BYTES)).post(1, "/v3/demo", chain_id("1")).body(1).is_some());
    assert!(wire.next_of(GOAWAY).is_some());
    assert!(wire.is_closed());
}

#[test]
fn a_slow_answer_is_no_idling() {
    let gateway = Gateway::with("keep_alive_timeout_ms = 1400\nheader_timeout_ms = 1400", "");
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&window(WINDOW_BYTES)).post(1, "/v3/demo", call("eth_call", r#"[{"data":"0x06"}]"#));
    assert!(wire.body(1).is_some());
}

// The reply was followed by a reset, because the body had not come yet; curl 7.88 then reported a stream error instead of the
// 401 in 60 of 100 tries.
#[test]
fn a_refusal_waits_for_a_short_body_and_is_not_followed_by_a_reset() {
    let gateway = Gateway::start();
    for path in ["/v3/nobody", "/nowhere"] {
        let mut wire = FrameConnection::connect(gateway.public);
        wire.greet(&window(WINDOW_BYTES)).send(&Frame::post(1, path));
        thread::sleep(Duration::from_millis(100));
        wire.send(&Frame::data(1, chain_id("1")));
        assert!(wire.body(1).is_some(), "{path}");
        // Whatever came before the reply to a ping is there when that reply is.
        wire.send(&Frame::ping());
        let rest: Vec<_> =
            std::iter::from_fn(|| wire.next_frame()).take_while(|frame| frame.kind != PING).collect();
        assert!(rest.iter().all(|frame| frame.kind != RST_STREAM), "{path}: {rest:?}");
    }
}

#[test]
fn a_refusal_does_not_wait_for_a_long_body() {
    let gateway = Gateway::start();
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&window(WINDOW_BYTES)).send(&Frame::post(1, "/v3/nobody"));
    // The body never ends.
    assert!(wire.body(1).is_some());
}

#[test]
fn a_connection_ends_politely_after_its_share_of_requests() {
    let gateway = Gateway::with("requests_per_connection_max = 3", "");
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&window(WINDOW_BYTES));
    for stream in [1, 3, 5] {
        wire.post(stream, "/v3/demo", chain_id("1"));
    }
    let (mut answered, mut goaway) = (0, 0);
    while let Some(frame) = wire.next_frame() {
        answered += usize::from(frame.ends_stream());
        goaway += usize::from(frame.kind == GOAWAY);
    }
    assert_eq!(answered, 3);
    assert!(goaway > 0);
}

#[test]
fn a_connection_has_exactly_its_share_of_requests() {
    let gateway = Gateway::with("requests_per_connection_max = 3", "");
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&window(WINDOW_BYTES));
    for (stream, is_last) in [(1, false), (3, false), (5, true)] {
        wire.post(stream, "/v3/demo", chain_id("1"));
        let mut is_told = false;
        loop {
            let Some(frame) = wire.next_frame() else {
                assert!(is_told, "the connection has ended without a word");
                break;
            };
            is_told |= frame.kind == GOAWAY;
            if frame.ends_stream() {
                // Whatever came before the reply to a ping is there when that reply is, or the connection has ended.
                wire.send(&Frame::ping());
            }
            if frame.kind == PING && frame.flags == ACK {
                break;
            }
        }
        assert_eq!(is_told, is_last, "after the request on stream {stream}");
    }
    let mut http1 = TestConnection::connect(gateway.public);
    let replies = [(); 3].map(|()| http1.post("/v3/demo", chain_id("1")));
    assert_eq!(replies.each_ref().map(|reply| reply.header("connection")), [None, None, Some("close")]);
    assert!(http1.is_closed());
}

// Four connections that sent nothing but window updates took 1.9 cores for as long as they liked.
#[test]
fn floods_of_frames_that_lead_to_nothing_end_their_connection() {
    let gateway = Gateway::start();
    let open = Frame::post(1, "/v3/demo");
    for (name, frame) in [
        ("window updates", Frame::window_update(0, 1)),
        ("pings", Frame::ping()),
        ("settings", window(WINDOW_BYTES)),
        ("priorities", Frame::new(PRIORITY, 0, 3, [0, 0, 0, 0, 1])),
        ("empty data", Frame::new(DATA, 0, 1, [])),
        ("tiny data", Frame::new(DATA, 0, 1, *b" ")),
        ("unknown frames", Frame::new(0x42, 0, 0, [])),
        ("acknowledgements", Frame::new(SETTINGS, 1, 0, [])),
        ("updates of a stream", Frame::new(WINDOW_UPDATE, 0, 1, 1_u32.to_be_bytes())),
    ] {
        let mut wire = FrameConnection::connect(gateway.public);
        wire.greet(&window(WINDOW_BYTES)).send(&open).send_bytes(&frame.bytes().repeat(3_000));
        assert!(wire.is_closed(), "{name}");
    }
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&window(WINDOW_BYTES));
    let mut stream = 1;
    until("requests that are reset at once are cut off", || {
        let requests: Vec<u8> = (0..50)
            .flat_map(|index| {
                let stream = stream + 2 * index;
                let reset = Frame::new(RST_STREAM, 0, stream, 8_u32.to_be_bytes());
                [Frame::post(stream, "/v3/demo").bytes(), reset.bytes()].concat()
            })
            .collect();
        stream += 100;
        !wire.try_send_bytes(&requests)
    });
    assert_eq!(gateway.post(chain_id("1")).status, 200, "others are served");
}

#[test]
fn many_small_requests_with_their_window_updates_are_no_flood() {
    let gateway = Gateway::start();
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&window(WINDOW_BYTES));
    for index in 0..1_000 {
        let stream = 2 * index + 1;
        wire.send(&Frame::new(HEADERS, END_HEADERS, stream, head("/v3/demo")));
        wire.send(&Frame::data(stream, chain_id("1")));
        assert!(wire.body(stream).is_some(), "{index}");
    }
}
