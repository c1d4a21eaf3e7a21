//! Smaller replies, compressed bodies, and bombs.

use std::io::{Read, Write};

use testkit::http::{ReceivedReply, TestConnection, request};

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

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4_096, 5, 22);
    encoder.write_all(bytes).unwrap();
    encoder.into_inner()
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
    let bodies =
        [("gzip", gzip(body.as_bytes())), ("br", brotli(body.as_bytes())), ("zstd", zstd(body.as_bytes()))];
    for (encoding, compressed) in bodies {
        assert_eq!(posted_as(&gateway, encoding, &compressed).json()["id"], 5, "{encoding}");
        let shouted = encoding.to_ascii_uppercase();
        assert_eq!(posted_as(&gateway, &shouted, &compressed).json()["id"], 5, "{shouted}");
    }
}

#[test]
fn bombs_are_held_to_the_limit_of_bodies() {
    let gateway = Gateway::start();
    let huge = vec![b' '; 64 << 20];
    for (encoding, bomb) in [("gzip", gzip(&huge)), ("br", brotli(&huge)), ("zstd", zstd(&huge))] {
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
fn what_is_not_what_its_encoding_says_is_refused() {
    let gateway = Gateway::start();
    for encoding in ["gzip", "br", "zstd"] {
        let reply = posted_as(&gateway, encoding, chain_id("1").as_bytes());
        assert_eq!((reply.status, reply.json()["error"]["code"].as_i64()), (400, Some(-32600)), "{encoding}");
    }
    for encoding in ["deflate", "compress", "gzip, gzip", "identity\r\ncontent-encoding: gzip", "nonsense"] {
        let reply = posted_as(&gateway, encoding, &gzip(chain_id("1").as_bytes()));
        assert_eq!(reply.status, 415, "{encoding}");
    }
}
