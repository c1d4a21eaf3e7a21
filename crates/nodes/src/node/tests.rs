use alloy_primitives::B256;
use tokio::time::advance;

use super::*;
use crate::attempt::script::{Script, quick};
use crate::call::BlockId;

fn node(script: Script) -> Node<Script> {
    Node::new("node-a:8545", script)
}

async fn asked(node: &Node<Script>, call: &RpcCall, patience: Duration) -> Result<RpcReply, Fault> {
    node.ask(call, Instant::now() + patience).await
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_timeout_is_the_callers_if_it_was_a_slow_query_and_others_were_answered() {
    let node = node(Script::hangs());
    let logs = RpcCall { class: Class::Logs, ..quick() };
    for _ in 0..4 {
        let (slow, ()) = tokio::join!(asked(&node, &logs, SECOND), async {
            advance(SECOND / 2).await;
            node.state.lock().record_reply(Class::Quick, Instant::now(), Instant::now());
        });
        assert_eq!(slow, Err(Fault::Timeout));
    }
    assert_eq!(node.availability(Instant::now()), Availability::Up);
    asked(&node, &logs, SECOND).await.unwrap_err();
    asked(&node, &logs, SECOND).await.unwrap_err();
    assert_eq!(node.availability(Instant::now()), Availability::InDoubt, "nobody was answered");
}

#[tokio::test(start_paused = true)]
async fn a_look_up_that_is_never_answered_is_always_a_fault() {
    let node = node(Script::hangs());
    for _ in 0..4 {
        asked(&node, &quick(), SECOND).await.unwrap_err();
        node.state.lock().record_reply(Class::Logs, Instant::now(), Instant::now());
    }
    assert_eq!(node.availability(Instant::now()), Availability::Down);
    assert!(node.counts().faults().any(|fault| fault == ("timeout", 4)));
}

/// A reply that was larger than our memory for it counted as one that no honest node sends, and made its node seem down.
#[tokio::test(start_paused = true)]
async fn a_lack_of_memory_is_not_a_fault_of_the_node() {
    let (node, now) = (node(Script::hangs()), Instant::now());
    for fault in [Fault::NoMemory, Fault::LargerThanMemory] {
        (0..20).for_each(|_| node.record_failure(fault, Class::Quick, now, now));
    }
    assert_eq!(node.availability(now), Availability::Up);
    assert!(node.counts().faults().any(|fault| fault == ("larger_than_memory", 20)));
}

/// Calls that a full queue refused were recorded as answers that took no time, so a node that was overloaded got even more
/// calls.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_never_sent_makes_no_node_seem_fast() {
    let node = node(Script::fails(Fault::QueueFull));
    node.state.lock().record_reply(Class::Quick, Instant::now() - SECOND, Instant::now());
    let before = node.recent_latency();
    for _ in 0..20 {
        assert_eq!(asked(&node, &quick(), SECOND).await, Err(Fault::QueueFull));
        node.record_failure(Fault::Timeout, Class::Quick, Instant::now(), Instant::now());
    }
    assert_eq!((node.recent_latency(), node.in_flight(Class::Quick)), (before, 0));
    assert_eq!(node.availability(Instant::now()), Availability::Up);
    assert!(node.counts().faults().any(|fault| fault == ("queue_full", 20)));
}

#[tokio::test(start_paused = true)]
async fn a_call_in_flight_counts_until_it_is_dropped() {
    let node = std::sync::Arc::new(node(Script::hangs()));
    let asking = std::sync::Arc::clone(&node);
    let task = tokio::spawn(async move { asked(&asking, &quick(), SECOND).await });
    tokio::task::yield_now().await;
    assert_eq!(node.in_flight(Class::Quick), 1);
    task.abort();
    assert!(task.await.is_err());
    assert_eq!(node.in_flight(Class::Quick), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_locations_are_doubted_is_asked_after_the_others_for_locations_only() {
    let node = node(Script::hangs());
    let availability = |method| node.candidate(&RpcCall { method, ..quick() }, Instant::now()).availability;
    node.doubt_locations(Instant::now());
    for method in LOCATION_METHODS {
        assert_eq!(
            (availability(method), availability("eth_getBalance")),
            (Availability::InDoubt, Availability::Up)
        );
    }
    assert_eq!(node.availability(Instant::now()), Availability::Up, "it is not taken for a liar");
    advance(LOCATIONS_DOUBTED_FOR).await;
    assert_eq!(LOCATION_METHODS.map(availability), [Availability::Up; 2]);
}

#[tokio::test(start_paused = true)]
async fn missing_capabilities_are_learned() {
    let node = node(Script::hangs());
    let capabilities = node.capabilities();
    capabilities.set_head(BlockId { number: 100, hash: B256::ZERO });
    capabilities.record_missing(MissingCapability::Method, "eth_getProof", Some(5));
    capabilities.record_missing(MissingCapability::State, "eth_call", Some(40));
    capabilities.record_missing(MissingCapability::State, "eth_call", Some(20));
    assert!(capabilities.lacks("eth_getProof") && !capabilities.lacks("eth_call"));
    assert_eq!(capabilities.lowest_state_for("eth_call"), 41);
    capabilities.record_missing(MissingCapability::State, "eth_getProof", Some(90));
    assert_eq!(
        (capabilities.lowest_state_for("eth_getProof"), capabilities.lowest_state_for("eth_call")),
        (91, 41)
    );
    // A block that was reorganised away raised it above the head, and nobody could be asked for states any more.
    capabilities.record_missing(MissingCapability::State, "eth_call", Some(100));
    capabilities.record_missing(MissingCapability::State, "eth_getProof", Some(100));
    assert_eq!(
        (capabilities.lowest_state_for("eth_getProof"), capabilities.lowest_state_for("eth_call")),
        (100, 41)
    );
    // It made the node seem late with the block that took its place, too.
    capabilities.record_missing(MissingCapability::Block, "eth_getLogs", Some(99));
    assert_eq!(capabilities.head_number(), Some(100));
}

/// Another node may be back at the same url. What it said about old states counted as if the one before had said it.
#[tokio::test(start_paused = true)]
async fn what_a_lost_node_was_shown_to_have_is_forgotten() {
    let node = node(Script::hangs());
    let capabilities = node.capabilities();
    capabilities.set_head(BlockId { number: 1_000, hash: B256::ZERO });
    let can_know =
        |block| (capabilities.can_know_state(block), capabilities.can_know(HistoryKind::Logs, block));
    assert_eq!((can_know(7), can_know(990)), ((false, None), (true, Some(true))));
    let mut reaches = HistoryReaches::default();
    reaches.set(HistoryKind::Logs, HistoryReach::From(100));
    capabilities.set_history(reaches, 1_000);
    capabilities.set_lowest_state(0);
    assert_eq!((can_know(7), can_know(100)), ((true, Some(false)), (true, Some(true))));
    capabilities.forget_history();
    assert_eq!((can_know(7), capabilities.lowest_state()), ((false, None), None));
}

#[tokio::test(start_paused = true)]
async fn the_debug_output_is_only_the_name() {
    assert_eq!(format!("{:?}", node(Script::hangs())), r#"Node { name: "node-a:8545", .. }"#);
}
