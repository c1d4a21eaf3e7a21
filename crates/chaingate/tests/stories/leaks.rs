//! The log names every request, and no key.

use std::collections::HashSet;

use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use testkit::http::{TestConnection, get, request};

use crate::gateway_under_test::{call, chain_id};
use crate::http2::post as post_http2;
use crate::process::Process;

/// Long enough that they cannot be found by chance.
const KEY: &str = "canary-key-5f0e1d";
const WRONG: &str = "canary-wrong-77ab";

#[test]
fn every_request_has_a_line_and_no_line_has_a_key() {
    let rest = format!("[[key]]\nkey = \"{KEY}\"\n");
    // Everything that there is to tell, but for how the roots of the demo chain are made, which takes a book.
    let process = Process::start("127.0.0.1:0", &rest, "trace,trie=off");
    let public = process.public;
    let mut wire = TestConnection::connect(public);
    for path in
        [format!("/v3/{KEY}"), format!("/v3/{WRONG}"), format!("/v3/{KEY}/x"), format!("/{WRONG}?{KEY}")]
    {
        wire.send(request(
            &path,
            &format!("origin: {WRONG}\r\nauthorization: {KEY}\r\n"),
            chain_id("1").as_bytes(),
        ));
        wire =
            if wire.reply().header("connection").is_some() { TestConnection::connect(public) } else { wire };
    }
    TestConnection::connect(public).post(&format!("/v3/{KEY}"), call("eth_call", r#"[{"data":"0xfe"}]"#));
    TestConnection::connect(public)
        .send(format!("POST /v3/{KEY} HTTP/1.1\r\n{KEY} : x\r\n\r\n"))
        .closed_after();
    // The connection is gone with its runtime.
    tokio::runtime::Runtime::new().unwrap().block_on(over_http2(public, &format!("/v3/{KEY}")));
    let metrics = get(process.operator, "/metrics");

    process.terminate();
    let (_, log) = process.ended();
    for line in log.iter().map(String::as_str).chain(metrics.text().lines()) {
        assert!(!line.contains("canary"), "{line}");
    }
    let answered: Vec<Value> = log
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|record| record["fields"]["message"] == "answered")
        .collect();
    let ids: HashSet<_> = answered.iter().map(|record| record["fields"]["request"].to_string()).collect();
    assert_eq!((answered.len(), ids.len()), (7, 7), "{answered:#?}");
    for record in answered {
        let fields = &record["fields"];
        assert!(fields["status"].is_u64() && fields["bytes"].is_u64() && fields["us"].is_u64(), "{record}");
    }
}

async fn over_http2(public: std::net::SocketAddr, path: &str) {
    let stream = tokio::net::TcpStream::connect(public).await.unwrap();
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(post_http2(&mut sender, path, chain_id("1")).await.0, 200);
}

#[test]
fn the_log_is_as_talkative_as_it_is_told_to_be() {
    let process = Process::start("127.0.0.1:0", "", "info");
    TestConnection::connect(process.public).post("/v3/demo", chain_id("1"));
    process.terminate();
    let (_, log) = process.ended();
    assert!(!log.iter().any(|line| line.contains("answered")), "{log:#?}");
}
