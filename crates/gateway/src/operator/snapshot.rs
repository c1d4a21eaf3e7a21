//! The gateway at one moment: `/status` is its JSON, and the live view of the console shows it.

mod node; // one node: whether and how it is used
mod remote; // the nodes, their chain and its blocks on disk

use std::sync::atomic::Ordering::Relaxed;

use callers::FeedFacts;
use resources::{DiskHealth, DiskWriterReport, HistogramSum, TaskReport, unix_seconds};
use serde::Serialize;
use serde_json::{Value, json};

pub use self::node::{BlockSnapshot, NodeLimits, NodeSnapshot, PoolNodeState};
pub use self::remote::{
    ExecutedSnapshot, FollowSnapshot, NodesSnapshot, PartnerAnswer, PartnerSnapshot, RemoteSnapshot,
};
use crate::gateway_state::GatewayState;
use crate::meter::Outcome;

/// The gateway at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GatewaySnapshot {
    pub ready: bool,
    /// Why callers should not be sent here.
    pub not_ready_because: Option<String>,
    /// The newest block that is served.
    pub head: Option<u64>,
    pub tasks: Vec<TaskSnapshot>,
    /// The disk that has the data directory.
    pub disk: Value,
    /// The accounts and keys of the store.
    pub callers: Value,
    /// `None` if the gateway serves an embedded chain.
    #[serde(flatten)]
    pub remote: Option<RemoteSnapshot>,
    /// `None` if this gateway counts for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_limits: Option<SharedLimitsSnapshot>,
    /// Size of the file of the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive_bytes: Option<u64>,
    /// `/metrics` has these.
    #[serde(skip)]
    pub traffic: TrafficCounters,
}

/// A task beside requests.
#[derive(Clone, Debug, Serialize)]
pub struct TaskSnapshot {
    pub name: String,
    pub state: &'static str,
    pub silent_seconds: u64,
    pub panics: u64,
    pub last_panic: Option<String>,
    /// Why it does not run, in plain words.
    pub down_because: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SharedLimitsSnapshot {
    pub connected: bool,
    /// Gateways that share limits, this one included.
    pub instances: u64,
    pub limits_in_use: u64,
}

/// Counters since the start of the process. Their differences over time are rates.
#[derive(Clone, Debug, Default)]
pub struct TrafficCounters {
    pub requests: u64,
    /// Calls by how they ended, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::ALL.len()],
    pub latency: HistogramSum,
    pub cache_hits: u64,
    pub cache_misses: u64,
}

impl GatewayState {
    /// Reads what the gateway does now.
    pub fn snapshot(&self) -> GatewaySnapshot {
        let not_ready_because = self.unready();
        let shared_limits = self.callers.shared_limits().map(|limits| limits.status());
        GatewaySnapshot {
            ready: not_ready_because.is_none(),
            not_ready_because,
            head: self.head(),
            tasks: self.supervisor.report().into_iter().map(TaskSnapshot::from).collect(),
            disk: disk(&self.disk),
            callers: callers(&self.callers.feed_status().facts()),
            remote: self.answers.remote().map(RemoteSnapshot::of),
            shared_limits: shared_limits.map(|status| SharedLimitsSnapshot {
                connected: status.is_connected,
                instances: status.instances,
                limits_in_use: status.limits_in_use,
            }),
            archive_bytes: self.answers.archive_bytes(),
            traffic: traffic(self),
        }
    }
}

impl From<TaskReport> for TaskSnapshot {
    fn from(task: TaskReport) -> Self {
        Self {
            down_because: task.is_down.then(|| task.reason()),
            name: task.name,
            state: if task.is_down { "down" } else { "running" },
            silent_seconds: task.silent_for.as_secs(),
            panics: task.panics,
            last_panic: task.last_panic,
        }
    }
}

fn disk(disk: &DiskHealth) -> Value {
    let space = disk.space();
    let writer = |report: &DiskWriterReport| {
        let failing = report.failing.as_ref();
        json!({
            "name": report.writer.name(),
            "failing_seconds": failing.map(|(time, _)| time.as_secs()),
            "error": failing.map(|(_, cause)| cause),
            "failures": report.failures,
        })
    };
    json!({
        "state": if disk.first_failing().is_some() { "cannot be written" } else { "ok" },
        "free_bytes": space.map(|space| space.free_bytes),
        "size_bytes": space.map(|space| space.size_bytes),
        "writers": disk.report().iter().map(writer).collect::<Vec<_>>(),
    })
}

fn callers(feed: &FeedFacts) -> Value {
    json!({
        "store": if feed.is_connected { "connected" } else { "not connected" },
        "since_seconds": feed.since.map(|since| since.elapsed().as_secs()),
        "error": feed.error,
        "loaded_from": feed.origin.name(),
        "followed_seconds_ago": feed.followed_at.map(|at| unix_seconds().saturating_sub(at)),
        "accounts": feed.accounts,
        "keys": feed.keys,
        "bad_rows": feed.bad_rows,
        "revision": feed.revision,
        "lost_histories": feed.lost_histories,
    })
}

fn traffic(gateway: &GatewayState) -> TrafficCounters {
    let methods = || gateway.worker_counters.iter().flat_map(|counters| &counters.methods);
    let cache = gateway.answers.cache().counts();
    TrafficCounters {
        requests: gateway.server.counts.iter().map(|counts| counts.requests.load(Relaxed)).sum(),
        outcomes: std::array::from_fn(|outcome| {
            methods().map(|method| method.outcomes[outcome].load(Relaxed)).sum()
        }),
        latency: methods().map(|method| &method.latency).collect(),
        cache_hits: cache.hits.load(Relaxed),
        cache_misses: cache.misses.load(Relaxed),
    }
}
