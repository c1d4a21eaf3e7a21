//! Accounts that ask the same node.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join_all;
use resources::AccountId;

use super::node::*;
use crate::call::{Ask, Class, Fault, RpcReply};
use crate::transport::{Client, EndpointLimits};

/// A node that never answers requests in which `"hold"` occurs, and how many of them it holds.
async fn holding() -> (Node, Arc<AtomicUsize>) {
    let held = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&held);
    let node = Node::start(move |mut talk| {
        let held = Arc::clone(&count);
        async move {
            loop {
                let body = talk.request().await?.body;
                if body.to_string().contains("hold") {
                    held.fetch_add(1, Relaxed);
                    let ended = talk.request().await.map(|_| ());
                    held.fetch_sub(1, Relaxed);
                    return ended;
                }
                talk.reply(&echo(&body)).await?;
            }
        }
    })
    .await;
    (node, held)
}

async fn ask_for(client: &Client, account: AccountId, class: Class, params: &str) -> Result<RpcReply, Fault> {
    client.ask(&call(class, params).for_account(account), in_ms(600_000)).await
}

/// An account that kept hundreds of slow calls in flight had all connections to a node. The calls of other accounts waited
/// behind its own until their time was over.
#[tokio::test]
async fn an_account_with_hundreds_of_slow_calls_does_not_delay_others() {
    let (greedy, other) = (AccountId::unique(), AccountId::unique());
    for class in [Class::Evm, Class::Logs, Class::Bulk] {
        let (node, held) = holding().await;
        let client = Arc::new(node.client());
        let share = EndpointLimits::default().connections_max / 2;
        let slow = join_all((0..400).map(|_| ask_for(&client, greedy, class, "[\"hold\"]")));
        let others = async {
            until(async || held.load(Relaxed) == share).await;
            for turn in 0..20 {
                let params = format!("[{turn}]");
                assert_eq!(ask_for(&client, other, class, &params).await, said(&params));
            }
        };
        tokio::select! {
            _ = slow => panic!("the node answered"),
            () = others => {}
        }
        assert_eq!(held.load(Relaxed), share, "one account has half of the connections");
    }
}

/// The rejection of a full queue looked like a reply that took no time.
#[tokio::test]
async fn an_account_that_fills_the_queue_is_refused_and_others_are_not() {
    let (node, held) = holding().await;
    let limits = EndpointLimits { connections_max: 4, queue_calls_max: 8, ..EndpointLimits::default() };
    let client = Client::new(node.endpoint(), limits);
    let (greedy, other) = (AccountId::unique(), AccountId::unique());
    let running = join_all((0..2).map(|_| ask_for(&client, greedy, Class::Evm, "[\"hold\"]")));
    let rest = async {
        until(async || held.load(Relaxed) == 2).await;
        let waiting = join_all((0..4).map(|_| ask_for(&client, greedy, Class::Evm, "[\"hold\"]")));
        let refused = async {
            assert_eq!(ask_for(&client, greedy, Class::Evm, "[1]").await, Err(Fault::QueueFull));
            assert_eq!(ask_for(&client, other, Class::Evm, "[2]").await, said("[2]"));
        };
        tokio::select! {
            biased;
            _ = waiting => panic!("the node answered"),
            () = refused => {}
        }
        // Those that were given up make room.
        let again = ask_for(&client, greedy, Class::Evm, "[\"hold\"]");
        assert!(tokio::time::timeout(Duration::from_millis(1), again).await.is_err(), "it waits");
    };
    tokio::select! {
        _ = running => panic!("the node answered"),
        () = rest => {}
    }
}

/// A node that had answered at once got only a few connections. A call that came right after one that hung waited for it, and
/// no connection was made for it until the next call came.
#[tokio::test]
async fn a_call_does_not_wait_for_one_that_turns_out_to_be_slow() {
    let (node, held) = holding().await;
    let limits = EndpointLimits {
        near_connections_max: 1,
        near: Duration::from_millis(300),
        ..EndpointLimits::default()
    };
    let client = Client::new(node.endpoint(), limits);
    let account = AccountId::unique();
    assert_eq!(ask_for(&client, account, Class::Quick, "[1]").await, said("[1]"));
    let slow = ask_for(&client, account, Class::Quick, "[\"hold\"]");
    let other = async {
        until(async || held.load(Relaxed) == 1).await;
        assert_eq!(ask_for(&client, AccountId::unique(), Class::Quick, "[2]").await, said("[2]"));
    };
    tokio::select! {
        _ = slow => panic!("the node answered"),
        () = other => {}
    }
}

/// The connection and the reply memory of a call that nobody waited for were in use until its deadline.
#[tokio::test]
async fn an_exchange_that_nobody_waits_for_ends_soon() {
    let (node, held) = holding().await;
    let client = node.client();
    let account = AccountId::unique();
    let slow = join_all((0..3).map(|_| ask_for(&client, account, Class::Evm, "[\"hold\"]")));
    tokio::select! {
        _ = slow => panic!("the node answered"),
        () = until(async || held.load(Relaxed) == 3) => {}
    }
    until(async || client.stats().connections_open == 0 && held.load(Relaxed) == 0).await;
}
