//! One node: whether and how it is used, and what it cannot do.

use alloy_primitives::B256;
use nodes::{Availability, BlockId, HistoryKind, HistoryReach, PoolNode};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// A node of the pool.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NodeSnapshot {
    pub name: String,
    pub client_version: Option<String>,
    pub state: PoolNodeState,
    /// Its newest block, unless it is of another chain.
    pub head: Option<BlockSnapshot>,
    /// Why it is not used, or is asked after the others: in one sentence, which ends with what an operator can do.
    pub not_used_because: Option<String>,
    /// The lowest block of each kind of old data that it was shown to have; null where nothing was shown.
    pub history: Map<String, Value>,
    pub limits: NodeLimits,
    /// How long its last quick answers took.
    pub latency_ms: Option<f64>,
    /// Faults since the start.
    pub faults: u64,
    /// Its last fault, in plain words.
    pub last_fault: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct BlockSnapshot {
    pub number: u64,
    pub hash: B256,
}

/// Calls that a node has refused in principle.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NodeLimits {
    pub gas_per_call_max: Option<u64>,
    pub log_blocks_max: Option<u64>,
    pub proofs_from_block: Option<u64>,
    pub missing_methods: Vec<&'static str>,
    pub methods_by_block_number: Vec<&'static str>,
}

/// Whether and how a node of the pool is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub enum PoolNodeState {
    #[default]
    Up,
    InDoubt,
    /// It has said that it gets too many requests.
    RateLimited,
    Down,
    /// It does not answer the questions about its head.
    Silent,
    /// It is of another chain, it is syncing, or it was proven wrong.
    Excluded,
}

impl PoolNodeState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::InDoubt => "in doubt",
            Self::RateLimited => "rate limited",
            Self::Down => "down",
            Self::Silent => "silent",
            Self::Excluded => "excluded",
        }
    }

    fn of(node: &PoolNode, now: Instant) -> Self {
        match node.availability(now) {
            _ if node.capabilities().exclusion().is_some() => Self::Excluded,
            _ if node.excluded_for(now).is_some() => Self::Excluded,
            _ if !node.answers_watcher() => Self::Silent,
            Availability::Up => Self::Up,
            Availability::InDoubt => Self::InDoubt,
            Availability::RateLimited => Self::RateLimited,
            Availability::Down => Self::Down,
        }
    }
}

impl From<PoolNodeState> for &'static str {
    fn from(state: PoolNodeState) -> Self {
        state.name()
    }
}

impl From<BlockId> for BlockSnapshot {
    fn from(BlockId { number, hash }: BlockId) -> Self {
        Self { number, hash }
    }
}

impl NodeSnapshot {
    pub(super) fn of(node: &PoolNode) -> Self {
        let (now, capabilities) = (Instant::now(), node.capabilities());
        let head = capabilities.head().filter(|_| capabilities.exclusion().is_none());
        let state = PoolNodeState::of(node, now);
        Self {
            name: node.name().to_owned(),
            client_version: capabilities.client_version().map(|version| version.to_string()),
            state,
            head: head.map(BlockSnapshot::from),
            not_used_because: not_used_because(node, state, now),
            history: history(node),
            limits: NodeLimits {
                gas_per_call_max: capabilities.gas_cap(),
                log_blocks_max: capabilities.log_blocks_max(),
                proofs_from_block: capabilities.lowest_proof(),
                missing_methods: capabilities.missing_methods(),
                methods_by_block_number: capabilities.methods_by_number(),
            },
            latency_ms: node.recent_latency().map(|latency| latency.as_secs_f64() * 1_000.0),
            faults: node.counts().faults().map(|(_, count)| count).sum(),
            last_fault: node.last_fault().map(|fault| fault.to_string()),
        }
    }
}

fn history(node: &PoolNode) -> Map<String, Value> {
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

fn not_used_because(node: &PoolNode, state: PoolNodeState, now: Instant) -> Option<String> {
    if let Some(reason) = node.capabilities().exclusion() {
        return Some(reason.to_string());
    }
    if let Some(left) = node.excluded_for(now) {
        let wrong = node.last_wrong_answer().map(|answer| format!(" ({answer})")).unwrap_or_default();
        let seconds = left.as_secs();
        return Some(format!(
            "one of its answers was proven wrong{wrong}; for {seconds} s it is asked only if no other node can answer"
        ));
    }
    let fault = node.last_fault().map(|fault| fault.with_advice());
    match state {
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
}
