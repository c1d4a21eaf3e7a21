//! Calls that travel together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use serde_json::Value;

use super::node::*;
use crate::call::{Ask, Class, Fault, RpcCall, RpcReply};
use crate::trace_context::TraceContext;
use crate::transport::{Client, EndpointLimits};

/// One connection only, so that whatever comes while it is busy must travel together.
fn narrow(node: &Node) -> Client {
    let limits = EndpointLimits { connections_max: 1, near_connections_max: 1, ..EndpointLimits::default() };
    Client::new(node.endpoint(), limits)
}

/// Asks `count` times at once.
async fn ask_many(client: &Client, class: Class, count: usize) -> Vec<Result<RpcReply, Fault>> {
    let asks = (0..count)
        .map(|turn| async move { client.ask(&call(class, &format!("[{turn}]")), in_ms(5_000)).await });
    join_all(asks).await
}

fn echoes(count: usize) -> Vec<Result<RpcReply, Fault>> {
    (0..count).map(|turn| said(&format!("[{turn}]"))).collect()
}

#[tokio::test]
async fn quick_calls_that_wait_go_out_as_one_batch() {
    let node = Node::answering(echo).await;
    let client = narrow(&node);
    assert_eq!(ask_many(&client, Class::Quick, 20).await, echoes(20));
    let stats = client.stats();
    assert_eq!((node.connections(), stats.calls), (1, 20));
    assert!(stats.batches >= 1 && stats.batched_calls >= 19, "{stats:?}");
}

#[tokio::test]
async fn a_batch_has_no_more_calls_than_allowed() {
    let node = Node::answering(|body| {
        assert!(body.as_array().is_none_or(|calls| calls.len() <= 3));
        echo(body)
    })
    .await;
    let limits = EndpointLimits { connections_max: 1, batch_calls_max: 3, ..EndpointLimits::default() };
    let client = Client::new(node.endpoint(), limits);
    assert_eq!(ask_many(&client, Class::Quick, 20).await, echoes(20));
}

#[tokio::test]
async fn other_calls_go_alone_to_a_node_that_takes_its_time() {
    let node = Node::start(|mut talk| async move {
        loop {
            let body = talk.request().await?.body;
            assert!(body.is_object());
            tokio::time::sleep(Duration::from_millis(4)).await;
            talk.reply(&echo(&body)).await?;
        }
    })
    .await;
    let client = narrow(&node);
    for class in [Class::Evm, Class::Logs, Class::Bulk] {
        assert_eq!(ask_many(&client, class, 20).await, echoes(20));
    }
    assert_eq!(client.stats().batches, 0);
}

#[tokio::test]
async fn other_calls_share_small_batches_while_they_are_answered_at_once() {
    let node = Node::answering(|body| {
        assert!(body.as_array().is_none_or(|calls| calls.len() <= 8));
        echo(body)
    })
    .await;
    let limits = EndpointLimits { near: Duration::from_millis(200), ..EndpointLimits::default() };
    let client = Client::new(
        node.endpoint(),
        EndpointLimits { connections_max: 1, near_connections_max: 1, ..limits },
    );
    for class in [Class::Evm, Class::Logs] {
        assert_eq!(ask_many(&client, class, 60).await, echoes(60));
    }
    let stats = client.stats();
    assert!(stats.batched_calls >= 60, "{stats:?}");
}

#[tokio::test]
async fn replies_in_another_order_reach_those_who_asked() {
    let node = Node::answering(|body| match body.as_array() {
        None => echo(body),
        Some(calls) => format!("[{}]", calls.iter().rev().map(echo).collect::<Vec<_>>().join(" , ")),
    })
    .await;
    assert_eq!(ask_many(&narrow(&node), Class::Quick, 20).await, echoes(20));
}

/// The ends of two calls when their batch is answered like this.
async fn batch_answered(
    answer: impl Fn(u64, u64) -> String + Send + Sync + 'static,
) -> Vec<Result<RpcReply, Fault>> {
    let node = Node::answering(move |body: &Value| match body.as_array() {
        None => echo(body),
        Some(calls) => answer(id_of(&calls[0]), id_of(&calls[1])),
    })
    .await;
    ask_many(&narrow(&node), Class::Quick, 2).await
}

#[tokio::test]
async fn a_batch_with_a_doubtful_id_is_discarded_whole() {
    let wrong = vec![Err(Fault::WrongId); 2];
    assert_eq!(batch_answered(|a, _| format!("[{},{}]", result(a, "1"), result(a, "2"))).await, wrong);
    assert_eq!(batch_answered(|a, b| format!("[{},{}]", result(a, "1"), result(b + 1, "2"))).await, wrong);
    assert_eq!(batch_answered(|a, _| format!("[{},{}]", result(a, "1"), result(a - 1, "2"))).await, wrong);
    assert_eq!(batch_answered(|a, _| format!("[{}]", result(a, "1"))).await, wrong);
    let three = |a, b| format!("[{},{},{}]", result(a, "1"), result(b, "2"), result(b + 1, "3"));
    assert_eq!(batch_answered(three).await, wrong);
    assert_eq!(batch_answered(|a, _| result(a, "1")).await, wrong);
}

