//! `/status`: what is served and why not, as JSON for people and scripts.

use answers::{ExecutedChain, ExecutionState, FollowedChain};
use callers::FeedStatus;
use nodes::{Availability, BlockId, HistoryKind, HistoryReach, Pool, PoolNode};
use resources::{DiskHealth, DiskWriterReport, TaskReport, counted, unix_seconds};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::gateway_state::GatewayState;

pub(super) fn text(gateway: &GatewayState) -> String {
    let not_ready = gateway.unready();
    let mut status =
        json!({ "ready": not_ready.is_none(), "not_ready_because": not_ready, "head": gateway.head() });
    status["tasks"] = gateway.supervisor.report().iter().map(task_status).collect();
    status["disk"] = disk_status(&gateway.disk);
    status["callers"] = callers_status(gateway.callers.feed_status());
    if let Some(remote) = gateway.answers.remote() {
        status["integrity"] = json!({ "state": remote.state().name() });
        status["nodes"] = nodes_status(remote.pool());
        status["follow"] = remote.followed_chain().map_or(Value::Null, |followed| follow_status(followed));
        if let Some(chain) = remote.executed_chain() {
            status["executed"] = executed_status(remote.pool(), chain);
        }
    }
    if let Some(limits) = gateway.callers.shared_limits() {
        let shared = limits.status();
        status["shared_limits"] = json!({
            "connected": shared.is_connected,
            "instances": shared.instances,
            "limits_in_use": shared.limits_in_use,
        });
    }
    format!("{status:#}\n")
}

