//! Which nodes there are, while they come and go. Calls in flight keep the nodes that they began with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use arc_swap::ArcSwap;
use resources::Supervisor;
use tokio::sync::watch;

use super::{NodeSettings, Pool, PoolNode, WatchedNode};
use crate::node::{Membership, Node};
use crate::node_id::NodeId;
use crate::scheduler::NODES_MAX;
use crate::transport::{Client, EndpointLimits, ReplyBuffers};
use crate::view::NodesView;

/// Makes nodes, and gives each its identity.
#[derive(Debug)]
pub(super) struct NodeMaker {
    memory: Arc<ReplyBuffers>,
    supervisor: Supervisor,
    /// Its trust ends when one of the nodes is proven wrong.
    view: Arc<NodesView>,
    next_id: AtomicU32,
}

impl NodeMaker {
    pub(super) fn new(memory: Arc<ReplyBuffers>, supervisor: Supervisor, view: Arc<NodesView>) -> Self {
        Self { memory, supervisor, view, next_id: AtomicU32::new(0) }
    }

    /// `nodes` share the memory for replies.
    fn make(&self, settings: NodeSettings, nodes: usize) -> Arc<WatchedNode> {
        let NodeSettings { name, endpoint, heads, role } = settings;
        let id = NodeId::new(self.next_id.fetch_add(1, Relaxed));
        let name = name.unwrap_or_else(|| endpoint.to_string());
        let client = Client::sharing(endpoint, EndpointLimits::default(), &self.memory, nodes);
        let node = Node::new(id, name, client).with_role(role, self.view.trust_epoch());
        Arc::new(WatchedNode { node: Arc::new(node), heads, supervisor: self.supervisor.clone() })
    }
}

#[derive(Debug)]
pub(super) struct PoolMembers {
    maker: NodeMaker,
    /// All nodes, as the thread that watches them sees them.
    watched: watch::Sender<Vec<Arc<WatchedNode>>>,
    /// Those of the operator, which most calls are about.
    own: ArcSwap<Vec<Arc<PoolNode>>>,
    partners: ArcSwap<Vec<Arc<PoolNode>>>,
}

/// A pool has as many nodes as it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pool has at most {NODES_MAX} nodes")]
pub struct TooManyNodes;

impl PoolMembers {
    pub(super) fn new(maker: NodeMaker, nodes: Vec<NodeSettings>) -> Self {
        let count = nodes.len();
        let watched = nodes.into_iter().map(|settings| maker.make(settings, count)).collect();
        let members = Self {
            maker,
            watched: watch::Sender::new(watched),
            own: ArcSwap::default(),
            partners: ArcSwap::default(),
        };
        members.publish(&members.watched.borrow());
        members
    }

    pub(super) fn memory(&self) -> &ReplyBuffers {
        &self.maker.memory
    }

    pub(super) fn own(&self) -> Arc<Vec<Arc<PoolNode>>> {
        self.own.load_full()
    }

    pub(super) fn partners(&self) -> Arc<Vec<Arc<PoolNode>>> {
        self.partners.load_full()
    }

    pub(super) fn watched(&self) -> watch::Receiver<Vec<Arc<WatchedNode>>> {
        self.watched.subscribe()
    }

    /// Changes the list for callers and watchers, one change at a time. `change` says whether it has changed something.
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<WatchedNode>>) -> bool) -> bool {
        self.watched.send_if_modified(|watched| {
            let is_changed = change(watched);
            if is_changed {
                self.publish(watched);
            }
            is_changed
        })
    }

    fn publish(&self, watched: &[Arc<WatchedNode>]) {
        let nodes = watched.iter().map(|watched| Arc::clone(&watched.node));
        let (partners, own) = nodes.partition(|node| node.is_partner());
        self.own.store(Arc::new(own));
        self.partners.store(Arc::new(partners));
    }
}

impl Pool {
    /// Adds a node while calls are made. It is asked once its watcher has found that it is of this chain. From then on, an own node
    /// has a vote.
    pub fn add_node(&self, settings: NodeSettings) -> Result<NodeId, TooManyNodes> {
        let nodes = self.nodes().len() + self.partners().len() + 1;
        let node = self.members.maker.make(settings, nodes);
        let id = node.node.id();
        let is_added = self.members.change(|nodes| {
            let has_room = nodes.len() < NODES_MAX;
            if has_room {
                nodes.push(node);
            }
            has_room
        });
        if is_added { Ok(id) } else { Err(TooManyNodes) }
    }

    /// Whether a node has shown what it can be asked: an own node its head, a partner its chain. It is also known if it is excluded or
    /// was removed.
    pub fn is_known(&self, id: NodeId) -> bool {
        let Some(node) = self.node(id) else { return true };
        match node.capabilities().membership() {
            Membership::Unchecked => false,
            Membership::Member => node.is_partner() || self.view.reach(id).is_some(),
            Membership::Excluded => true,
        }
    }

    /// Removes a node while calls are made: its watcher ends, and its votes do not count any more. Calls in flight may still have its
    /// answer. Returns whether there was such a node.
    pub fn remove_node(&self, id: NodeId) -> bool {
        self.members.change(|nodes| {
            let before = nodes.len();
            nodes.retain(|node| node.node.id() != id);
            nodes.len() < before
        })
    }
}