#[tokio::test]
async fn one_broken_reply_of_a_batch_is_the_fault_of_that_one() {
    let replies = batch_answered(|a, b| format!("[{},{{\"id\":{b}}}]", result(a, "1"))).await;
    assert_eq!(replies, [said("1"), Err(Fault::Garbled)]);
    let replies = batch_answered(|a, b| format!("[{},{}", result(a, "1"), result(b, "2"))).await;
    assert_eq!(replies, [Err(Fault::Garbled), Err(Fault::Garbled)]);
}

/// A node that answers batches like this and lone calls properly: all calls are answered, and batches are left off.
async fn refusing(wire: Vec<u8>) {
    let batches = Arc::new(AtomicUsize::new(0));
    let (seen, refusal) = (Arc::clone(&batches), wire.clone());
    let node = Node::start(move |mut talk| {
        let (seen, wire) = (Arc::clone(&seen), refusal.clone());
        async move {
            loop {
                let body = talk.request().await?.body;
                if body.is_array() {
                    seen.fetch_add(1, Relaxed);
                    talk.send(&wire).await?;
                } else {
                    talk.reply(&echo(&body)).await?;
                }
            }
        }
    })
    .await;
    let client = Client::new(node.endpoint(), EndpointLimits::default());
    for _ in 0..3 {
        assert_eq!(ask_many(&client, Class::Quick, 20).await, echoes(20));
    }
    let seen = batches.load(Relaxed);
    assert!((1..=2).contains(&seen), "{seen} batches, {}", String::from_utf8_lossy(&wire));
}

#[tokio::test]
async fn a_node_that_refuses_batches_is_asked_one_by_one() {
    refusing(with_status("400 Bad Request", "no")).await;
    refusing(b"HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_vec()).await;
    refusing(ok(r#"{"id":null,"error":{"code":-32600,"message":"unsupported format"}}"#)).await;
    refusing(ok(r#"[{"id":null,"error":{"code":-32600,"message":"batch too large"}}]"#)).await;
}

#[tokio::test]
async fn a_limit_of_rate_is_no_refusal_of_batches() {
    let limited = |_, _| r#"{"id":null,"error":{"code":-32005,"message":"Rate limit exceeded"}}"#.to_owned();
    assert_eq!(batch_answered(limited).await, vec![Err(Fault::RateLimited); 2]);
}

#[tokio::test]
async fn nobody_waits_for_the_reply_of_another_from_a_far_node() {
    let node = Node::start(|mut talk| async move {
        loop {
            let body = talk.request().await?.body;
            tokio::time::sleep(Duration::from_secs(1)).await;
            talk.reply(&echo(&body)).await?;
        }
    })
    .await;
    let client = node.client();
    // The first ones show how far it is.
    for _ in 0..3 {
        ask_many(&client, Class::Quick, 2).await;
    }
    let asks = (0..6).map(|turn| {
        let client = &client;
        async move {
            tokio::time::sleep(Duration::from_millis(10 * turn)).await;
            assert_eq!(ask(client, "[]").await, said("[]"));
        }
    });
    join_all(asks).await;
    assert!(node.connections() > 2, "{}", node.connections());
}

/// A request has one header, so it can tell one trace only.
#[tokio::test]
async fn a_request_tells_the_trace_that_all_of_its_calls_belong_to() {
    /// The traces of the calls of one request, and the header that it came with.
    type Told = (Vec<u128>, Option<String>);
    let seen = Arc::<Mutex<Vec<Told>>>::default();
    let noted = Arc::clone(&seen);
    let node = Node::start(move |mut talk| {
        let noted = Arc::clone(&noted);
        async move {
            loop {
                let Asked { head, body } = talk.request().await?;
                let trace = head.lines().find_map(|line| line.strip_prefix("traceparent: "));
                let calls = body.as_array().cloned().unwrap_or_else(|| vec![body.clone()]);
                let traces = calls.iter().map(|call| call["params"][0].as_u64().unwrap().into());
                noted.lock().push((traces.collect(), trace.map(str::to_owned)));
                talk.reply(&echo(&body)).await?;
            }
        }
    })
    .await;
    let client = narrow(&node);
    for traces in [&[7, 7, 7][..], &[7, 7, 8], &[0, 7, 7], &[0, 0], &[7]] {
        let asks = traces.iter().enumerate().map(|(span, trace_id)| {
            let context = TraceContext { trace_id: *trace_id, span_id: span as u64 + 1, is_sampled: true };
            let trace = Some(context).filter(|trace| trace.trace_id != 0);
            let call = RpcCall { trace, ..call(Class::Quick, &format!("[{trace_id}]")) };
            let client = &client;
            async move { client.ask(&call, in_ms(5_000)).await.unwrap() }
        });
        join_all(asks).await;
    }
    let seen = seen.lock();
    assert!(seen.iter().any(|(traces, told)| traces.len() > 1 && told.is_some()), "{seen:?}");
    assert!(seen.iter().any(|(traces, told)| traces.len() > 1 && told.is_none()), "{seen:?}");
    for (traces, told) in &*seen {
        let is_one = traces[0] != 0 && traces.iter().all(|trace| *trace == traces[0]);
        let begins = format!("00-{:032x}-", traces[0]);
        assert_eq!(
            told.as_ref().is_some_and(|told| told.starts_with(&begins)),
            is_one,
            "{traces:?} {told:?}"
        );
        assert!(is_one || told.is_none(), "{traces:?} {told:?}");
    }
}
