//! All nodes of this network.

mod deep; // blocks below the window
mod fetch; // block data that is proven
mod history; // what nodes were shown to have of old blocks
mod inspection; // one look at every node
mod members; // which nodes there are, while they come and go
mod several; // one call to several nodes
mod standing; // whether what nodes have said is still taken for true
mod unproven; // blocks whose data fails its proof
mod partners; // nodes of other providers
mod watched; // a node as its watcher sees it

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use resources::Supervisor;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::ChainFamily;
use crate::budget::Budgets;
use crate::call::RpcCall;
use crate::exclusion::ExclusionReason;
use crate::health::Availability;
use crate::node::{Membership, Node};
use crate::node_id::NodeId;
use crate::partner::NodeRole;
use crate::scheduler::{
    self, CallFailure, CallOutcome, CallRules, NodeRng, Payload, ResultFinding, ResultJudge,
};
use crate::transport::{Client, Endpoint, ReplyBuffers};
use crate::view::{CanonicalChain, NodesView, ViewSettings};
use crate::watch::{self, WatchSettings};
use members::{NodeMaker, PoolMembers};
use unproven::UnprovenBlocks;
use watched::WatchedNode;

pub use fetch::{NotFetched, Proving};
pub use history::{Absence, AbsenceReplies};
pub use inspection::PoolInspection;
pub use members::TooManyNodes;
pub use several::QuorumCall;

/// The settings of one node.
#[derive(Debug)]
pub struct NodeSettings {
    pub name: Option<String>,
    pub endpoint: Endpoint,
    /// The endpoint that pushes new heads.
    pub heads: Option<Endpoint>,
    pub role: NodeRole,
}

/// The settings of a pool.
#[derive(Debug)]
pub struct PoolSettings {
    /// Those of the operator, and partners.
    pub nodes: Vec<NodeSettings>,
    pub family: ChainFamily,
    pub view: ViewSettings,
    pub watch: WatchSettings,
    /// Bytes of replies that may be in memory at once, inflated, until their answers are handed over.
    pub reply_memory_bytes: usize,
    /// How long what a quorum has confirmed is taken for true.
    pub confirmed_for: Duration,
}

/// A node of the pool.
pub type PoolNode = Node<Client>;

/// All nodes, and what those of the operator agree on.
pub struct Pool {
    members: PoolMembers,
    view: Arc<NodesView>,
    rules: CallRules,
    family: ChainFamily,
    /// The configured chain id.
    chain_id: Option<u64>,
    confirmed_for: Duration,
    unproven: UnprovenBlocks,
    watcher: Mutex<Option<WatcherThread>>,
}

/// The thread on which the nodes are watched.
struct WatcherThread {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("nodes", &self.nodes()).field("partners", &self.partners()).finish()
    }
}

impl Pool {
    /// Starts to watch the nodes, on a thread of its own.
    pub fn start(settings: PoolSettings, supervisor: &Supervisor) -> io::Result<Arc<Self>> {
        let (view, chain_id) = (NodesView::new(settings.view), settings.watch.chain_id);
        let memory = ReplyBuffers::new(settings.reply_memory_bytes);
        let maker = NodeMaker::new(memory, supervisor.clone(), Arc::clone(&view));
        let members = PoolMembers::new(maker, settings.nodes);
        let (watched, watched_view) = (members.watched(), Arc::clone(&view));
        let (watch_settings, supervisor) = (settings.watch, supervisor.clone());
        let watch = async move { watch::run(watched, watched_view, watch_settings, &supervisor).await };
        let watcher = WatcherThread::start(watch)?;
        let rules = CallRules {
            budgets: Budgets::new(Instant::now()),
            rng: NodeRng::seeded(rand::random()),
            read: scheduler::read,
            view: Arc::clone(&view),
        };
        Ok(Arc::new(Self {
            members,
            view,
            rules,
            family: settings.family,
            chain_id,
            confirmed_for: settings.confirmed_for,
            unproven: UnprovenBlocks::default(),
            watcher: Mutex::new(Some(watcher)),
        }))
    }

    /// The nodes of the operator at this moment.
    pub fn nodes(&self) -> Arc<Vec<Arc<PoolNode>>> {
        self.members.own()
    }

    /// The partners at this moment.
    pub fn partners(&self) -> Arc<Vec<Arc<PoolNode>>> {
        self.members.partners()
    }

    /// The node or partner with this id, if it was not removed.
    pub fn node(&self, id: NodeId) -> Option<Arc<PoolNode>> {
        let find = |nodes: &[Arc<PoolNode>]| nodes.iter().find(|node| node.id() == id).cloned();
        find(&self.nodes()).or_else(|| find(&self.partners()))
    }

    /// The memory that replies are read into.
    pub fn memory(&self) -> &ReplyBuffers {
        self.members.memory()
    }

    pub fn view(&self) -> &NodesView {
        &self.view
    }

    /// The present canonical chain. `None` before the first head.
    pub fn canonical_chain(&self) -> Option<Arc<CanonicalChain>> {
        self.view.canonical_chain()
    }

