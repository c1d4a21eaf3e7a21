//! All nodes of this network.

mod confirm; // one call to several nodes, whose answers are compared
mod deep; // blocks below the window
mod everyone; // one question to all nodes
mod fetch; // block data with its proof
mod supplier; // who is asked: nodes or partners
mod together; // several calls to one node
mod probes; // partners are asked now and then whether they can be used
mod watched; // a node as its watcher sees it

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::Family;
use crate::attempt::{self, Answered, Failed, Judging, NodeRng, Rules};
use crate::budget::Budgets;
use crate::call::Call;
use crate::health::Grade;
use crate::left_out::LeftOut;
use crate::node::{Node, Standing};
use crate::partner::{Allowance, Partner};
use crate::transport::{Client, Endpoint, Limits, ReplyBuffers};
use crate::view::{self, Canon, View};
use crate::watch;
use watched::WatchedNode;

pub use confirm::{NodeAnswer, QuorumCall, QuorumEvent};
pub use everyone::Replies;
pub use fetch::{NotFetched, Proof, Proving};
pub use supplier::Supplier;

/// One endpoint, and what people call it.
#[derive(Debug)]
pub struct Remote {
    pub name: Option<String>,
    pub endpoint: Endpoint,
    /// Where it pushes new heads.
    pub heads: Option<Endpoint>,
    pub limits: Limits,
}

/// A partner's endpoint, and what may be asked of it.
#[derive(Debug)]
pub struct PartnerSettings {
    pub remote: Remote,
    pub methods: Option<Vec<&'static str>>,
    pub allowance: Allowance,
}

/// What a pool is made of.
#[derive(Debug)]
pub struct Settings {
    pub nodes: Vec<Remote>,
    pub partners: Vec<PartnerSettings>,
    pub family: Family,
    pub view: view::Settings,
    pub watch: watch::Settings,
    /// Bytes of replies that may be in memory at once, inflated, until their answers are handed over.
    pub reply_memory_bytes: usize,
}

/// A node of the pool.
pub type PoolNode = Node<Client>;

/// All nodes, what they agree on, and the partners.
pub struct Pool {
    nodes: Vec<Arc<PoolNode>>,
    partners: Arc<[Partner<Client>]>,
    view: Arc<View>,
    rules: Rules,
    partner_rules: Rules,
    family: Family,
    /// As the operator names it.
    chain_id: Option<u64>,
    memory: Arc<ReplyBuffers>,
    watcher: Mutex<Option<Watcher>>,
}

/// The thread on which the nodes are watched.
struct Watcher {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("nodes", &self.nodes).field("partners", &self.partners.len()).finish()
    }
}

/// How an answer is judged: by the number of its node and by what it says. Partners are numbered after the nodes.
pub(crate) type Judge<'a, 'j> = &'a (dyn Fn(usize, &Bytes) -> Judging<'j> + Sync);

