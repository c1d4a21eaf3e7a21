//! `Chaingate-Request-Id`: every reply has one, and the log has the same.

use std::collections::HashSet;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use testkit::http::{ReceivedReply, TestConnection, get, post, request};

use crate::demo::{metric, until};
use crate::gateway_under_test::{Gateway, call, chain_id};
use crate::process::Process;

fn id(reply: &ReceivedReply) -> String {
    let id = reply.header("chaingate-request-id");
    id.unwrap_or_else(|| panic!("no request id: {reply:?}")).to_owned()
}

/// Replies of every kind: results, errors and refusals at the level of HTTP.
fn replies(gateway: &Gateway) -> Vec<ReceivedReply> {
    let public = gateway.public;
    let sent = |text: &str| TestConnection::connect(public).send(text).reply();
    vec![
        gateway.post(chain_id("1")),
        gateway.post(format!("[{}]", chain_id("1"))),
        gateway.post(r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#),
        gateway.post(call("eth_nonsense", "[]")),
        gateway.post("nonsense"),
        gateway.post(" ".repeat(2_000)),
        post(public, "/v3/nobody", chain_id("1")),
        post(public, "/nowhere", chain_id("1")),
        get(public, "/v3/demo"),
        sent("OPTIONS /v3/demo HTTP/1.1\r\nhost: x\r\n\r\n"),
        sent("nonsense\r\n\r\n"),
        sent(&format!("POST /v3/demo HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(20_000))),
    ]
}

/// Replies on one connection, and to a second one for which there is no place, because a call on the first does not end.
fn replies_of_a_full_gateway(gateway: &Gateway) -> Vec<ReceivedReply> {
    let mut kept = TestConnection::connect(gateway.public);
    let first = kept.post("/v3/demo", chain_id("1"));
    let second = kept.post("/v3/demo", chain_id("1"));
    kept.send(request("/v3/demo", "", call("eth_call", r#"[{"data":"0x02"}]"#).as_bytes()));
    until("the call runs", || metric(gateway.operator, "chaingate_calls_in_flight") == 1.0);
    vec![first, second, TestConnection::connect(gateway.public).reply()]
}

#[test]
fn every_reply_has_an_id_of_its_own_that_web_pages_may_read() {
    let gateway = Gateway::with("body_bytes_max = 1000", "");
    let full = Gateway::with("connections_max = 1", "");
    let mut replies = replies(&gateway);
    replies.extend(replies_of_a_full_gateway(&full));
    let ids: HashSet<_> = replies.iter().map(id).collect();
    assert_eq!(ids.len(), replies.len(), "{ids:?}");
    let statuses: HashSet<_> = replies.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses, HashSet::from([200, 204, 400, 401, 404, 405, 413, 431, 503]));
    for reply in &replies {
        let exposed = reply.header("access-control-expose-headers").unwrap();
        assert_eq!(reply.header("x-trace-id"), Some(id(reply).as_str()));
        for name in [
            "chaingate-request-id",
            "x-trace-id",
            "chaingate-source",
            "chaingate-block",
            "chaingate-node",
            "retry-after",
        ] {
            assert!(exposed.split(", ").any(|header| header == name), "{name} is not in {exposed}");
        }
    }
}

#[test]
fn a_caller_may_choose_the_id_if_it_is_well_formed() {
    let gateway = Gateway::start();
    let with = |header: &str| {
        let request =
            request("/v3/demo", &format!("chaingate-request-id: {header}\r\n"), chain_id("1").as_bytes());
        id(&TestConnection::connect(gateway.public).send(request).reply())
    };
    let longest = "x".repeat(64);
    for good in ["a", "7f3a91c2-5b8f-4d1e-9c3a-000000000001", &longest] {
        assert_eq!(with(good), good);
    }
    for bad in ["", "a b", "é", &format!("{longest}x"), "a\r\nchaingate-request-id: b"] {
        assert!(!["", "a b", "é", "a", "b"].contains(&with(bad).as_str()) && with(bad).len() < 60, "{bad}");
    }
    let preflight =
        TestConnection::connect(gateway.public).send("OPTIONS /v3/demo HTTP/1.1\r\nhost: x\r\n\r\n").reply();
    let allowed = preflight.header("access-control-allow-headers").unwrap();
    assert!(allowed.contains("chaingate-request-id") && allowed.contains("traceparent"), "{allowed}");
}

#[test]
fn two_gateways_do_not_give_the_same_ids() {
    let (first, second) = (Gateway::start(), Gateway::start());
    assert_ne!(id(&first.post(chain_id("1"))), id(&second.post(chain_id("1"))));
}

/// On HTTP/2 requests overlap, and the log gave all of them the number of the newest.
#[tokio::test]
async fn requests_that_overlap_on_one_connection_have_different_ids() {
    let gateway = Gateway::start();
    let stream = tokio::net::TcpStream::connect(gateway.public).await.unwrap();
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let sent = (0..10).map(|number| {
        let mut sender: http2::SendRequest<Full<Bytes>> = sender.clone();
        let body = call("eth_call", &format!(r#"[{{"data":"0x04{number:02x}"}}]"#));
        let request = Request::post("http://test/v3/demo").body(Full::from(body)).unwrap();
        async move {
            let response = sender.send_request(request).await.unwrap();
            response.headers()["chaingate-request-id"].to_str().unwrap().to_owned()
        }
    });
    let ids: HashSet<_> = futures_util::future::join_all(sent).await.into_iter().collect();
    assert_eq!(ids.len(), 10, "{ids:?}");
}

#[test]
fn the_log_has_the_id_that_the_caller_got() {
    let process = Process::start("127.0.0.1:0", "", "debug");
    let answered = post(process.public, "/v3/demo", chain_id("1"));
    let refused = TestConnection::connect(process.public).send("nonsense\r\n\r\n").reply();
    process.terminate();
    let (_, log) = process.ended();
    let records = log.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines: Vec<_> = records.map(|record| record["fields"].clone()).collect();
    for reply in [answered, refused] {
        let line = lines.iter().find(|fields| fields["request"] == id(&reply).as_str());
        assert_eq!(
            line.unwrap_or_else(|| panic!("{} is not in {lines:#?}", id(&reply)))["status"],
            reply.status
        );
    }
}
