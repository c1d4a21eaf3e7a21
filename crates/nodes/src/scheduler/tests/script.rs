//! Nodes that do as they are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use alloy_primitives::B256;
use bytes::Bytes;
use parking_lot::Mutex;
use resources::AccountId;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use crate::call::{Ask, BlockId, Class, Fault, Needs, RpcCall, RpcError, RpcReply};
use crate::node::Node;
use crate::node_id::NodeId;

pub(crate) const MS: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Answers(&'static str),
    Errs(i64),
    Fails(Fault),
    Hangs,
}

/// A node's part, which can be exchanged while it plays. Copies are the same node.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    act: Arc<Mutex<(Duration, Act)>>,
    asked: Arc<AtomicU64>,
    killed: Arc<Notify>,
}

impl Script {
    pub(crate) fn new(after: Duration, act: Act) -> Self {
        Self { act: Arc::new(Mutex::new((after, act))), asked: Arc::default(), killed: Arc::default() }
    }

    pub(crate) fn hangs() -> Self {
        Self::new(Duration::ZERO, Act::Hangs)
    }

    pub(crate) fn answers(result: &'static str) -> Self {
        Self::new(MS, Act::Answers(result))
    }

    pub(crate) fn fails(fault: Fault) -> Self {
        Self::new(Duration::ZERO, Act::Fails(fault))
    }

    pub(crate) fn plays(&self, after: Duration, act: Act) {
        *self.act.lock() = (after, act);
    }

    /// Ends all calls in flight, and refuses new ones.
    pub(crate) fn is_killed(&self) {
        self.plays(Duration::ZERO, Act::Fails(Fault::Connect));
        self.killed.notify_waiters();
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Relaxed)
    }

    /// This part as a node of the pool that has blocks up to 100.
    pub(crate) fn node(&self, name: &str) -> Arc<Node<Self>> {
        static NEXT_ID: AtomicU32 = AtomicU32::new(0);
        let node = Node::new(NodeId::new(NEXT_ID.fetch_add(1, Relaxed)), name, self.clone());
        node.capabilities().admit();
        node.capabilities().set_head(BlockId { number: 100, hash: B256::ZERO });
        Arc::new(node)
    }
}

impl Ask for Script {
    async fn ask(&self, _call: &RpcCall, deadline: Instant) -> Result<RpcReply, Fault> {
        self.asked.fetch_add(1, Relaxed);
        let (after, act) = *self.act.lock();
        let reply = async {
            sleep(after).await;
            match act {
                Act::Answers(result) => Ok(RpcReply::Result(Bytes::from_static(result.as_bytes()))),
                Act::Errs(code) => Ok(RpcReply::Error(RpcError { code, message: String::new(), data: None })),
                Act::Fails(fault) => Err(fault),
                Act::Hangs => std::future::pending().await,
            }
        };
        tokio::select! {
            reply = timeout_at(deadline, reply) => reply.unwrap_or(Err(Fault::Timeout)),
            () = self.killed.notified() => Err(Fault::Closed),
        }
    }
}

/// A look-up at block 90 that two may be at.
pub(crate) fn quick() -> RpcCall {
    RpcCall {
        method: "eth_getBalance",
        params: Bytes::from_static(b"[]"),
        class: Class::Quick,
        needs: Needs { block: Some(90), state: true, log_blocks: 0, gas: 0 },
        may_hedge: true,
        block_by_hash: None,
        trace: None,
        account: AccountId::NONE,
    }
}
