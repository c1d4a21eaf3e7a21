//! Nodes that misbehave.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::Instant;

use super::node::*;
use crate::call::{Ask, Class, Fault, RpcReply};
use crate::transport::{Client, Endpoint, EndpointLimits};

/// The end of a call whose reply is these bytes on the wire.
async fn told(wire: impl Fn(u64) -> Vec<u8> + Send + Sync + 'static) -> Result<RpcReply, Fault> {
    ask(&Node::saying(wire).await.client(), "[]").await
}

async fn told_body(body: impl Fn(u64) -> String + Send + Sync + 'static) -> Result<RpcReply, Fault> {
    told(move |id| ok(&body(id))).await
}

#[tokio::test]
async fn another_id_is_another_question() {
    assert_eq!(told_body(|id| result(id + 1, "1")).await, Err(Fault::WrongId));
    assert_eq!(told_body(|id| format!(r#"{{"id":"{id}","result":1}}"#)).await, Err(Fault::WrongId));
    assert_eq!(told_body(|_| r#"{"id":null,"result":1}"#.into()).await, Err(Fault::WrongId));
    assert_eq!(told_body(|_| r#"{"result":1}"#.into()).await, Err(Fault::WrongId));
}

#[tokio::test]
async fn neither_or_both_of_result_and_error_is_garbled() {
    assert_eq!(told_body(|id| format!(r#"{{"id":{id}}}"#)).await, Err(Fault::Garbled));
    let both = |id| format!(r#"{{"id":{id},"result":1,"error":{{"code":1,"message":"x"}}}}"#);
    assert_eq!(told_body(both).await, Err(Fault::Garbled));
    assert_eq!(told_body(|id| format!(r#"{{"id":{id},"error":null}}"#)).await, Err(Fault::Garbled));
    assert_eq!(told_body(|id| format!(r#"{{"id":{id},"error":"no"}}"#)).await, Err(Fault::Garbled));
    assert_eq!(told_body(|id| format!(r#"{{"id":{id},"result":1,"result":2}}"#)).await, Err(Fault::Garbled));
    assert_eq!(told_body(|id| format!(r#"{{"id":{id},"error":null,"result":1}}"#)).await, said("1"));
}

#[tokio::test]
async fn what_is_no_json_is_garbled() {
    assert_eq!(told_body(|_| "<html>502</html>".into()).await, Err(Fault::Garbled));
    assert_eq!(told_body(|_| String::new()).await, Err(Fault::Garbled));
    assert_eq!(told_body(|id| result(id, "[1,")).await, Err(Fault::Garbled));
    assert_eq!(told_body(|id| result(id, "1") + "x").await, Err(Fault::Garbled));
    assert_eq!(told_body(|id| format!("[{}]", result(id, "1"))).await, Err(Fault::Garbled));
    let latin = |id| ok(&result(id, "\"~\"")).iter().map(|&b| if b == b'~' { 0xe9 } else { b }).collect();
    assert_eq!(told(latin).await, Err(Fault::Garbled));
}

#[tokio::test]
async fn a_status_counts_when_the_body_says_nothing() {
    assert_eq!(told(|_| with_status("503 Busy", "<html>")).await, Err(Fault::Status(503)));
    assert_eq!(told(|_| with_status("429 Slow", "")).await, Err(Fault::RateLimited));
    assert_eq!(told(|_| with_status("301 Elsewhere", "")).await, Err(Fault::Status(301)));
    let error =
        |id| with_status("500 Oh", &format!(r#"{{"id":{id},"error":{{"code":-32000,"message":"x"}}}}"#));
    assert!(matches!(told(error).await, Ok(RpcReply::Error(error)) if error.code == -32_000));
    let stranger =
        |id| with_status("401 No", &format!(r#"{{"id":{id},"error":{{"code":-32002,"message":"x"}}}}"#));
    assert_eq!(told(stranger).await, Err(Fault::Status(401)), "whatever its body says");
    let nobody = |_| with_status("429 Slow", r#"{"id":null,"error":{"code":-32005,"message":"slow down"}}"#);
    assert!(matches!(told(nobody).await, Ok(RpcReply::Error(error)) if error.code == -32_005));
}

#[tokio::test]
async fn a_reply_that_is_cut_off_is_no_reply() {
    let cut = |id: u64| ok(&result(id, "[1,2,3]")).split_last_chunk::<4>().unwrap().0.to_vec();
    assert_eq!(told(cut).await, Err(Fault::Closed));
    assert_eq!(told(|_| b"HTTP/1.1 200 OK\r\ncontent-le".to_vec()).await, Err(Fault::Closed));
    assert_eq!(told(|_| Vec::new()).await, Err(Fault::Closed));
    let chunk = |_| b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n".to_vec();
    assert_eq!(told(chunk).await, Err(Fault::Closed));
}

#[tokio::test]
async fn what_is_no_http_is_garbled() {
    assert_eq!(told(|_| b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()).await, Err(Fault::Garbled));
    let chunk = |_| b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_vec();
    assert_eq!(told(chunk).await, Err(Fault::Garbled));
    assert_eq!(told(|_| b"HTTP/1.1 101 Switching\r\n\r\n".to_vec()).await, Err(Fault::Garbled));
}

#[tokio::test]
async fn a_provisional_reply_is_passed_over() {
    let wire = |id: u64| [b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), ok(&result(id, "1"))].concat();
    assert_eq!(told(wire).await, said("1"));
}

#[tokio::test]
async fn bytes_after_a_reply_end_the_connection() {
    let node = Node::start(|mut talk| async move {
        let body = echo(&talk.request().await?.body);
        let stray = ok(&result(1, "\"stray\""));
        talk.send(&[ok(&body), stray].concat()).await?;
        talk.request().await.map(|_| ())
    })
    .await;
    let client = node.client();
    assert_eq!(ask(&client, "[1]").await, said("[1]"));
    assert_eq!(ask(&client, "[2]").await, said("[2]"));
    assert_eq!(node.connections(), 2);
}

#[tokio::test]
async fn too_much_is_not_read() {
    let limits =
        || EndpointLimits { reply_bytes_max: 1_000, head_bytes_max: 1_000, ..EndpointLimits::default() };
    let wires: [fn(u64) -> Vec<u8>; 4] = [
        |_| b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n".to_vec(),
        |_| {
            [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n".as_slice(), &[b' '; 50]].concat()
        },
        |_| [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &[b' '; 2_000]].concat(),
        |_| [b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &[b'x'; 9_000]].concat(),
    ];
    for wire in wires {
        let node = Node::saying(wire).await;
        assert_eq!(ask(&Client::new(node.endpoint(), limits()), "[]").await, Err(Fault::TooLarge));
    }
}

#[tokio::test]
async fn a_trickle_does_not_outlast_the_deadline() {
    let node = Node::start(|mut talk| async move {
        let body = ok(&echo(&talk.request().await?.body));
        for byte in body {
            talk.send(&[byte]).await?;
            // All of the reply would take a minute.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Some(())
    })
    .await;
    let client = node.client();
    let began = Instant::now();
    let reply = client.ask(&call(Class::Quick, "[]"), in_ms(150)).await;
    assert_eq!(reply, Err(Fault::Timeout));
    while client.stats().connections_open > 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "the connection outlasts the deadline");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_silent_node_is_given_up_after_its_time() {
    let node = Node::start(|mut talk| async move {
        talk.request().await?;
        tokio::time::sleep(Duration::from_secs(60)).await;
        Some(())
    })
    .await;
    let limits =
        EndpointLimits { first_byte_timeout: Duration::from_millis(80), ..EndpointLimits::default() };
    let began = Instant::now();
    assert_eq!(ask(&Client::new(node.endpoint(), limits), "[]").await, Err(Fault::Timeout));
    assert!(began.elapsed() < Duration::from_secs(20), "it was waited for");
}

#[tokio::test]
async fn a_refused_connection_is_a_fault_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client =
        Client::new(Endpoint::parse(&format!("http://{address}")).unwrap(), EndpointLimits::default());
    let began = Instant::now();
    let asks = futures_util::future::join_all((0..50).map(|_| ask(&client, "[]"))).await;
    assert!(asks.iter().all(|reply| *reply == Err(Fault::Connect)));
    assert!(began.elapsed() < Duration::from_secs(20), "it was waited for");
    assert_eq!(client.stats().connections_open, 0);
}

#[tokio::test]
async fn a_queue_has_its_limit() {
    let node = Node::start(|mut talk| async move {
        talk.request().await?;
        std::future::pending().await
    })
    .await;
    let limits = EndpointLimits { connections_max: 1, queue_calls_max: 2, ..EndpointLimits::default() };
    let client = Client::new(node.endpoint(), limits);
    let asks = (0..10).map(|_| async { client.ask(&call(Class::Evm, "[]"), in_ms(1_000)).await });
    let replies = futures_util::future::join_all(asks).await;
    let count = |fault| replies.iter().filter(|reply| **reply == Err(fault)).count();
    assert_eq!((count(Fault::Timeout), count(Fault::QueueFull)), (1, 9));
}
