//! The live view of the operator: what the gateway does now, and how its nodes are.
//!
//! `/live/events` sends a server-sent event named `status` every second or so, and with each change of the chain, whose data is a rendered [`LiveStatus`]. The first
//! one is part of the page, so the page is complete without JavaScript.

use askama::Template;
use gateway::{BlockSnapshot, ExecutedSnapshot, GatewaySnapshot, NodeSnapshot, PoolNodeState};

use super::outcomes::FailureRow;
use super::{PageFrame, chart, format};

/// `GET /live`.
#[derive(Template)]
#[template(path = "live.html")]
pub(crate) struct LivePage {
    pub(crate) frame: PageFrame,
    pub(crate) status: LiveStatus,
}

/// The gateway at one moment, and its traffic over the last minutes.
#[derive(Clone, Debug, Default, Template)]
#[template(path = "live_status.html")]
pub(crate) struct LiveStatus {
    pub(crate) gateway: GatewaySnapshot,
    /// The values of the last seconds.
    pub(crate) traffic: TrafficValues,
    /// The values over time, oldest first.
    pub(crate) history: Vec<TrafficValues>,
    /// Seconds that the history covers.
    pub(crate) history_seconds: u64,
    /// The failures of these minutes, the most frequent first.
    pub(crate) failures: Vec<FailureRow>,
}

/// The calls between two moments; `None` where there were none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrafficValues {
    pub(crate) requests_per_second: Option<f64>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// The share of calls that failed, from 0 to 1.
    pub(crate) error_share: Option<f64>,
    /// The share of calls that the cache answered, from 0 to 1.
    pub(crate) cache_hit_share: Option<f64>,
}

/// One figure with its line over time.
struct Tile {
    label: &'static str,
    figure: String,
    line: String,
    is_bad: bool,
}

impl LiveStatus {
    fn tiles(&self) -> [Tile; 5] {
        let tile = |label, value: fn(&TrafficValues) -> Option<f64>, text: fn(&Option<f64>) -> String| {
            let values: Vec<_> = self.history.iter().map(value).collect();
            let figure = text(&value(&self.traffic));
            Tile { label, figure, line: chart::sparkline(&values), is_bad: label == "Errors" }
        };
        [
            tile(
                "Requests/s",
                |values| values.requests_per_second,
                |rate| format::rate(&rate.unwrap_or(0.0)),
            ),
            tile("Latency p50", |values| values.p50_ms, format::milliseconds_or_dash),
            tile("Latency p99", |values| values.p99_ms, format::milliseconds_or_dash),
            tile("Errors", |values| values.error_share, format::percent_or_dash),
            tile("From cache", |values| values.cache_hit_share, format::percent_or_dash),
        ]
    }

    fn largest_failure_count(&self) -> u64 {
        self.failures.iter().map(|failure| failure.calls).max().unwrap_or(0)
    }

    fn nodes(&self) -> &[NodeSnapshot] {
        self.gateway.remote.as_ref().map_or(&[], |remote| &remote.nodes.each)
    }

    fn nodes_up(&self) -> u64 {
        self.nodes().iter().filter(|node| node.state == PoolNodeState::Up).count() as u64
    }

    /// Blocks that a node is behind the head.
    fn blocks_behind(&self, node: &NodeSnapshot) -> Option<u64> {
        Some(self.gateway.head?.saturating_sub(node.head?.number))
    }

    fn executed(&self) -> Option<&ExecutedSnapshot> {
        self.gateway.remote.as_ref()?.executed.as_ref()
    }

    /// The newest block of the archive.
    fn archive_head(&self) -> Option<u64> {
        self.executed().map_or(self.gateway.head, |executed| Some(executed.head))
    }

    /// Blocks that are executed, and all blocks, while the archive is behind the nodes.
    fn execution(&self) -> Option<(u64, u64)> {
        let executed = self.executed()?;
        let behind = executed.behind_blocks.filter(|behind| *behind > 0)?;
        Some((executed.head, executed.head.saturating_add(behind)))
    }

    fn block_number(block: &Option<BlockSnapshot>) -> String {
        format::count_or_dash(&block.map(|block| block.number))
    }

    /// The class of the colour of a state.
    fn state_tone(state: &PoolNodeState) -> &'static str {
        match state {
            PoolNodeState::Up => "good",
            PoolNodeState::InDoubt | PoolNodeState::RateLimited => "warn",
            PoolNodeState::Down | PoolNodeState::Silent | PoolNodeState::Excluded => "bad",
        }
    }

    /// The last fault of a node, unless the reason why it is not used names it.
    fn last_fault(node: &NodeSnapshot) -> Option<&str> {
        let fault = node.last_fault.as_deref()?;
        let is_named = node.not_used_because.as_ref().is_some_and(|reason| reason.contains(fault));
        (!is_named).then_some(fault)
    }

    /// Calls that a node has refused in principle, and old data that it does not have, in sentences.
    fn limits(node: &NodeSnapshot) -> Vec<String> {
        let limits = &node.limits;
        let methods = |about: &str, methods: &[&str]| {
            (!methods.is_empty()).then(|| format!("{about} {}.", methods.join(", ")))
        };
        let gas =
            limits.gas_per_call_max.map(|gas| format!("Grants a call {} gas at most.", format::count(&gas)));
        let logs = limits
            .log_blocks_max
            .map(|blocks| format!("Searches logs of {} blocks at most.", format::count(&blocks)));
        let proofs = limits
            .proofs_from_block
            .map(|block| format!("Proves state from block {} on.", format::count(&block)));
        let history = node.history.iter().filter_map(|(kind, lowest)| {
            let lowest = lowest.as_u64().filter(|lowest| *lowest > 0)?;
            let what = if kind == "tx" { "transactions by hash" } else { kind };
            Some(format!("Has {what} from block {} on.", format::count(&lowest)))
        });
        let sentences = [
            methods("Does not have", &limits.missing_methods),
            methods("Takes block numbers, but no block hashes, in", &limits.methods_by_block_number),
            gas,
            logs,
            proofs,
        ];
        sentences.into_iter().flatten().chain(history).collect()
    }
}
