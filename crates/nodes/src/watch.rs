//! Polling every node's head.
//!
//! Each node has a task that asks for its identity (chain id, genesis, syncing), then polls its newest block and reports it to
//! the view, with the blocks below it. A node of another chain is excluded, and asked for its identity again later. One that does
//! not answer is retried, and asked for its identity when it is back, because another node may answer then.

mod chain; // which chain this is, and which nodes are of it
mod follow; // the watcher of one node
mod header; // reading and checking a node's block
mod probe; // the lowest block with state
mod questions; // the calls of a watcher

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use crate::call::{Ask, BlockId, Fault};
use crate::exclusion::ExclusionReason;
use crate::view::NodesView;
use chain::{ChainAgreement, ConfiguredIdentity};
use follow::NodeWatcher;
use header::HeaderCheck;
pub use header::read_block;
use probe::Prober;

/// How often it is checked whether the head is stale.
const STALE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The block that a node has pushed as its new head. It is polled at once.
pub(crate) type HeadHint = BlockId;

/// A node as a watcher needs it.
pub(crate) trait Watched: Send + Sync + 'static {
    type Client: Ask;

    fn client(&self) -> &Self::Client;
    /// Its name in the log, without credentials.
    fn name(&self) -> &str;
    /// Records that a watcher asks it something.
    fn record_question(&self) {}
    /// Records that it has replied to a watcher, whatever the reply.
    fn record_reply(&self) {}
    /// Records that several polls in a row have failed.
    fn record_loss(&self) {}
    /// Whether it has replied to anyone but a watcher since then.
    fn has_replied_since(&self, _then: Instant) -> bool {
        false
    }
    /// Records how the last poll ended.
    fn record_poll(&self, outcome: Result<(), Fault>);
    /// Records the newest block of the canonical chain that it has, or its own newest block if that is above the head.
    fn record_head(&self, head: BlockId);
    /// Records the lowest block whose state it has.
    fn set_lowest_state(&self, number: u64);
    /// Lets nothing be asked of it until it is admitted.
    fn exclude(&self, reason: &ExclusionReason);
    /// Lets it be asked.
    fn admit(&self);
    /// The newest head that the node has pushed, if it pushes any. It is called once. Nobody reads the receiver while the node is lost,
    /// so the sender must not wait.
    fn hints(&self) -> Option<watch::Receiver<Option<HeadHint>>> {
        None
    }
}

/// How nodes are watched.
#[derive(Clone, Debug)]
pub struct WatchSettings {
    /// The required chain id. By default a quorum of the nodes decides.
    pub chain_id: Option<u64>,
    /// The required hash of block 0. By default a quorum of the nodes decides.
    pub genesis: Option<B256>,
    /// A block that the chain must have.
    pub checkpoint: Option<BlockId>,
    /// Whether the hash of a header is checked. Chains of the zkSync family compute it in another way.
    pub check_headers: bool,
    /// Time between two polls. The default is a third of the block time.
    pub poll_every: Option<Duration>,
    /// How long one call of a watcher may take.
    pub poll_timeout: Duration,
    /// How often a node is asked for its identity again.
    pub identify_every: Duration,
    /// How often the lowest block with state is searched.
    pub probe_every: Duration,
}

impl Default for WatchSettings {
    fn default() -> Self {
        Self {
            chain_id: None,
            genesis: None,
            checkpoint: None,
            check_headers: true,
            poll_every: None,
            poll_timeout: Duration::from_secs(2),
            identify_every: Duration::from_secs(60),
            probe_every: Duration::from_secs(600),
        }
    }
}

/// What all watchers share.
#[derive(Debug)]
struct WatchContext {
    view: Arc<NodesView>,
    settings: WatchSettings,
    chain: ChainAgreement,
    headers: HeaderCheck,
}

/// Watches all nodes until `stop` resolves. Everything runs on the runtime that this is called on.
pub(crate) async fn run<W: Watched>(
    nodes: Vec<Arc<W>>,
    view: Arc<NodesView>,
    settings: WatchSettings,
    stop: impl Future<Output = ()>,
) {
    view.set_nodes(nodes.len());
    let configured = ConfiguredIdentity { chain_id: settings.chain_id, genesis: settings.genesis };
    let names = nodes.iter().map(|node| node.name().to_owned()).collect();
    let chain = ChainAgreement::new(configured, names, view.quorum());
    let headers = HeaderCheck::new(settings.check_headers);
    let context = Arc::new(WatchContext { view, settings, chain, headers });
    // All tasks end when it is dropped.
    let mut tasks = JoinSet::new();
    tasks.spawn(update_reach(nodes.clone(), Arc::clone(&context.view)));
    for (position, node) in nodes.into_iter().enumerate() {
        tasks.spawn(NodeWatcher::new(position, Arc::clone(&node), Arc::clone(&context)).run());
        tasks.spawn(Prober::new(node, Arc::clone(&context)).run());
    }
    tokio::select! {
        () = stop => {}
        () = log_staleness(&context.view) => {}
    }
}

/// Records with each change of the chain which of its blocks each node has. A node that was the first on a new branch has had them
/// since before they became canonical, and is not polled again at once.
async fn update_reach<W: Watched>(nodes: Vec<Arc<W>>, view: Arc<NodesView>) {
    let mut changes = view.changes();
    while changes.changed().await.is_ok() {
        for (position, node) in nodes.iter().enumerate() {
            view.reach(position).into_iter().for_each(|reach| node.record_head(reach));
        }
    }
}

/// Logs when the head becomes stale, and when it moves again.
async fn log_staleness(view: &NodesView) {
    let mut ticks = tokio::time::interval(STALE_CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut was_stale = false;
    loop {
        ticks.tick().await;
        let is_stale = view.head().is_some() && view.is_stale();
        if is_stale != was_stale {
            log_stale_change(view, is_stale);
        }
        was_stale = is_stale;
    }
}

fn log_stale_change(view: &NodesView, is_stale: bool) {
    let head = view.head().map(|head| head.number);
    if is_stale {
        let seconds = view.head_age().unwrap_or_default().as_secs();
        tracing::warn!(head, seconds, "the head is stale; see /status for the reason");
    } else {
        tracing::info!(head, "the head moves again");
    }
}
