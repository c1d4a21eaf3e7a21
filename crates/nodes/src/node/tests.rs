use alloy_primitives::B256;
use tokio::time::advance;

use super::*;
use crate::attempt::script::{Script, quick};
use crate::call::BlockId;

fn node(script: Script) -> Node<Script> {
    Node::new("node-a:8545", script, Instant::now())
}

async fn asked(node: &Node<Script>, call: &Call, patience: Duration) -> Result<Reply, Fault> {
    node.ask(call, Instant::now() + patience).await
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_timeout_is_the_callers_if_it_was_a_slow_query_and_others_were_answered() {
    let node = node(Script::hangs());
    let logs = Call { class: Class::Logs, ..quick() };
    for _ in 0..4 {
        let (slow, ()) = tokio::join!(asked(&node, &logs, SECOND), async {
            advance(SECOND / 2).await;
            node.replied(Class::Quick, Instant::now(), Instant::now());
        });
        assert_eq!(slow, Err(Fault::Timeout));
    }
    assert_eq!(node.grade(Instant::now()), Grade::Up);
    asked(&node, &logs, SECOND).await.unwrap_err();
    asked(&node, &logs, SECOND).await.unwrap_err();
    assert_eq!(node.grade(Instant::now()), Grade::Doubted, "nobody was answered");
}

#[tokio::test(start_paused = true)]
async fn a_look_up_that_is_never_answered_is_always_a_fault() {
    let node = node(Script::hangs());
    for _ in 0..4 {
        asked(&node, &quick(), SECOND).await.unwrap_err();
        node.replied(Class::Logs, Instant::now(), Instant::now());
    }
    assert_eq!(node.grade(Instant::now()), Grade::Down);
    assert!(node.counts().faults().any(|fault| fault == ("timeout", 4)));
}

/// A reply that was larger than our memory for it counted as one that no honest node sends, and made its node seem down.
#[tokio::test(start_paused = true)]
async fn our_own_lack_of_memory_is_not_the_nodes_fault() {
    let (node, now) = (node(Script::hangs()), Instant::now());
    for fault in [Fault::NoMemory, Fault::LargerThanMemory] {
        (0..20).for_each(|_| node.failed(fault, Class::Quick, now, now));
    }
    assert_eq!(node.grade(now), Grade::Up);
    assert!(node.counts().faults().any(|fault| fault == ("larger_than_memory", 20)));
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
async fn a_node_whose_places_are_doubted_is_asked_after_the_others_for_places_only() {
    let node = node(Script::hangs());
    let grade = |method| node.candidate(&Call { method, ..quick() }, Instant::now()).grade;
    node.doubt_places(Instant::now());
    for method in PLACE_METHODS {
        assert_eq!((grade(method), grade("eth_getBalance")), (Grade::Doubted, Grade::Up));
    }
    assert_eq!(node.grade(Instant::now()), Grade::Up, "it is not taken for a liar");
    advance(PLACES_DOUBTED_FOR).await;
    assert_eq!(PLACE_METHODS.map(grade), [Grade::Up; 2]);
}

#[tokio::test(start_paused = true)]
async fn what_it_lacks_is_learned() {
    let known = Known::default();
    known.set_head(BlockId { number: 100, hash: B256::ZERO });
    known.learn(Lack::Method, "eth_getProof", Some(5));
    known.learn(Lack::State, "eth_call", Some(40));
    known.learn(Lack::State, "eth_call", Some(20));
    assert!(known.lacks("eth_getProof") && !known.lacks("eth_call"));
    assert_eq!(known.lowest_state(), 41);
    known.learn(Lack::State, "eth_getProof", Some(90));
    assert_eq!((known.lowest_state_for("eth_getProof"), known.lowest_state_for("eth_call")), (91, 41));
    // A block that was reorganised away raised it above the head, and nobody could be asked for states any more.
    known.learn(Lack::State, "eth_call", Some(100));
    known.learn(Lack::State, "eth_getProof", Some(100));
    assert_eq!((known.lowest_state_for("eth_getProof"), known.lowest_state_for("eth_call")), (100, 41));
    // It made the node seem late with the block that took its place, too.
    known.learn(Lack::Block, "eth_getLogs", Some(99));
    assert_eq!(known.head_number(), Some(100));
}

#[tokio::test(start_paused = true)]
async fn its_debug_form_is_its_name_and_no_more() {
    assert_eq!(format!("{:?}", node(Script::hangs())), r#"Node { name: "node-a:8545", .. }"#);
}
