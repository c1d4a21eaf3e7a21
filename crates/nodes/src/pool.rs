//! All nodes of this network.

mod confirm; // one call to several nodes, whose answers are compared
mod deep; // blocks below the window
mod everyone; // one call to all nodes
mod fetch; // block data that is proven
mod history; // what nodes were shown to have of old blocks
mod standing; // whether what nodes have said is still taken for true
mod supplier; // who is asked: nodes or partners
mod together; // several calls to one node
mod probes; // probes of partners
mod watched; // a node as its watcher sees it

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use resources::Supervisor;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::ChainFamily;
use crate::attempt::{self, AttemptRules, CallOutcome, NodeRng, ResultFinding, ResultJudge};
use crate::budget::Budgets;
use crate::call::RpcCall;
use crate::exclusion::ExclusionReason;
use crate::health::Availability;
use crate::node::{Membership, Node};
use crate::partner::{Partner, PartnerQuota};
use crate::transport::{Client, Endpoint, EndpointLimits, ReplyBuffers};
use crate::view::{CanonicalChain, NodesView, ViewSettings};
use crate::watch::{self, WatchSettings};
use watched::WatchedNode;

pub use confirm::{NodeAnswer, QuorumCall, QuorumEvent};
pub use everyone::Replies;
pub use fetch::{NotFetched, Proving};
pub use history::{Absence, AbsenceReplies};
pub use supplier::Supplier;

/// One endpoint, and its name.
#[derive(Debug)]
pub struct EndpointSettings {
    pub name: Option<String>,
    pub endpoint: Endpoint,
    /// The endpoint that pushes new heads.
    pub heads: Option<Endpoint>,
}

/// A partner's endpoint, and what may be asked of it.
#[derive(Debug)]
pub struct PartnerSettings {
    pub remote: EndpointSettings,
    pub methods: Option<Vec<&'static str>>,
    pub quota: PartnerQuota,
}

/// The settings of a pool.
#[derive(Debug)]
pub struct PoolSettings {
    pub nodes: Vec<EndpointSettings>,
    pub partners: Vec<PartnerSettings>,
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

/// All nodes, what they agree on, and the partners.
pub struct Pool {
    nodes: Vec<Arc<PoolNode>>,
    partners: Arc<[Partner<Client>]>,
    view: Arc<NodesView>,
    rules: AttemptRules,
    partner_rules: AttemptRules,
    family: ChainFamily,
    /// The configured chain id.
    chain_id: Option<u64>,
    memory: Arc<ReplyBuffers>,
    confirmed_for: Duration,
    /// How often a quorum has contradicted what a quorum has said before.
    corrections: AtomicU64,
    watcher: Mutex<Option<WatcherThread>>,
}

/// The thread on which the nodes are watched.
struct WatcherThread {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("nodes", &self.nodes).field("partners", &self.partners.len()).finish()
    }
}

impl Pool {
    /// Starts to watch the nodes, on a thread of its own.
    pub fn start(settings: PoolSettings, supervisor: &Supervisor) -> io::Result<Arc<Self>> {
        let now = Instant::now();
        let memory = ReplyBuffers::new(settings.reply_memory_bytes);
        let endpoints = settings.nodes.len() + settings.partners.len();
        let make = |remote: EndpointSettings| {
            let name = remote.name.unwrap_or_else(|| remote.endpoint.to_string());
            Node::new(name, Client::sharing(remote.endpoint, EndpointLimits::default(), &memory, endpoints))
        };
        let mut watched = Vec::new();
        for mut remote in settings.nodes {
            let heads = remote.heads.take();
            let (node, supervisor) = (Arc::new(make(remote)), supervisor.clone());
            watched.push(Arc::new(WatchedNode { node, heads, supervisor }));
        }
        let nodes = watched.iter().map(|watched| Arc::clone(&watched.node)).collect();
        let partners: Arc<[_]> = settings
            .partners
            .into_iter()
            .map(|partner| {
                let PartnerSettings { remote, methods, quota } = partner;
                Partner::new(make(remote), methods, quota).with_checkpoint(settings.view.checkpoint)
            })
            .collect();
        let (view, chain_id) = (NodesView::new(settings.view), settings.watch.chain_id);
        let (partners_of_watcher, view_of_watcher) = (Arc::clone(&partners), Arc::clone(&view));
        let (watch_settings, supervisor) = (settings.watch, supervisor.clone());
        let watch = async move {
            tokio::join!(
                watch::run(watched, Arc::clone(&view_of_watcher), watch_settings, &supervisor),
                probes::run(&partners_of_watcher, &view_of_watcher, chain_id, &supervisor),
            );
        };
        let watcher = WatcherThread::start(watch)?;
        let rules = |rounds_max| AttemptRules {
            budgets: Budgets::new(now),
            rng: NodeRng::seeded(rand::random()),
            read: attempt::read,
            rounds_max,
        };
        Ok(Arc::new(Self {
            nodes,
            partners,
            view,
            rules: rules(attempt::ROUNDS_MAX),
            // One call is taken out of a partner's quota, so it is asked once.
            partner_rules: rules(1),
            family: settings.family,
            chain_id,
            memory,
            confirmed_for: settings.confirmed_for,
            corrections: AtomicU64::new(0),
            watcher: Mutex::new(Some(watcher)),
        }))
    }

