//! `/status`: what is served and why not, as JSON for people and scripts.

use answers::{ExecutedChain, ExecutionState, FollowState, FollowedChain};
use callers::FeedStatus;
use nodes::{Availability, BlockId, Pool, PoolNode};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::gateway_state::GatewayState;

pub(super) fn text(gateway: &GatewayState) -> String {
    let not_ready = gateway.unready();
    let mut status =
        json!({ "ready": not_ready.is_none(), "not_ready_because": not_ready, "head": gateway.head() });
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

/// The accounts and keys of the store.
fn callers_status(status: &FeedStatus) -> Value {
    let facts = status.facts();
    json!({
        "store": if facts.is_connected { "connected" } else { "not connected" },
        "since_seconds": facts.since.map(|since| since.elapsed().as_secs()),
        "error": facts.error,
        "loaded_from": facts.origin.name(),
        "accounts": facts.accounts,
        "keys": facts.keys,
        "bad_rows": facts.bad_rows,
        "revision": facts.revision,
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
        "state": match followed.state() {
            FollowState::Starting => "no node has shown its chain yet",
            FollowState::Following => "following",
            FollowState::Paused => "paused: the disk cannot be written",
            FollowState::Stopped => "stopped: the chain contradicts the stored blocks, see the log",
        },
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
    let counted = pool.counted().count();
    if !pool.view().is_stale() {
        None
    } else if counted < quorum {
        Some(format!("only {counted} nodes of this chain answer; the quorum is {quorum}"))
    } else {
        Some(format!("fewer than {quorum} nodes have the same newer block"))
    }
}

fn node_status(node: &PoolNode) -> Value {
    let capabilities = node.capabilities();
    let head = capabilities.head().filter(|_| capabilities.exclusion().is_none());
    json!({
        "name": node.name(),
        "state": state(node).name(),
        "head": head.map(block),
        "not_used_because": not_used_because(node),
    })
}

pub(super) fn not_used_because(node: &PoolNode) -> Option<String> {
    let lie = || {
        let seconds = node.excluded_for(Instant::now())?.as_secs();
        Some(format!(
            "one of its answers was proven wrong; for {seconds} s it is asked only if no other node can answer"
        ))
    };
    node.capabilities().exclusion().map(|reason| reason.to_string()).or_else(lie)
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
