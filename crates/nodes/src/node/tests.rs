use alloy_primitives::B256;
use tokio::time::advance;

use super::*;
use crate::call::BlockId;
use crate::scheduler::tests::script::{Script, quick};

fn node(script: Script) -> Node<Script> {
    Node::new(NodeId::new(0), "node-a:8545", script)
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

/// A node that lies in every poll would have let everything be asked again all the time.
#[tokio::test(start_paused = true)]
async fn a_liar_ends_the_trust_epoch_once_for_each_exclusion() {
    let trust = TrustEpoch::default();
    let node = node(Script::hangs()).with_role(NodeRole::Own, &trust);
    let lie = || node.record_poll(Err(Fault::Wrong.into()), Instant::now());
    (0..5).for_each(|_| lie());
    assert!(!node.record_wrong_answer(&quick(), "it is excluded already"));
    assert_eq!(trust.now(), 1);
    advance(Duration::from_secs(3_600)).await;
    assert!(node.record_wrong_answer(&quick(), "again"));
    assert_eq!(trust.now(), 2);
    node.record_poll(Err(Fault::Timeout.into()), Instant::now());
    assert_eq!(trust.now(), 2);
}

/// The refusals of a node were forgotten every minute, so that the log repeated it and `/status` lost it.
#[tokio::test(start_paused = true)]
async fn refusals_are_kept_for_minutes_and_logged_once() {
    let node = node(Script::hangs());
    let capabilities = node.capabilities();
    node.record_missing(&quick(), MissingCapability::Method);
    node.record_log_range(&quick(), 1_000);
    assert!(!capabilities.is_unlogged(NodeRefusal::Method("eth_getBalance")));
    assert!(capabilities.is_unlogged(NodeRefusal::Method("eth_call")), "another method is another refusal");
    advance(9 * 60 * SECOND).await;
    capabilities.forget_old_refusals(Instant::now());
    assert_eq!(
        (capabilities.missing_methods(), capabilities.log_blocks_max()),
        (vec!["eth_getBalance"], Some(1_000))
    );
    advance(60 * SECOND).await;
    capabilities.forget_old_refusals(Instant::now());
    assert_eq!((capabilities.missing_methods(), capabilities.log_blocks_max()), (vec![], None));
    assert!(!capabilities.is_unlogged(NodeRefusal::LogRange), "it is the same node as before");
    node.record_missing(&quick(), MissingCapability::Method);
    capabilities.set_client_version("Geth/v2");
    assert_eq!(capabilities.missing_methods(), Vec::<&str>::new());
    assert!(
        capabilities.is_unlogged(NodeRefusal::Method("eth_getBalance")),
        "another program is another node"
    );
}

/// Takes no block hash, and answers by number about the block of its own chain.
struct TakesNumbersOnly {
    block_hash: B256,
}

impl Ask for TakesNumbersOnly {
    async fn ask(&self, call: &RpcCall, _deadline: Instant) -> Result<RpcReply, Fault> {
        let result = match call.method {
            "eth_getBlockByNumber" => format!(r#"{{"hash":"{}"}}"#, self.block_hash),
            _ if call.block_by_hash.is_some() => {
                let message = "the method eth_getBalance does not exist/is not available".to_owned();
                return Ok(RpcReply::Error(RpcError { code: -32601, message, data: None }));
            }
            _ => r#""0x7""#.to_owned(),
        };
        Ok(RpcReply::Result(result.into()))
    }
}

/// The block of this number may have been reorganised away between the question and the answer. The node seemed to lack the method.
#[tokio::test(start_paused = true)]
async fn an_answer_by_number_counts_only_for_the_block_that_was_meant() {
    let block = BlockId { number: 90, hash: B256::repeat_byte(9) };
    let call = RpcCall {
        params: format!(r#"["0x1","{}"]"#, block.hash).into(),
        block_by_hash: Some(block),
        ..quick()
    };
    for (block_hash, is_same) in [(block.hash, true), (B256::repeat_byte(8), false)] {
        let node = Node::new(NodeId::new(0), "node", TakesNumbersOnly { block_hash });
        for _ in 0..2 {
            let reply = node.ask(&call, Instant::now() + SECOND).await;
            let expected = if is_same { RpcReply::Result(r#""0x7""#.into()) } else { other_block() };
            assert_eq!(reply, Ok(expected));
        }
        assert!(node.capabilities().needs_number("eth_getBalance"));
    }
}
