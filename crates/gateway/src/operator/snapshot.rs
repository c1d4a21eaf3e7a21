//! What the gateway does at one moment, as plain data for the console. `/status` and `/metrics` read the same sources.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use answers::{ExecutionState, FollowState, PoolSource};
use nodes::PoolNode;
use resources::{HistogramSum, TaskReport};

use super::status::{self, PoolNodeState};
use crate::gateway_state::GatewayState;
use crate::meter::Outcome;

/// What the gateway does at one moment.
#[derive(Clone, Debug)]
pub struct GatewaySnapshot {
    /// Why callers should not be sent here.
    pub not_ready_because: Option<String>,
    /// The tasks beside requests that do not run.
    pub tasks_down: Vec<TaskReport>,
    pub traffic: TrafficCounters,
    pub chain: ChainSnapshot,
    pub nodes: Vec<NodeSnapshot>,
    pub partners: Vec<PartnerSnapshot>,
    /// Why a partner has answered last, in plain words, and how long ago.
    pub last_partner_answer: Option<(&'static str, Duration)>,
    pub storage: Option<StorageSnapshot>,
    /// The gateways that share limits; `None` if this one counts for itself.
    pub instances: Option<InstancesSnapshot>,
}

/// Counters since the start of the process. Their differences over time are rates.
#[derive(Clone, Debug, Default)]
pub struct TrafficCounters {
    /// HTTP requests.
    pub requests: u64,
    /// Calls by how they ended, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::ALL.len()],
    pub latency: HistogramSum,
    pub cache_hits: u64,
    pub cache_misses: u64,
}

/// The head of the chain.
#[derive(Clone, Debug, Default)]
pub struct ChainSnapshot {
    pub head: Option<u64>,
    /// The hash with `0x`; empty if it is not known.
    pub head_hash: String,
    pub head_age: Option<Duration>,
    /// Why the head does not move, if it stands still for too long.
    pub waits_because: Option<String>,
    pub finalized: Option<u64>,
    /// Reorganisations since the start.
    pub reorganisations: u64,
    /// Time since the last one.
    pub last_reorganisation: Option<Duration>,
}

/// A remote node.
#[derive(Clone, Debug)]
pub struct NodeSnapshot {
    pub name: String,
    pub state: PoolNodeState,
    pub head: Option<u64>,
    pub latency: Option<Duration>,
    pub faults: u64,
    /// Why it is not used, in plain words.
    pub not_used_because: Option<String>,
}

/// A partner.
#[derive(Clone, Debug)]
pub struct PartnerSnapshot {
    pub name: String,
    pub used_today: u64,
    pub calls_per_day: u64,
}

/// What a file of blocks has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageKind {
    /// Blocks and the state of each.
    Archive,
    /// Blocks of the nodes, without state.
    Blocks,
}

/// The blocks on disk.
#[derive(Clone, Debug)]
pub struct StorageSnapshot {
    pub kind: StorageKind,
    pub state: String,
    /// Whether somebody has to look after it.
    pub is_problem: bool,
    pub lowest: Option<u64>,
    pub newest: Option<u64>,
    pub bytes: u64,
    /// Blocks executed, and blocks to be executed, while it is behind.
    pub progress: Option<(u64, u64)>,
}

/// The gateways that share limits.
#[derive(Clone, Copy, Debug)]
pub struct InstancesSnapshot {
    pub is_connected: bool,
    pub count: u64,
}

impl GatewayState {
    /// Reads what the gateway does now.
    pub fn snapshot(&self) -> GatewaySnapshot {
        let remote = self.answers.remote();
        let shared = self.callers.shared_limits().map(|limits| limits.status());
        GatewaySnapshot {
            not_ready_because: self.unready(),
            tasks_down: self.supervisor.report().into_iter().filter(|task| task.is_down).collect(),
            traffic: traffic(self),
            chain: chain(self, remote),
            nodes: remote
                .map(|remote| remote.pool().nodes().iter().map(|node| node_of(node)).collect())
                .unwrap_or_default(),
            partners: remote.map(partners).unwrap_or_default(),
            last_partner_answer: remote.and_then(|remote| remote.failovers().last()),
            storage: remote.and_then(storage),
            instances: shared.map(|status| InstancesSnapshot {
                is_connected: status.is_connected,
                count: status.instances,
            }),
        }
    }
}