/// The disk that has the data directory.
fn disk_status(disk: &DiskHealth) -> Value {
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

/// A task beside requests.
fn task_status(task: &TaskReport) -> Value {
    json!({
        "name": task.name,
        "state": if task.is_down { "down" } else { "running" },
        "silent_seconds": task.silent_for.as_secs(),
        "panics": task.panics,
        "last_panic": task.last_panic,
    })
}

/// The accounts and keys of the store.
fn callers_status(status: &FeedStatus) -> Value {
    let facts = status.facts();
    json!({
        "store": if facts.is_connected { "connected" } else { "not connected" },
        "since_seconds": facts.since.map(|since| since.elapsed().as_secs()),
        "error": facts.error,
        "loaded_from": facts.origin.name(),
        "followed_seconds_ago": facts.followed_at.map(|at| unix_seconds().saturating_sub(at)),
        "accounts": facts.accounts,
        "keys": facts.keys,
        "bad_rows": facts.bad_rows,
        "revision": facts.revision,
        "lost_histories": facts.lost_histories,
    })
}

fn nodes_status(pool: &Pool) -> Value {
    let (view, chain) = (pool.view(), pool.canonical_chain());
    json!({
        "chain_id": pool.chain_id(),
        "genesis": chain.as_ref().and_then(|chain| chain.genesis()).map(|genesis| genesis.hash),
        "head": chain.as_ref().map(|chain| block(chain.head())),
        "head_age_seconds": view.head_age().map(|age| age.as_secs()),
        "safe": chain.as_ref().and_then(|chain| chain.safe()).map(block),
        "finalized": chain.as_ref().and_then(|chain| chain.finalized()).map(block),
        "checkpoint": view.checkpoint().map(block),
        "refused_head": view.refused_head().map(block),
        "quorum": view.quorum(),
        "head_waits_because": head_waits_because(pool),
        "each": pool.nodes().iter().map(|node| node_status(node)).collect::<Vec<_>>(),
    })
}

/// The stored blocks of the nodes' chain.
fn follow_status(followed: &FollowedChain) -> Value {
    let snapshot = followed.snapshot();
    let ranges = snapshot.ranges().map(|range| json!({ "lowest": range.start(), "newest": range.end() }));
    let (memory_blocks, memory_bytes) = followed.in_memory();
    json!({
        "state": followed.state().text(),
        "blocks": snapshot.block_count(),
        "ranges": ranges.collect::<Vec<_>>(),
        "headers": snapshot.header_count(),
        "filled_blocks": followed.filled_blocks(),
        "file_bytes": followed.file_bytes(),
        "memory_blocks": memory_blocks,
        "memory_bytes": memory_bytes,
    })
}

/// The archive that follows the nodes.
fn executed_status(pool: &Pool, chain: &ExecutedChain) -> Value {
    let (head, newest) = (chain.head(), pool.view().head().map(|head| head.number));
    let (state, stopped_because) = match chain.state() {
        ExecutionState::Starting => ("starting", None),
        ExecutionState::Behind => ("behind", None),
        ExecutionState::AtHead => ("at head", None),
        ExecutionState::Stopped(reason) => ("stopped", Some(reason)),
    };
    json!({
        "head": head,
        "behind_blocks": newest.map(|newest| newest.saturating_sub(head)),
        "state": state,
        "stopped_because": stopped_because,
    })
}

/// Why the head does not move, if it stands still for too long or there is none.
pub(super) fn head_waits_because(pool: &Pool) -> Option<String> {
    let quorum = pool.view().quorum();
    let nodes = pool.counted().count();
    if !pool.view().is_stale() {
        None
    } else if nodes < quorum {
        let (verb, nodes) = (if nodes == 1 { "answers" } else { "answer" }, counted(nodes as u64, "node"));
        Some(format!("only {nodes} of this chain {verb}; the quorum is {quorum}"))
    } else {
        Some(format!("the quorum of {} does not have the same newer block", counted(quorum as u64, "node")))
    }
}

fn node_status(node: &PoolNode) -> Value {
    let capabilities = node.capabilities();
    let head = capabilities.head().filter(|_| capabilities.exclusion().is_none());
    json!({
        "name": node.name(),
        "client_version": capabilities.client_version().as_deref(),
        "state": state(node).name(),
        "head": head.map(block),
        "not_used_because": not_used_because(node),
        "history": history(node),
        "limits": {
            "gas_per_call_max": capabilities.gas_cap(),
            "missing_methods": capabilities.missing_methods(),
            "methods_by_block_number": capabilities.methods_by_number(),
        },
    })
}

/// The lowest block of each kind of old data that the node was shown to have; null where nothing was shown.
fn history(node: &PoolNode) -> Value {
    let capabilities = node.capabilities();
    let lowest = |kind| match capabilities.history(kind) {
        HistoryReach::Whole => Some(0),
        HistoryReach::From(block) => Some(block),
        HistoryReach::Unknown => None,
    };
    let shown = HistoryKind::ALL.map(|kind| (kind.name(), lowest(kind)));
    let state = ("state", capabilities.lowest_state());
    shown.into_iter().chain([state]).map(|(name, block)| (name.to_owned(), json!(block))).collect()
}

/// Why a node is not used, or is asked after the others: in one sentence, which ends with what an operator can do.
pub(super) fn not_used_because(node: &PoolNode) -> Option<String> {
    let lie = || {
        let seconds = node.excluded_for(Instant::now())?.as_secs();
        let wrong = node.last_wrong_answer().map(|answer| format!(" ({answer})")).unwrap_or_default();
        Some(format!(
            "one of its answers was proven wrong{wrong}; for {seconds} s it is asked only if no other node can answer"
        ))
    };
    let fault = || {
        let fault = node.last_fault().map(|fault| fault.with_advice());
        match state(node) {
            PoolNodeState::Up | PoolNodeState::Excluded => None,
            PoolNodeState::InDoubt => {
                let fault = fault.unwrap_or_else(|| "it said nothing for longer than usual".to_owned());
                Some(format!("some of its last calls failed, so others are asked first; {fault}"))
            }
            PoolNodeState::RateLimited => {
                Some("it reported too many requests, so other nodes are asked first".to_owned())
            }
            PoolNodeState::Down | PoolNodeState::Silent => {
                Some(fault.unwrap_or_else(|| "it does not answer when its head is asked for".to_owned()))
            }
        }
    };
    node.capabilities().exclusion().map(|reason| reason.to_string()).or_else(lie).or_else(fault)
}

/// Whether and how a node of the pool is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolNodeState {
    Up,
    InDoubt,
    /// It has said that it gets too many requests.
    RateLimited,
    Down,
    /// It does not answer the questions about its head.
    Silent,
    /// It cannot be used, for example because it is of another chain.
    Excluded,
}

impl PoolNodeState {
    fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::InDoubt => "in doubt",
            Self::RateLimited => "rate limited",
            Self::Down => "down",
            Self::Silent => "silent",
            Self::Excluded => "excluded",
        }
    }
}

pub(super) fn state(node: &PoolNode) -> PoolNodeState {
    match node.availability(Instant::now()) {
        _ if node.capabilities().exclusion().is_some() => PoolNodeState::Excluded,
        _ if !node.answers_watcher() => PoolNodeState::Silent,
        Availability::Up => PoolNodeState::Up,
        Availability::InDoubt => PoolNodeState::InDoubt,
        Availability::RateLimited => PoolNodeState::RateLimited,
        Availability::Down => PoolNodeState::Down,
    }
}

fn block(block: BlockId) -> Value {
    json!({ "number": block.number, "hash": block.hash })
}
