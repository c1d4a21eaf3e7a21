//! Polling every node's head.
//!
//! Each node has a task that asks for its identity (chain id, genesis, syncing), then polls its newest block and reports it to
//! the view, with the blocks below it. A node of another chain is excluded, and asked for its identity again later. One that does
//! not answer is retried, and asked for its identity when it is back, because another node may answer then. Partners are asked for
//! their chain id at long intervals, and for nothing else.

mod chain; // which chain this is, and which nodes are of it
mod follow; // the watcher of one node
mod header; // reading and checking a node's block
mod history; // what a node has of old blocks
mod inspection; // one look at every node
mod partner; // the watcher of a partner
mod probe; // when it is found out what a node has of old blocks, and the lowest block with state
mod questions; // the calls of a watcher

#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use resources::{Supervisor, WhenDown};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};

use crate::call::{Ask, BlockId};
use crate::exclusion::ExclusionReason;
use crate::node::HistoryReaches;
use crate::node_fault::NodeFault;
use crate::node_id::NodeId;
use crate::partner::PartnerTerms;
use crate::view::NodesView;
use chain::{ChainAgreement, ConfiguredIdentity};
use follow::NodeWatcher;
use header::HeaderCheck;
pub(crate) use header::read_block;
pub(crate) use inspection::inspect;
pub use inspection::{NodeData, NodeFindings, NodeInspection};
use partner::PartnerWatcher;
use probe::Prober;

/// How often it is checked whether the head is stale.
const STALE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The block that a node has pushed as its new head. It is polled at once.
pub(crate) type HeadHint = BlockId;

/// A node as a watcher needs it.
pub(crate) trait Watched: Send + Sync + 'static {
    type Client: Ask;

    fn id(&self) -> NodeId;
    fn client(&self) -> &Self::Client;
    /// Its name in the log, without credentials.
    fn name(&self) -> &str;
    /// Its methods and quota if it is a partner, which has no vote and is seldom asked.
    fn partner_terms(&self) -> Option<&PartnerTerms> {
        None
    }
    /// Records that a watcher asks it something.
    fn record_question(&self) {}
    /// Records that it has replied to a watcher, whatever the reply.
    fn record_reply(&self) {}
    /// Records that it has replied to its prober, which waits for longer than a watcher.
    fn record_late_reply(&self) {}
    /// Records that several polls in a row have failed.
    fn record_loss(&self) {}
    /// Whether several polls in a row have failed, and none has succeeded since.
    fn is_lost(&self) -> bool {
        false
    }
    /// Whether it has replied to anyone but a watcher since then.
    fn has_replied_since(&self, _then: Instant) -> bool {
        false
    }
    /// Records how the last poll ended.
    fn record_poll(&self, outcome: Result<(), NodeFault>);
    /// Records the newest block of the canonical chain that it has, or its own newest block if that is above the head.
    fn record_head(&self, head: BlockId);
    /// Records what it says it is.
    fn set_client_version(&self, _version: &str) {}
    /// Records the lowest block whose state it has.
    fn set_lowest_state(&self, number: u64);
    /// Records what it was shown to have of old blocks, and the head at that time.
    fn set_history(&self, reaches: HistoryReaches, head: u64);
    /// Whether it is known what it has of old blocks. That is forgotten when the node is lost, because another may be back.
    fn is_history_known(&self) -> bool;
    /// Lets nothing be asked of it until it is admitted.
    fn exclude(&self, reason: &ExclusionReason);
    /// Lets it be asked.
    fn admit(&self);
    /// The newest head that the node has pushed, if it pushes any. Each new watcher of the node asks for it. Nobody reads the
    /// receiver while the node is lost, so the sender must not wait.
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
    /// Time between two polls. The default is half of the block time.
    pub poll_every: Option<Duration>,
    /// How long one call of a watcher may take.
    pub poll_timeout: Duration,
    /// How often a node is asked for its identity again.
    pub identify_every: Duration,
    /// How often it is found out what a node has of old blocks, and the lowest block with state is searched.
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

/// The parts that all watchers share.
#[derive(Debug)]
struct WatchContext {
    view: Arc<NodesView>,
    settings: WatchSettings,
    chain: ChainAgreement,
    headers: HeaderCheck,
}