fn traffic(gateway: &GatewayState) -> TrafficCounters {
    let mut outcomes = [0; Outcome::ALL.len()];
    let methods = || gateway.worker_counters.iter().flat_map(|counters| &counters.methods);
    for method in methods() {
        for (sum, count) in outcomes.iter_mut().zip(&method.outcomes) {
            *sum += count.load(Relaxed);
        }
    }
    let cache = gateway.answers.cache().counts();
    TrafficCounters {
        requests: gateway.server.counts.iter().map(|counts| counts.requests.load(Relaxed)).sum(),
        outcomes,
        latency: methods().map(|method| &method.latency).collect(),
        cache_hits: cache.hits.load(Relaxed),
        cache_misses: cache.misses.load(Relaxed),
    }
}

fn chain(gateway: &GatewayState, remote: Option<&PoolSource>) -> ChainSnapshot {
    let head = gateway.head();
    let Some(pool) = remote.map(PoolSource::pool) else {
        return ChainSnapshot { head, ..ChainSnapshot::default() };
    };
    let (view, chain) = (pool.view(), pool.canonical_chain());
    let (reorganisations, last_reorganisation) = view.reorganisations();
    ChainSnapshot {
        head,
        head_hash: chain.as_ref().map(|chain| chain.head().hash.to_string()).unwrap_or_default(),
        head_age: view.head_age(),
        waits_because: status::head_waits_because(pool),
        finalized: chain.as_ref().and_then(|chain| chain.finalized()).map(|block| block.number),
        reorganisations,
        last_reorganisation,
    }
}

fn node_of(node: &PoolNode) -> NodeSnapshot {
    NodeSnapshot {
        name: node.name().to_owned(),
        state: status::state(node),
        head: node.capabilities().head_number(),
        latency: node.recent_latency(),
        faults: node.counts().faults().map(|(_, count)| count).sum(),
        not_used_because: status::not_used_because(node),
    }
}

fn partners(remote: &PoolSource) -> Vec<PartnerSnapshot> {
    let each = remote.pool().partners().iter().map(|partner| PartnerSnapshot {
        name: partner.node().name().to_owned(),
        used_today: partner.used_today(),
        calls_per_day: partner.quota().calls_per_day,
    });
    each.collect()
}

fn storage(remote: &PoolSource) -> Option<StorageSnapshot> {
    if let Some(executed) = remote.executed_chain() {
        let (head, newest) = (executed.head(), remote.pool().view().head().map(|head| head.number));
        let (state, is_problem) = match executed.state() {
            ExecutionState::Starting => ("starting".to_owned(), false),
            ExecutionState::Behind => ("behind the head".to_owned(), false),
            ExecutionState::AtHead => ("at the head".to_owned(), false),
            ExecutionState::Stopped(reason) => (format!("stopped: {reason}"), true),
        };
        let progress = newest.filter(|newest| *newest > head).map(|newest| (head, newest));
        return Some(StorageSnapshot {
            kind: StorageKind::Archive,
            state,
            is_problem,
            lowest: Some(0),
            newest: Some(head),
            bytes: 0,
            progress,
        });
    }
    let followed = remote.followed_chain()?;
    let state = followed.state();
    let newest = followed.snapshot().ranges().next_back();
    Some(StorageSnapshot {
        kind: StorageKind::Blocks,
        is_problem: !matches!(state, FollowState::Starting | FollowState::Following),
        state: state.text(),
        lowest: newest.as_ref().map(|range| *range.start()),
        newest: newest.as_ref().map(|range| *range.end()),
        bytes: followed.file_bytes(),
        progress: None,
    })
}
