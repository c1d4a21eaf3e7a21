//! One call at a time.

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::node::*;
use crate::call::{Ask, Class, Fault, RpcReply};
use crate::transport::{Client, Endpoint, EndpointLimits};

#[tokio::test]
async fn a_connection_is_kept_and_used_again() {
    let node = Node::answering(echo).await;
    let client = node.client();
    for turn in 0..5 {
        let params = format!("[{turn}]");
        assert_eq!(ask(&client, &params).await, said(&params));
    }
    assert_eq!(node.connections(), 1);
    let stats = client.stats();
    assert_eq!((stats.connections_open, stats.calls, stats.batches), (1, 5, 0));
    assert!(stats.bytes_in > 0 && stats.bytes_out > 0);
}

#[tokio::test]
async fn a_request_carries_the_key_and_the_headers_of_its_endpoint() {
    let node = Node::start(|mut talk| async move {
        let asked = talk.request().await?;
        let head = serde_json::to_string(&asked.head.to_ascii_lowercase()).unwrap();
        talk.reply(&result(id_of(&asked.body), &head)).await
    })
    .await;
    let url = format!("http://user:pass@{}/key?query=1", node.address);
    let endpoint = Endpoint::parse(&url).unwrap().with_header("X-Api-Key", "abc").unwrap();
    let client = Client::new(endpoint, EndpointLimits::default());
    let Ok(RpcReply::Result(head)) = ask(&client, "[]").await else { panic!("no head") };
    let head: String = serde_json::from_slice(&head).unwrap();
    assert!(head.starts_with("post /key?query=1 http/1.1\r\n"));
    assert!(head.contains(&format!("\r\nhost: {}\r\n", node.address)));
    assert!(head.contains("\r\nauthorization: basic dxnlcjpwyxnz\r\n"));
    assert!(head.contains("\r\nx-api-key: abc\r\n"));
    assert!(!head.contains("accept-encoding"));
}

#[tokio::test]
async fn a_body_in_chunks_is_put_together_and_its_connection_kept() {
    let node = Node::start(|mut talk| async move {
        loop {
            let body = echo(&talk.request().await?.body);
            let (one, two) = body.split_at(body.len() / 2);
            let wire = format!(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x};ext=1\r\n{one}\r\n{:X}\r\n{two}\r\n0\r\nx: y\r\n\r\n",
                one.len(),
                two.len()
            );
            talk.send(wire.as_bytes()).await?;
        }
    })
    .await;
    let client = node.client();
    for _ in 0..3 {
        assert_eq!(ask(&client, "[1]").await, said("[1]"));
    }
    assert_eq!(node.connections(), 1);
}

#[tokio::test]
async fn a_body_may_end_with_its_connection() {
    let node = Node::saying(|id| format!("HTTP/1.0 200 OK\r\n\r\n{}", result(id, "7")).into_bytes()).await;
    let client = node.client();
    assert_eq!(ask(&client, "[]").await, said("7"));
    assert_eq!(ask(&client, "[]").await, said("7"));
    assert_eq!(node.connections(), 2);
}

#[tokio::test]
async fn after_connection_close_the_next_call_takes_a_new_connection() {
    let node = Node::start(|mut talk| async move {
        let body = echo(&talk.request().await?.body);
        let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        talk.send((head + &body).as_bytes()).await?;
        // It does not hang up by itself: the word must be enough.
        tokio::time::sleep(Duration::from_secs(60)).await;
        Some(())
    })
    .await;
    let client = node.client();
    assert_eq!(ask(&client, "[1]").await, said("[1]"));
    assert_eq!(ask(&client, "[2]").await, said("[2]"));
    assert_eq!(node.connections(), 2);
}

#[tokio::test]
async fn a_connection_that_ended_at_rest_is_replaced_without_a_word() {
    // The node reads a second request and hangs up on it, as if its timeout had come in that moment.
    let node = Node::start(|mut talk| async move {
        let body = echo(&talk.request().await?.body);
        talk.reply(&body).await?;
        talk.request().await?;
        None
    })
    .await;
    let client = node.client();
    for turn in 0..4 {
        let params = format!("[{turn}]");
        assert_eq!(ask(&client, &params).await, said(&params));
    }
    assert_eq!(node.connections(), 4);
}

