//! Following every node's head.
//!
//! Each node has a task that asks who it is, then polls its newest block and brings it, with the blocks below it, to the
//! view. A node of another chain is left out and looked at again; one that does not answer is tried again and again, and
//! greeted anew when it does, because it may have become another node meanwhile.

mod chain; // which chain this is, and who is of it
mod follow; // one node: greet, follow, lost
mod header; // a node's block, read and checked
mod probe; // the lowest block with state
mod questions; // what a watcher asks

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

use crate::left_out::LeftOut;
use crate::view::View;
use crate::{Ask, BlockId, Fault};
use chain::{Chain, ConfiguredIdentity};
use follow::Watcher;
use header::HeaderCheck;
pub use header::read_block;
use probe::Prober;

/// How often it is looked whether the head is stale.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A node said that it has this block now: a reason to poll at once.
pub type Hint = BlockId;

/// A node, as far as watching it goes.
pub trait Watched: Send + Sync + 'static {
    type Asked: Ask;

    fn ask(&self) -> &Self::Asked;
    /// How it is called in the log. Without credentials.
    fn name(&self) -> &str;
    /// A watcher asks it something now.
    fn is_asked(&self) {}
    /// It has replied to a watcher, whatever it said.
    fn has_replied(&self) {}
    /// Several polls in a row have failed.
    fn is_lost(&self) {}
    /// Whether it has replied to anyone but a watcher since then.
    fn has_replied_since(&self, _then: Instant) -> bool {
        false
    }
    /// How the last poll ended.
    fn polled(&self, outcome: Result<(), Fault>);
    /// The newest block of the canonical chain that it has, or its own newest block if that is above the head.
    fn saw_head(&self, head: BlockId);
    /// The lowest block whose state it has.
    fn set_lowest_state(&self, number: u64);
    /// What it calls itself; its own words, cut to a decent length.
    fn saw_version(&self, _version: &str) {}
    /// It is not to be asked anything until it is welcome again.
    fn leave_out(&self, reason: &LeftOut);
    /// It may be asked.
    fn welcome(&self);
    /// The newest head that the node has pushed, if it pushes any. Taken once, at the start. Nobody reads it while the node
    /// is lost, so the sender must not wait for anyone.
    fn hints(&self) -> Option<watch::Receiver<Option<Hint>>> {
        None
    }
}

/// How nodes are watched.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The chain that this must be; what a quorum of the nodes says unless said otherwise.
    pub chain_id: Option<u64>,
    /// Its block 0; what a quorum of the nodes says unless said otherwise.
    pub genesis: Option<B256>,
    /// A block that the chain must have.
    pub checkpoint: Option<BlockId>,
    /// Whether a header must have the hash that it comes with. Not for the zkSync family, which hashes otherwise.
    pub check_headers: bool,
    /// Time between two polls; a third of the block time unless said otherwise.
    pub poll_every: Option<Duration>,
    /// How long one question of a watcher may take.
    pub poll_timeout: Duration,
    /// How often a node is asked again who it is.
    pub greet_every: Duration,
    /// How often the lowest block with state is looked for.
    pub probe_every: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            chain_id: None,
            genesis: None,
            checkpoint: None,
            check_headers: true,
            poll_every: None,
            poll_timeout: Duration::from_secs(2),
            greet_every: Duration::from_secs(60),
            probe_every: Duration::from_secs(600),
        }
    }
}

/// What the watchers have in common.
#[derive(Debug)]
struct Common {
    view: Arc<View>,
    settings: Settings,
    chain: Chain,
    headers: HeaderCheck,
}

/// Watches all nodes until `stop` resolves. Everything runs on the runtime that this is called on.
pub async fn run<W: Watched>(
    nodes: Vec<Arc<W>>,
    view: Arc<View>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) {
    view.enrol(nodes.len());
    let configured = ConfiguredIdentity { chain_id: settings.chain_id, genesis: settings.genesis };
    let names = nodes.iter().map(|node| node.name().to_owned()).collect();
    let chain = Chain::new(configured, names, view.quorum());
    let headers = HeaderCheck::new(settings.check_headers);
    let common = Arc::new(Common { view, settings, chain, headers });
    // Dropped at the end, and all tasks with it.
    let mut tasks = JoinSet::new();
    tasks.spawn(update_reach(nodes.clone(), Arc::clone(&common.view)));
    for (place, node) in nodes.into_iter().enumerate() {
        tasks.spawn(Watcher::new(place, Arc::clone(&node), Arc::clone(&common)).run());
        tasks.spawn(Prober::new(node, Arc::clone(&common)).run());
    }
    tokio::select! {
        () = stop => {}
        () = heartbeat(&common.view) => {}
    }
}

/// Says with each change of the chain which of its blocks each node has. A node that was the first on a new branch has had its blocks
/// since before they became the chain, and is not polled again at once.
async fn update_reach<W: Watched>(nodes: Vec<Arc<W>>, view: Arc<View>) {
    let mut changes = view.changes();
    while changes.changed().await.is_ok() {
        for (place, node) in nodes.iter().enumerate() {
            view.reach(place).into_iter().for_each(|reach| node.saw_head(reach));
        }
    }
}

/// Tells when the head is stale.
async fn heartbeat(view: &View) {
    let mut ticks = tokio::time::interval(HEARTBEAT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stale = false;
    loop {
        ticks.tick().await;
        let now_stale = view.head().is_some() && view.is_stale();
        if now_stale != stale {
            tell_stale(view, now_stale);
        }
        stale = now_stale;
    }
}

fn tell_stale(view: &View, stale: bool) {
    let head = view.head().map(|head| head.number);
    if stale {
        let seconds = view.head_age().unwrap_or_default().as_secs();
        tracing::warn!(head, seconds, "the head stands still");
    } else {
        tracing::info!(head, "the head moves again");
    }
}
