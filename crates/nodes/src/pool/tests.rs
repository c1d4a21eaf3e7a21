//! Nodes that come and go while calls are made, over real sockets.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use alloy_primitives::B256;
use bytes::Bytes;
use resources::AccountId;
use serde_json::Value;
use tokio::time::timeout;

use super::*;
use crate::call::{Class, Needs, RpcReply};
use crate::partner::{PartnerQuota, PartnerTerms};
use crate::scheduler::{AnswersEvent, Judgement, Judging, NodeReply};
use crate::transport::tests::node::{Node as ServedNode, id_of, result, until};
use crate::watch::tests::model::{ModelNode, World};

const SECOND: Duration = Duration::from_secs(1);

/// Nodes of one small world behind sockets.
struct Land {
    world: World,
    tip: B256,
    nodes: Vec<(Arc<ModelNode>, ServedNode)>,
}

impl Land {
    async fn new(nodes: usize) -> Self {
        let world = World::default();
        let tip = world.grow(world.genesis(0), 300, 1);
        let mut served = Vec::new();
        for number in 0..nodes {
            let node = ModelNode::new(number, &world, tip);
            let answering = Arc::clone(&node);
            let socket = ServedNode::answering(move |body| answer(&answering, body)).await;
            served.push((node, socket));
        }
        Self { world, tip, nodes: served }
    }

    fn settings(&self, node: usize) -> NodeSettings {
        NodeSettings { name: None, endpoint: self.nodes[node].1.endpoint(), heads: None, role: NodeRole::Own }
    }

    fn pool(&self, nodes: usize) -> Arc<Pool> {
        let settings = PoolSettings {
            nodes: (0..nodes).map(|node| self.settings(node)).collect(),
            family: ChainFamily::Ethereum,
            view: ViewSettings::default(),
            watch: WatchSettings { poll_every: Some(Duration::from_millis(20)), ..WatchSettings::default() },
            reply_memory_bytes: 16 << 20,
            confirmed_for: SECOND,
        };
        Pool::start(settings, &Supervisor::default()).unwrap()
    }

    /// Lets some nodes have one more block, and waits until that is the head.
    async fn grow(&mut self, pool: &Pool, nodes: &[usize]) {
        self.tip = self.world.grow(self.tip, 1, 1);
        nodes.iter().for_each(|node| self.nodes[*node].0.set_head(self.tip));
        until(async || pool.view().head().is_some_and(|head| head.hash == self.tip)).await;
    }

    /// Lets a node have a longer branch that no other node of the pool has.
    fn leave(&self, node: usize) {
        let fork = self.world.ancestor(self.tip, 5);
        self.nodes[node].0.set_head(self.world.grow(fork, 100, 9));
    }
}

fn answer(node: &ModelNode, body: &Value) -> String {
    if let Some(calls) = body.as_array() {
        return format!("[{}]", calls.iter().map(|call| answer(node, call)).collect::<Vec<_>>().join(","));
    }
    // The methods of the model are few, and a call borrows its method for ever.
    let method: &'static str = Box::leak(body["method"].as_str().unwrap().to_owned().into_boxed_str());
    let call = RpcCall { method, params: body["params"].to_string().into(), ..balance(0) };
    match node.answer(&call) {
        RpcReply::Result(found) => result(id_of(body), std::str::from_utf8(&found).unwrap()),
        RpcReply::Error(error) => {
            let (id, code, message) = (id_of(body), error.code, error.message);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
        }
    }
}