    pub fn nodes(&self) -> &[Arc<PoolNode>] {
        &self.nodes
    }

    /// The memory that replies are read into.
    pub fn memory(&self) -> &ReplyBuffers {
        &self.memory
    }

    pub fn partners(&self) -> &[Partner<Client>] {
        &self.partners
    }

    pub fn view(&self) -> &NodesView {
        &self.view
    }

    /// The present canonical chain. `None` before the first head.
    pub fn canonical_chain(&self) -> Option<Arc<CanonicalChain>> {
        self.view.canonical_chain()
    }

    /// Asks nodes until one gives an answer that is believed.
    pub async fn ask<F: ResultFinding>(
        &self,
        call: &RpcCall,
        judge: ResultJudge<'_, '_, F>,
        deadline: Instant,
    ) -> CallOutcome<Client, F> {
        attempt::ask(&self.nodes, call, judge, &self.rules, deadline).await
    }

    /// The widest range of blocks that some node searches for logs, as far as is known.
    pub fn log_range_max(&self) -> u64 {
        self.members().map(|node| node.capabilities().log_range_max()).max().unwrap_or(u64::MAX)
    }

    fn number_of(&self, node: &PoolNode) -> usize {
        self.nodes.iter().position(|other| std::ptr::eq(&**other, node)).unwrap_or(self.nodes.len())
    }

    /// The chain id that the nodes agree on, or else the configured one.
    pub fn chain_id(&self) -> Option<u64> {
        self.view.chain_id().or(self.chain_id)
    }

    fn of_this_chain(&self) -> impl Iterator<Item = &Arc<PoolNode>> {
        self.nodes.iter().filter(|node| node.capabilities().membership() == Membership::Member)
    }

    /// Whether all nodes of this chain seem to be down. One of them may be back already.
    pub fn is_out(&self) -> bool {
        self.members().next().is_none()
    }

    /// Whether no node that may be used answers its watcher. Unlike [`Self::is_out`], callers cannot cause that.
    pub fn is_silent(&self) -> bool {
        let now = Instant::now();
        self.nodes.iter().all(|node| is_excluded(node) || !node.presence().is_present(now))
    }

    /// Whether every node is excluded, because it is of another chain or syncing.
    pub fn is_excluded(&self) -> bool {
        self.nodes.iter().all(|node| is_excluded(node))
    }

    /// Whether nodes are excluded because no quorum of them agrees on a chain.
    pub fn has_undecided_chain(&self) -> bool {
        let is_undecided =
            |reason: Arc<ExclusionReason>| matches!(*reason, ExclusionReason::Undecided { .. });
        self.nodes.iter().filter_map(|node| node.capabilities().exclusion()).any(is_undecided)
    }

    /// Nodes whose heads count: those of this chain that answer their watchers.
    pub fn counted(&self) -> impl Iterator<Item = &Arc<PoolNode>> {
        let now = Instant::now();
        self.of_this_chain().filter(move |node| node.presence().is_present(now))
    }

    /// Nodes that are of this chain and not down.
    fn members(&self) -> impl Iterator<Item = &Arc<PoolNode>> {
        let now = Instant::now();
        self.of_this_chain().filter(move |node| node.availability(now) != Availability::Down)
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
