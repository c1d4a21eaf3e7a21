//! Smaller replies, compressed bodies, and bombs.

use std::io::{Read, Write};

use testkit::http::{ReceivedReply, TestConnection, post, request};

use crate::demo::metric;
use crate::gateway_under_test::{Gateway, call, chain_id};

fn code_call() -> String {
    call("eth_getCode", r#"["0x00000000000000000000000000000000000000aa"]"#)
}

fn asked_with(gateway: &Gateway, accept: &str, body: &str) -> ReceivedReply {
    let headers = format!("accept-encoding: {accept}\r\n");
    TestConnection::connect(gateway.public).send(request("/v3/demo", &headers, body.as_bytes())).reply()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn inflated(reply: &ReceivedReply) -> Vec<u8> {
    let mut whole = Vec::new();
    match reply.header("content-encoding") {
        Some("gzip") => drop(flate2::read::GzDecoder::new(&*reply.body).read_to_end(&mut whole).unwrap()),
        Some("br") => drop(brotli::Decompressor::new(&*reply.body, 4_096).read_to_end(&mut whole).unwrap()),
        Some("zstd") => whole = zstd::decode_all(&*reply.body).unwrap(),
        other => panic!("not compressed: {other:?}"),
    }
    whole
}

#[test]
fn replies_above_1_kib_are_compressed_for_those_who_ask() {
    let gateway = Gateway::start();
    let plain = gateway.post(code_call());
    assert_eq!(plain.header("content-encoding"), None);
    for encoding in ["gzip", "br", "zstd"] {
        let reply = asked_with(&gateway, encoding, &code_call());
        assert_eq!(reply.header("content-encoding"), Some(encoding));
        assert!(reply.body.len() < plain.body.len() / 10);
        assert_eq!(inflated(&reply), plain.body, "{encoding}");
        let small = asked_with(&gateway, encoding, &chain_id("1"));
        assert_eq!((small.header("content-encoding"), small.status), (None, 200));
    }
}

#[test]
fn large_replies_are_compressed_beside_the_connections() {
    let gateway = Gateway::start();
    let batch = format!("[{}]", vec![code_call(); 20].join(","));
    let plain = gateway.post(&batch);
    assert_eq!(inflated(&asked_with(&gateway, "br, gzip;q=0.5", &batch)), plain.body);
}

fn posted_as(gateway: &Gateway, encoding: &str, body: &[u8]) -> ReceivedReply {
    let headers = format!("content-encoding: {encoding}\r\n");
    TestConnection::connect(gateway.public).send(request("/v3/demo", &headers, body)).reply()
}

#[test]
fn compressed_bodies_are_read() {
    let gateway = Gateway::start();
    let body = chain_id("5");
    for (encoding, compressed) in [("gzip", gzip(body.as_bytes())), ("zstd", zstd(body.as_bytes()))] {
        assert_eq!(posted_as(&gateway, encoding, &compressed).json()["id"], 5, "{encoding}");
        let shouted = encoding.to_ascii_uppercase();
        assert_eq!(posted_as(&gateway, &shouted, &compressed).json()["id"], 5, "{shouted}");
    }
}

#[test]
fn bombs_are_held_to_the_limit_of_bodies() {
    let gateway = Gateway::start();
    let huge = vec![b' '; 64 << 20];
    for (encoding, bomb) in [("gzip", gzip(&huge)), ("zstd", zstd(&huge))] {
        assert!(bomb.len() < 1 << 20);
        let reply = posted_as(&gateway, encoding, &bomb);
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (413, "-32600 content length too large"),
            "{encoding}"
        );
    }
}

#[test]
fn a_body_in_another_encoding_than_stated_is_refused() {
    let gateway = Gateway::start();
    for encoding in ["gzip", "zstd"] {
        let reply = posted_as(&gateway, encoding, chain_id("1").as_bytes());
        assert_eq!((reply.status, reply.json()["error"]["code"].as_i64()), (400, Some(-32600)), "{encoding}");
    }
}

/// A brotli body of 67 bytes demanded a window of 16 MiB, which took 3.4 ms of its connection's thread, and a bomb of 165 bytes
/// took 73 ms.
#[test]
fn other_codings_are_refused_with_those_that_are_read() {
    let gateway = Gateway::start();
    let codings =
        ["br", "deflate", "compress", "gzip, gzip", "identity\r\ncontent-encoding: gzip", "nonsense"];
    for encoding in codings {
        let reply = posted_as(&gateway, encoding, &gzip(chain_id("1").as_bytes()));
        let error = "-32600 unsupported content encoding, use gzip or zstd";
        assert_eq!((reply.status, reply.error().as_str()), (415, error), "{encoding}");
        assert_eq!(reply.header("accept-encoding"), Some("gzip, zstd"), "{encoding}");
    }
    let text = "POST /v3/demo HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 1\r\n\r\nx";
    let other_type = TestConnection::connect(gateway.public).send(text).reply();
    assert_eq!((other_type.status, other_type.header("accept-encoding")), (415, None));
}

/// Bodies were decompressed on the thread of their connection, where the pool's turns did not count: one key could delay
/// everybody else.
#[test]
fn even_a_small_body_is_decompressed_in_the_pool() {
    let gateway = Gateway::start();
    let before = metric(gateway.operator, "chaingate_pool_jobs_total");
    assert_eq!(posted_as(&gateway, "gzip", &gzip(chain_id("1").as_bytes())).status, 200);
    assert_eq!(metric(gateway.operator, "chaingate_pool_jobs_total"), before + 1.0);
}

/// Only refused bodies were paid for, and only if their caller waited for the refusal.
#[test]
fn decompression_is_paid_for_by_what_was_received_and_decompressed() {
    let key = "[plans.small]\ncredits_per_day = 100\n[[key]]\nkey = \"small\"\nplan = \"small\"";
    let gateway = Gateway::with("", key);
    let padded = |spaces: usize| zstd(call("eth_chainId", &format!("[{}]", " ".repeat(spaces))).as_bytes());
    let status = |body: &[u8]| {
        TestConnection::connect(gateway.public)
            .send(request("/v3/small", "content-encoding: zstd\r\n", body))
            .reply()
            .status
    };
    // 5 for what was received, 5 for each of four times 64 KiB, and 5 for the call.
    assert_eq!(status(&padded(300 << 10)), 200);
    // Decompressing this one costs 95 more than there are. What there was is used up.
    assert_eq!(status(&padded(2 << 20)), 402);
    assert_eq!(post(gateway.public, "/v3/small", chain_id("1")).status, 402);
}