impl Pool {
    /// Starts to watch the nodes, on a thread of its own.
    pub fn start(settings: Settings) -> io::Result<Arc<Self>> {
        let now = Instant::now();
        let memory = ReplyBuffers::new(settings.reply_memory_bytes);
        let is_only = settings.nodes.len() + settings.partners.len() == 1;
        let make = |remote: Remote| {
            let name = remote.name.unwrap_or_else(|| remote.endpoint.to_string());
            Node::new(name, Client::sharing(remote.endpoint, remote.limits, &memory, is_only), now)
        };
        let mut watched = Vec::new();
        for mut remote in settings.nodes {
            let heads = remote.heads.take();
            watched.push(Arc::new(WatchedNode { node: Arc::new(make(remote)), heads }));
        }
        let nodes = watched.iter().map(|watched| Arc::clone(&watched.node)).collect();
        let partners: Arc<[_]> = settings
            .partners
            .into_iter()
            .map(|partner| {
                let of_it = Partner::new(make(partner.remote), partner.methods, partner.allowance);
                of_it.with_checkpoint(settings.view.checkpoint)
            })
            .collect();
        let (view, chain_id) = (View::new(settings.view), settings.watch.chain_id);
        let watcher = Watcher::start(watched, Arc::clone(&partners), Arc::clone(&view), settings.watch)?;
        let rules = |rounds_max| Rules {
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
            // What is taken out of a partner's budget is one call.
            partner_rules: rules(1),
            family: settings.family,
            chain_id,
            memory,
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

    pub fn view(&self) -> &View {
        &self.view
    }

    /// The canonical chain as it is now; `None` before any node has told of it.
    pub fn canon(&self) -> Option<Arc<Canon>> {
        self.view.canon()
    }

    /// Asks nodes until one gives an answer that is believed.
    pub async fn ask(
        &self,
        call: &Call,
        judge: Judge<'_, '_>,
        deadline: Instant,
    ) -> Result<Answered<Client>, Failed> {
        let numbered = |node: &PoolNode, result: &Bytes| judge(self.number_of(node), result);
        attempt::ask(&self.nodes, call, &numbered, &self.rules, deadline).await
    }

    /// The widest range of blocks that some node searches for logs, as far as is known. What is wider than one node grants
    /// goes to the others.
    pub fn log_range(&self) -> u64 {
        self.members().map(|node| node.known().log_range()).max().unwrap_or(u64::MAX)
    }

    fn number_of(&self, node: &PoolNode) -> usize {
        self.nodes.iter().position(|other| std::ptr::eq(&**other, node)).unwrap_or(self.nodes.len())
    }

    /// The chain that this is, as the nodes or the operator say.
    pub fn chain_id(&self) -> Option<u64> {
        Some(self.view.chain_id()).filter(|&agreed| agreed > 0).or(self.chain_id)
    }

    fn of_this_chain(&self) -> impl Iterator<Item = &Arc<PoolNode>> {
        self.nodes.iter().filter(|node| node.known().standing() == Standing::Member)
    }

    /// Whether all nodes seem to be down. One of them may be back already.
    pub fn is_out(&self) -> bool {
        self.members().next().is_none()
    }

    /// Whether no node that may be used answers its watcher. Unlike [`Self::is_out`], callers cannot bring that about.
    pub fn is_silent(&self) -> bool {
        let now = Instant::now();
        let is_left_out = |node: &PoolNode| node.known().standing() == Standing::Stranger;
        self.nodes.iter().all(|node| is_left_out(node) || !node.presence().is_there(now))
    }

    /// Whether every node is left out, because it is of another chain or syncing.
    pub fn is_left_out(&self) -> bool {
        self.nodes.iter().all(|node| node.known().standing() == Standing::Stranger)
    }

    /// Whether nodes are left out because no quorum of them agrees on a chain.
    pub fn has_undecided_chain(&self) -> bool {
        let is_undecided = |reason: Arc<LeftOut>| matches!(*reason, LeftOut::Undecided { .. });
        self.nodes.iter().filter_map(|node| node.known().left_out()).any(is_undecided)
    }

    /// Nodes that answer their watchers and are of this chain: those whose heads count.
    pub fn counted(&self) -> impl Iterator<Item = &Arc<PoolNode>> {
        let now = Instant::now();
        self.of_this_chain().filter(move |node| node.presence().is_there(now))
    }

    /// Nodes that are of this chain and not down.
    fn members(&self) -> impl Iterator<Item = &Arc<PoolNode>> {
        let now = Instant::now();
        self.of_this_chain().filter(move |node| node.grade(now) != Grade::Down)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(watcher) = self.watcher.get_mut().take() {
            let _ended = watcher.stop.send(());
            let _joined = watcher.thread.join();
        }
    }
}

impl Watcher {
    fn start(
        nodes: Vec<Arc<WatchedNode>>,
        partners: Arc<[Partner<Client>]>,
        view: Arc<View>,
        settings: watch::Settings,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("chaingate-watch".to_owned()).spawn(move || {
            let stopped = async {
                let _dropped = stopped.await;
            };
            runtime.block_on(async {
                let probes = probes::run(&partners, &view, settings.chain_id);
                tokio::select! {
                    () = watch::run(nodes, Arc::clone(&view), settings.clone(), stopped) => {}
                    () = probes => {}
                }
            });
        })?;
        Ok(Self { stop, thread })
    }
}