#[tokio::test]
async fn a_connection_that_is_closed_while_it_rests_is_noticed() {
    let node = Node::start(|mut talk| async move {
        let body = echo(&talk.request().await?.body);
        talk.reply(&body).await
    })
    .await;
    let client = node.client();
    assert_eq!(ask(&client, "[1]").await, said("[1]"));
    until(async || client.stats().connections_open == 0).await;
    assert_eq!(ask(&client, "[2]").await, said("[2]"));
}

#[tokio::test]
async fn a_large_result_comes_whole() {
    let large = format!("[\"{}\"]", "ab".repeat(3 << 20));
    let node = Node::answering(echo).await;
    let client = node.client();
    let reply = client.ask(&call(Class::Logs, &large), in_ms(10_000)).await;
    assert!(reply == said(&large));
}

#[tokio::test]
async fn an_error_of_the_node_is_a_reply() {
    let node = Node::answering(|body| {
        let id = id_of(body);
        format!(r#"{{"id":{id},"result":null,"error":{{"code":3,"message":"execution r\u0065verted","data":"0x08"}}}}"#)
    })
    .await;
    let Ok(RpcReply::Error(error)) = ask(&node.client(), "[]").await else { panic!("no error") };
    assert_eq!((error.code, error.message.as_str()), (3, "execution reverted"));
    assert_eq!(error.data.as_deref(), Some(br#""0x08""#.as_slice()));
}

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

async fn gzip_node(body: impl Fn(u64) -> String + Send + Sync + 'static) -> Node {
    Node::saying(move |id| {
        let body = gzipped(body(id).as_bytes());
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", body.len());
        [head.into_bytes(), body].concat()
    })
    .await
}

#[tokio::test]
async fn a_compressed_reply_is_inflated() {
    let node = gzip_node(|id| result(id, &format!("\"{}\"", "a".repeat(200_000)))).await;
    let client = Client::new(node.endpoint().with_gzip(true), EndpointLimits::default());
    assert_eq!(ask(&client, "[]").await, said(&format!("\"{}\"", "a".repeat(200_000))));
}

#[tokio::test]
async fn a_reply_that_inflates_beyond_the_limit_is_too_large() {
    let node = gzip_node(|id| result(id, &format!("\"{}\"", "a".repeat(4 << 20)))).await;
    let limits = EndpointLimits { reply_bytes_max: 1 << 20, ..EndpointLimits::default() };
    let client = Client::new(node.endpoint().with_gzip(true), limits);
    assert_eq!(ask(&client, "[]").await, Err(Fault::TooLarge));
}

/// A result too large to be looked at twice.
fn large(inside: &str) -> String {
    format!("[{}\"\"]", format!("\"{inside}\",").repeat(5_000 / inside.len()))
}

#[tokio::test]
async fn large_results_of_the_usual_form_are_left_to_those_who_check_them() {
    let node = Node::answering(|body| result(id_of(body), body["params"][0].as_str().unwrap())).await;
    let client = node.client();
    let (good, bad) = (large("0xab"), large("\n"));
    let params = |text: &str| serde_json::to_string(&[text]).unwrap();
    assert_eq!(ask(&client, &params(&bad)).await, Err(Fault::Garbled), "the first is read whole");
    assert_eq!(ask(&client, &params(&good)).await, said(&good));
    assert_eq!(ask(&client, &params(&bad)).await, said(&bad));
    assert_eq!(ask(&client, &params("[\"\n\"]")).await, Err(Fault::Garbled), "small ones always are");
}

#[tokio::test]
async fn a_large_result_ends_where_it_ends_whatever_else_a_node_writes() {
    let node = Node::answering(|body| {
        let reply = result(id_of(body), &body["params"].to_string());
        reply.strip_suffix('}').unwrap().to_owned() + ",\"notes\":[1,2]}"
    })
    .await;
    let client = node.client();
    for _ in 0..3 {
        assert_eq!(ask(&client, &large("0xab")).await, said(&large("0xab")));
    }
}