fn balance(block: u64) -> RpcCall {
    RpcCall {
        method: "eth_getBalance",
        params: Bytes::from(format!(r#"["0x0000000000000000000000000000000000000001","{block:#x}"]"#)),
        class: Class::Quick,
        needs: Needs { block: Some(block), ..Needs::default() },
        may_hedge: true,
        account: AccountId::NONE,
        block_by_hash: None,
        trace: None,
    }
}

/// Asks one node, and a quorum, until it is told to stop. Returns how many calls were made.
async fn load(pool: Arc<Pool>, is_over: Arc<AtomicBool>, calls: Arc<AtomicU64>) {
    let judge = |_: NodeId, _: &Bytes| Judging::Done(Judgement::Believed);
    while !is_over.load(Relaxed) {
        let call = balance(300);
        let deadline = Instant::now() + 10 * SECOND;
        let asked = pool.ask(None, &call, &judge, deadline).await;
        assert!(asked.answer.is_ok(), "{:?}", asked.answer.err());
        let quorum = pool.quorum();
        let (mut several, mut voters) = (pool.ask_several(&call, deadline), HashSet::new());
        while voters.len() < quorum {
            match several.next(quorum - voters.len()).await {
                AnswersEvent::Answer(answer) => {
                    assert!(matches!(answer.reply, NodeReply::Result(_)), "{answer:?}");
                    assert!(voters.insert(answer.node), "{:?} has voted twice", answer.node);
                }
                AnswersEvent::Over => panic!("{} of {quorum} answered", voters.len()),
                AnswersEvent::Failed { .. } | AnswersEvent::Stalled => {}
            }
        }
        calls.fetch_add(2, Relaxed);
    }
}

/// Nodes were known by their positions, so none could go while the program ran.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_come_and_go_under_load_and_no_call_fails() {
    let mut land = Land::new(6).await;
    let pool = land.pool(3);
    let mut ids: Vec<_> = pool.nodes().iter().map(|node| node.id()).zip(0..).collect();
    land.grow(&pool, &[0, 1, 2]).await;
    let (is_over, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let callers: Vec<_> = (0..8)
        .map(|_| tokio::spawn(load(Arc::clone(&pool), Arc::clone(&is_over), Arc::clone(&calls))))
        .collect();
    let mut seen: HashSet<_> = ids.iter().map(|(id, _)| *id).collect();
    for round in 0..12 {
        let joining = (3 + round) % 6;
        land.nodes[joining].0.set_head(land.tip);
        let id = pool.add_node(land.settings(joining)).unwrap();
        assert!(seen.insert(id), "an identity is never used again");
        until(async || pool.voting().count() == 4 && pool.quorum() == 3).await;
        ids.push((id, joining));
        land.grow(&pool, &ids.iter().map(|(_, node)| *node).collect::<Vec<_>>()).await;
        let (gone, node) = ids.remove(0);
        assert!(pool.remove_node(gone) && !pool.remove_node(gone) && pool.node(gone).is_none());
        until(async || pool.quorum() == 2).await;
        // From the second round on, two that were removed have the longer branch, as many as a quorum.
        land.leave(node);
        land.grow(&pool, &ids.iter().map(|(_, node)| *node).collect::<Vec<_>>()).await;
        assert_eq!(pool.nodes().iter().map(|node| node.id()).collect::<Vec<_>>(), ids_of(&ids));
    }
    let before = calls.load(Relaxed);
    until(async || calls.load(Relaxed) > before + 100).await;
    is_over.store(true, Relaxed);
    for caller in callers {
        timeout(20 * SECOND, caller).await.expect("it ends").unwrap();
    }
    assert_eq!(pool.view().reorganisations().0, 0, "those that were removed have no votes");
}

fn ids_of(nodes: &[(NodeId, usize)]) -> Vec<NodeId> {
    nodes.iter().map(|(id, _)| *id).collect()
}

/// Its answer was of no node that could be named any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_in_flight_keeps_the_nodes_that_it_began_with() {
    let mut land = Land::new(1).await;
    let pool = land.pool(1);
    land.grow(&pool, &[0]).await;
    let id = pool.nodes()[0].id();
    let (call, deadline) = (balance(300), Instant::now() + 10 * SECOND);
    let mut several = pool.ask_several(&call, deadline);
    assert!(pool.remove_node(id));
    let event = several.next(1).await;
    assert!(matches!(&event, AnswersEvent::Answer(answer) if answer.node == id), "{event:?}");
    let judge = |_: NodeId, _: &Bytes| Judging::Done(Judgement::Believed);
    assert!(pool.ask(None, &call, &judge, deadline).await.answer.is_err(), "nobody is left");
}

/// A partner is a node like any other, but for its vote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partner_comes_and_goes_and_never_has_a_vote() {
    let mut land = Land::new(2).await;
    let pool = land.pool(1);
    land.grow(&pool, &[0]).await;
    land.leave(1);
    let quota = PartnerQuota { calls_per_second: 10, calls_per_day: 3 };
    let terms = PartnerTerms::new(Some(vec!["eth_getBalance"]), quota);
    let role = NodeRole::Partner(Box::new(terms));
    let id = pool.add_node(NodeSettings { role, ..land.settings(1) }).unwrap();
    until(async || pool.partners_for("eth_getBalance") == [id]).await;
    assert!(pool.partners_for("eth_call").is_empty());
    assert_eq!((pool.nodes().len(), pool.quorum(), pool.voting().count()), (1, 1, 1));

    let (call, deadline) = (balance(300), Instant::now() + 10 * SECOND);
    let judge = |_: NodeId, _: &Bytes| Judging::Done(Judgement::Believed);
    let answered = pool.ask(Some(id), &call, &judge, deadline).await.answer.unwrap();
    assert_eq!(answered.node.id(), id);
    assert!(pool.ask(Some(id), &call, &judge, deadline).await.answer.is_ok());
    assert!(pool.ask(Some(id), &call, &judge, deadline).await.answer.is_err(), "a probe was the first call");
    assert_eq!(pool.partners()[0].counts().attempts.load(Relaxed), 2);
    assert_eq!(pool.view().reorganisations().0, 0, "its longer branch is not followed");

    assert!(pool.remove_node(id) && pool.partners().is_empty() && pool.node(id).is_none());
    assert!(pool.ask(Some(id), &call, &judge, deadline).await.answer.is_err());
}