/// Watches all nodes for as long as it is polled, those that come later, too.
pub(crate) async fn run<W: Watched>(
    nodes: watch::Receiver<Vec<Arc<W>>>,
    view: Arc<NodesView>,
    settings: WatchSettings,
    supervisor: &Supervisor,
) {
    let configured = ConfiguredIdentity { chain_id: settings.chain_id, genesis: settings.genesis };
    let headers = HeaderCheck::new(settings.check_headers);
    let context = Arc::new(WatchContext { view, settings, chain: ChainAgreement::new(configured), headers });
    let (reach, staleness) = (
        supervisor.task("blocks of nodes", WhenDown::Degraded),
        supervisor.task("check for a stale head", WhenDown::Degraded),
    );
    tokio::join!(
        watch_all(nodes.clone(), &context, supervisor),
        reach.run(|| update_reach(&nodes, &context.view)),
        staleness.run(|| log_staleness(&context.view)),
    );
}

/// Starts and ends watchers as nodes come and go.
async fn watch_all<W: Watched>(
    mut nodes: watch::Receiver<Vec<Arc<W>>>,
    context: &Arc<WatchContext>,
    supervisor: &Supervisor,
) {
    let (mut tasks, mut watched) = (JoinSet::new(), HashMap::<NodeId, AbortHandle>::new());
    loop {
        let present = nodes.borrow_and_update().clone();
        let voters = || present.iter().filter(|node| node.partner_terms().is_none());
        context.view.set_nodes(&voters().map(|node| node.id()).collect::<Vec<_>>());
        let names = voters().map(|node| (node.id(), node.name().to_owned()));
        context.chain.set_nodes(names, context.view.quorum());
        let ids: Vec<_> = present.iter().map(|node| node.id()).collect();
        watched.retain(|id, task| {
            let stays = ids.contains(id);
            if !stays {
                task.abort();
            }
            stays
        });
        for node in present {
            watched.entry(node.id()).or_insert_with(|| {
                let (context, supervisor) = (Arc::clone(context), supervisor.clone());
                tasks.spawn(async move {
                    if let Some(terms) = node.partner_terms() {
                        watch_partner(&node, terms, &context, &supervisor).await;
                    } else {
                        tokio::join!(
                            watch(&node, &context, &supervisor),
                            probe(&node, &context, &supervisor)
                        );
                    }
                })
            });
        }
        while tasks.try_join_next().is_some() {}
        if nodes.changed().await.is_err() {
            // No node comes or goes any more.
            std::future::pending::<()>().await;
        }
    }
}

/// Watches one node. It has no vote while its watcher does not run, because its head is not known then.
async fn watch<W: Watched>(node: &Arc<W>, context: &Arc<WatchContext>, supervisor: &Supervisor) {
    let task = supervisor.task(format!("watcher of node {}", node.name()), WhenDown::Degraded);
    let start = || NodeWatcher::new(Arc::clone(node), Arc::clone(context)).run();
    task.run_with(start, || context.view.set_counted(node.id(), false)).await;
}

async fn probe<W: Watched>(node: &Arc<W>, context: &Arc<WatchContext>, supervisor: &Supervisor) {
    let task = supervisor.task(format!("state probe of node {}", node.name()), WhenDown::Degraded);
    task.run(|| Prober::new(Arc::clone(node), Arc::clone(context)).run()).await;
}

async fn watch_partner<W: Watched>(
    node: &Arc<W>,
    terms: &PartnerTerms,
    context: &Arc<WatchContext>,
    supervisor: &Supervisor,
) {
    let task = supervisor.task(format!("probe of partner {}", node.name()), WhenDown::Degraded);
    task.run(|| PartnerWatcher::new(Arc::clone(node), Arc::clone(context)).run(terms)).await;
}

/// A node without the checkpoint is logged as an error, because a quorum of such nodes could serve a forged chain.
fn log_exclusion(node: &str, reason: &ExclusionReason) {
    match reason {
        ExclusionReason::OtherCheckpoint { .. } => tracing::error!(node, %reason, "node is excluded"),
        _ => tracing::warn!(node, %reason, "node is excluded"),
    }
}

/// Records with each change of the chain which of its blocks each node has. A node that was the first on a new branch has had them
/// since before they became canonical, and is not polled again at once.
async fn update_reach<W: Watched>(nodes: &watch::Receiver<Vec<Arc<W>>>, view: &NodesView) {
    let mut changes = view.changes();
    // Changes while the task did not run are recorded, too.
    changes.mark_changed();
    while changes.changed().await.is_ok() {
        let nodes = nodes.borrow().clone();
        for node in nodes {
            view.reach(node.id()).into_iter().for_each(|reach| node.record_head(reach));
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