    /// Asks nodes until one gives an answer that is believed: `only` this one, or else all of the operator.
    pub async fn ask<F: ResultFinding>(
        &self,
        only: Option<NodeId>,
        call: &RpcCall,
        judge: ResultJudge<'_, '_, F>,
        deadline: Instant,
    ) -> CallOutcome<Client, F> {
        self.ask_payload(only, call, judge, deadline).await
    }

    async fn ask_payload<P: Payload, F: ResultFinding>(
        &self,
        only: Option<NodeId>,
        payload: &P,
        judge: ResultJudge<'_, '_, F, P::Results>,
        deadline: Instant,
    ) -> CallOutcome<Client, F, P::Results> {
        let nodes = match only {
            None => self.nodes(),
            Some(id) => Arc::new(self.node(id).into_iter().collect()),
        };
        let is_paid = |node: &Arc<PoolNode>| {
            node.partner_terms().is_none_or(|terms| terms.take(payload.calls() as u64))
        };
        if !nodes.iter().all(is_paid) {
            return CallOutcome { answer: Err(CallFailure::Unavailable), findings: Vec::new() };
        }
        scheduler::ask_one(nodes, payload, judge, &self.rules, deadline).await
    }

    /// Whether one of the nodes is known to lack a method: `only` this one, or else any of the operator.
    pub fn some_lack(&self, only: Option<NodeId>, method: &'static str) -> bool {
        let lacks = |node: &Arc<PoolNode>| node.capabilities().lacks(method);
        match only {
            None => self.nodes().iter().any(lacks),
            Some(id) => self.node(id).is_some_and(|node| lacks(&node)),
        }
    }

    /// Whether every node is known to lack the method or the state that a call needs, so that asking again does not help.
    pub fn all_lack(&self, call: &RpcCall) -> bool {
        let block = call.needs.block.unwrap_or(0);
        let lacks = |node: &PoolNode| {
            let capabilities = node.capabilities();
            let lacks_state = call.needs.state && capabilities.lowest_state_for(call.method) > block;
            lacks_state || capabilities.lacks(call.method)
        };
        self.nodes().iter().all(|node| lacks(node))
    }

    /// The widest range of blocks that some node searches for logs, as far as is known.
    pub fn log_range_max(&self) -> u64 {
        self.usable().map(|node| node.capabilities().log_range_max()).max().unwrap_or(u64::MAX)
    }

    /// The chain id that the nodes agree on, or else the configured one.
    pub fn chain_id(&self) -> Option<u64> {
        self.view.chain_id().or(self.chain_id)
    }

    /// Nodes of this chain.
    fn same_chain(&self) -> Vec<Arc<PoolNode>> {
        let is_member = |node: &&Arc<PoolNode>| node.capabilities().membership() == Membership::Member;
        self.nodes().iter().filter(is_member).cloned().collect()
    }

    /// Nodes of this chain that are not down.
    fn usable(&self) -> impl Iterator<Item = Arc<PoolNode>> {
        let now = Instant::now();
        self.same_chain().into_iter().filter(move |node| node.availability(now) != Availability::Down)
    }

    /// Nodes whose heads count: those of this chain that answer their watchers.
    pub fn voting(&self) -> impl Iterator<Item = Arc<PoolNode>> {
        let now = Instant::now();
        self.same_chain().into_iter().filter(move |node| node.presence().is_present(now))
    }

    /// Whether all nodes of this chain seem to be down. One of them may be back already.
    pub fn all_down(&self) -> bool {
        self.usable().next().is_none()
    }

    /// Whether no node that may be used answers its watcher. Unlike [`Self::all_down`], callers cannot cause that.
    pub fn all_unreachable(&self) -> bool {
        let now = Instant::now();
        self.nodes().iter().all(|node| is_excluded(node) || !node.presence().is_present(now))
    }

    /// Whether every node is excluded, because it is of another chain or syncing.
    pub fn all_excluded(&self) -> bool {
        self.nodes().iter().all(|node| is_excluded(node))
    }

    /// Whether nodes are excluded because no quorum of them agrees on a chain.
    pub fn has_undecided_chain(&self) -> bool {
        let is_undecided =
            |reason: Arc<ExclusionReason>| matches!(*reason, ExclusionReason::Undecided { .. });
        self.nodes().iter().filter_map(|node| node.capabilities().exclusion()).any(is_undecided)
    }
}

fn is_excluded(node: &PoolNode) -> bool {
    node.capabilities().membership() == Membership::Excluded
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(watcher) = self.watcher.get_mut().take() {
            let _ended = watcher.stop.send(());
            let _joined = watcher.thread.join();
        }
    }
}

impl WatcherThread {
    fn start(watch: impl Future<Output = ()> + Send + 'static) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("chaingate-watch".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _dropped = stopped => {}
                    () = watch => {}
                }
            });
        })?;
        Ok(Self { stop, thread })
    }
}
