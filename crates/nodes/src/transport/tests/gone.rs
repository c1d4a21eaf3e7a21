//! Callers and clients that leave.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::node::*;
use crate::call::{Ask, Class, Fault};
use crate::transport::{Client, EndpointLimits};

/// A node that answers after 50 ms, and the params of all calls that it got.
async fn slow() -> (Node, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&heard);
    let node = Node::start(move |mut talk| {
        let heard = Arc::clone(&list);
        async move {
            loop {
                let body = talk.request().await?.body;
                heard.lock().await.push(body["params"].to_string());
                sleep(Duration::from_millis(50)).await;
                talk.reply(&echo(&body)).await?;
            }
        }
    })
    .await;
    (node, heard)
}

#[tokio::test]
async fn a_call_that_was_given_up_in_the_queue_is_never_sent() {
    let (node, heard) = slow().await;
    let client =
        Client::new(node.endpoint(), EndpointLimits { connections_max: 1, ..EndpointLimits::default() });
    let (first, waiting) = (call(Class::Evm, "[1]"), call(Class::Evm, "[2]"));
    let first = client.ask(&first, in_ms(5_000));
    let given_up = timeout(Duration::from_millis(10), client.ask(&waiting, in_ms(5_000)));
    let (first, given_up) = tokio::join!(first, given_up);
    assert_eq!(first, said("[1]"));
    assert!(given_up.is_err());
    let third = client.ask(&call(Class::Evm, "[3]"), in_ms(5_000)).await;
    assert_eq!(third, said("[3]"));
    assert_eq!(*heard.lock().await, ["[1]", "[3]"]);
}

#[tokio::test]
async fn a_reply_that_nobody_waits_for_goes_to_nobody_else() {
    let (node, heard) = slow().await;
    let client =
        Client::new(node.endpoint(), EndpointLimits { connections_max: 1, ..EndpointLimits::default() });
    tokio::select! {
        reply = ask(&client, "[1]") => panic!("it was not given up: {reply:?}"),
        () = until(async || !heard.lock().await.is_empty()) => {}
    }
    assert_eq!(ask(&client, "[2]").await, said("[2]"));
    assert_eq!(*heard.lock().await, ["[1]", "[2]"]);
    // The connection was good all the time.
    assert_eq!(node.connections(), 1);
}

#[tokio::test]
async fn connections_end_with_their_client() {
    let (node, _) = slow().await;
    let client = node.client();
    assert_eq!(ask(&client, "[1]").await, said("[1]"));
    let queues: Vec<_> = client.queues.lock().clone();
    assert_eq!(queues[0].counters.connections_open.load(std::sync::atomic::Ordering::Relaxed), 1);
    drop(client);
    until(async || queues[0].counters.connections_open.load(std::sync::atomic::Ordering::Relaxed) == 0).await;
}

#[tokio::test]
async fn a_connection_that_rests_too_long_is_closed() {
    let node = Node::answering(echo).await;
    let limits = EndpointLimits { idle_timeout: Duration::from_secs(1), ..EndpointLimits::default() };
    let client = Client::new(node.endpoint(), limits);
    assert_eq!(ask(&client, "[1]").await, said("[1]"));
    assert_eq!(client.stats().connections_open, 1);
    until(async || client.stats().connections_open == 0).await;
    assert_eq!(ask(&client, "[2]").await, said("[2]"));
}

#[test]
fn a_client_outlives_the_runtimes_that_use_it() {
    let run = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let nodes = run();
    let node = nodes.block_on(Node::answering(echo));
    let client = Arc::new(node.client());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = std::thread::spawn(move || nodes.block_on(stopped));
    for turn in 0..3 {
        let params = format!("[{turn}]");
        assert_eq!(run().block_on(ask(&client, &params)), said(&params));
        let (client, same) = (Arc::clone(&client), params.clone());
        let other = std::thread::spawn(move || run().block_on(ask(&client, &same)));
        assert_eq!(other.join().unwrap(), said(&params));
    }
    assert_eq!(client.stats().connections_open, 0);
    drop(stop);
    let _stopped = serving.join().unwrap();
}

/// Calls behind an exchange whose task was gone, with its runtime or by a panic, waited until their deadlines.
#[test]
fn calls_behind_a_connection_that_is_gone_are_not_left_waiting() {
    let run = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let nodes = run();
    let (node, heard) = nodes.block_on(slow());
    let client =
        Client::new(node.endpoint(), EndpointLimits { connections_max: 1, ..EndpointLimits::default() });
    let (gone, other) = (run(), run());
    let (first, waiting) = (call(Class::Evm, "[1]"), call(Class::Evm, "[2]"));
    let mut first = Box::pin(client.ask(&first, in_ms(600_000)));
    let mut waiting = Box::pin(client.ask(&waiting, in_ms(600_000)));
    // Their only task is on the first runtime, which never gets to a reply.
    gone.block_on(async { assert!((&mut first).now_or_never().is_none()) });
    other.block_on(async { assert!((&mut waiting).now_or_never().is_none()) });
    drop(gone);
    let answer = other.block_on(async { timeout(Duration::from_secs(60), waiting).await });
    // It fails, or is sent over a new connection, where this node says nothing.
    assert!(matches!(answer.expect("it is not left waiting"), Err(Fault::Closed | Fault::Timeout)));
    drop((nodes, heard));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_ask_at_once() {
    let node = Node::answering(echo).await;
    let client = Arc::new(node.client());
    let callers = (0..64).map(|caller| {
        let client = Arc::clone(&client);
        tokio::spawn(async move {
            for turn in 0..100 {
                let params = format!("[{caller},{turn}]");
                assert_eq!(ask(&client, &params).await, said(&params));
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    assert_eq!(client.stats().calls, 6_400);
}
