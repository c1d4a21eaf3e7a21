//! The live view of the operator: what the gateway does now, and how its nodes are.
//!
//! `/live/events` sends a server-sent event named `status` every second or so, whose data is [`LiveStatus::event_data`]. The
//! first status is part of the page, so the page is complete without JavaScript.

use askama::Template;
use gateway::{PoolNodeState, StorageKind};

use super::{PageFrame, chart, format};

/// `GET /live`.
#[derive(Template)]
#[template(path = "live.html")]
pub(crate) struct LivePage {
    pub(crate) frame: PageFrame,
    pub(crate) status: LiveStatus,
}

/// What the gateway does at one moment.
#[derive(Clone, Debug, Template)]
#[template(path = "live_status.html")]
pub struct LiveStatus {
    /// When the status was read.
    pub now: i64,
    /// Why `/ready` is 503, in a sentence; `None` if it is 200.
    pub not_ready_because: Option<String>,
    /// The names of the tasks that do not run, and why.
    pub tasks_down: Vec<(String, String)>,
    pub traffic: LiveTraffic,
    /// The errors of the last five minutes, the most frequent first.
    pub errors: Vec<LiveError>,
    pub chain: LiveChain,
    /// Empty if the gateway serves an embedded chain.
    pub nodes: Vec<LiveNode>,
    pub partners: Vec<LivePartner>,
    /// Why a partner has answered last, in plain words, and when.
    pub last_partner_answer: Option<(String, i64)>,
    pub storage: Option<LiveStorage>,
    /// The gateways that share limits, this one included.
    pub instances: Vec<LiveInstance>,
}

impl LiveStatus {
    /// The data of a server-sent event: the same HTML that the page begins with, so there is one way to show a status.
    pub fn event_data(&self) -> Result<String, askama::Error> {
        self.render()
    }

    /// The time that the sparklines show, in seconds.
    fn history_seconds(&self) -> u64 {
        let history = &self.traffic.history;
        history.step_seconds.saturating_mul(history.requests_per_second.len() as u64)
    }

    fn nodes_up(&self) -> u64 {
        self.nodes.iter().filter(|node| node.state == PoolNodeState::Up).count() as u64
    }

    fn largest_error_count(&self) -> u64 {
        self.errors.iter().map(|error| error.count).max().unwrap_or(0)
    }
}

/// The calls of the last seconds.
#[derive(Clone, Debug, Default)]
pub struct LiveTraffic {
    pub requests_per_second: f64,
    /// Milliseconds; `None` without calls.
    pub p50_ms: Option<f64>,
    /// Milliseconds; `None` without calls.
    pub p99_ms: Option<f64>,
    /// The share of calls that failed, from 0 to 1; `None` without calls.
    pub error_share: Option<f64>,
    /// The share of calls that the cache answered, from 0 to 1; `None` without calls.
    pub cache_hit_share: Option<f64>,
    /// The same values over time for sparklines, oldest first, at most [`HISTORY_POINTS_MAX`] of each.
    pub history: LiveHistory,
}

/// Values over time, oldest first; `None` where there were no calls.
#[derive(Clone, Debug, Default)]
pub struct LiveHistory {
    /// Seconds between two values.
    pub step_seconds: u64,
    pub requests_per_second: Vec<Option<f64>>,
    pub p50_ms: Vec<Option<f64>>,
    pub p99_ms: Vec<Option<f64>>,
    pub error_share: Vec<Option<f64>>,
    pub cache_hit_share: Vec<Option<f64>>,
}

/// Values of a sparkline: five minutes with one value every two seconds.
pub const HISTORY_POINTS_MAX: usize = 150;

/// Errors with the same outcome.
#[derive(Clone, Debug)]
pub struct LiveError {
    /// The outcome with the codes that callers see, such as `refused: 429 or 402, -32005`.
    pub code: String,
    /// What it means, such as `A limit of the plan or of the key was reached.`.
    pub meaning: String,
    /// How often it occurred in the last five minutes.
    pub count: u64,
}

/// The head of the chain.
#[derive(Clone, Debug, Default)]
pub struct LiveChain {
    /// `None` if there is none yet.
    pub head: Option<u64>,
    /// Hash of the head with `0x`, or the empty string.
    pub head_hash: String,
    /// Seconds since the head was seen first.
    pub head_age_seconds: Option<u64>,
    /// Why the head does not move, if it stands still for too long.
    pub waits_because: Option<String>,
    pub finalized: Option<u64>,
    /// Since the start of the gateway.
    pub reorganisations: u64,
    /// When the last one was seen.
    pub last_reorganisation_at: Option<i64>,
}

/// A remote node.
#[derive(Clone, Debug)]
pub struct LiveNode {
    pub name: String,
    pub state: PoolNodeState,
    pub head: Option<u64>,
    /// Blocks behind the head of the view.
    pub lag: Option<u64>,
    /// Milliseconds, typical of the last calls.
    pub latency_ms: Option<f64>,
    /// Faults since the start of the gateway: time-outs, connection errors and wrong answers.
    pub faults: u64,
    /// Why it is not used or used less, in plain words; `None` if it is used normally.
    pub reason: Option<String>,
}

impl LiveNode {
    fn state_label(&self) -> &'static str {
        match self.state {
            PoolNodeState::Up => "Up",
            PoolNodeState::InDoubt => "In doubt",
            PoolNodeState::RateLimited => "Rate limited",
            PoolNodeState::Down => "Down",
            PoolNodeState::Silent => "Silent",
            PoolNodeState::Excluded => "Excluded",
        }
    }

    /// The class of its colour.
    fn state_tone(&self) -> &'static str {
        match self.state {
            PoolNodeState::Up => "good",
            PoolNodeState::InDoubt | PoolNodeState::RateLimited => "warn",
            PoolNodeState::Down | PoolNodeState::Silent | PoolNodeState::Excluded => "bad",
        }
    }
}

/// A partner that answers during an outage.
#[derive(Clone, Debug)]
pub struct LivePartner {
    pub name: String,
    /// Calls of today.
    pub used: u64,
    /// Calls per day at most; `None` is no limit.
    pub budget: Option<u64>,
}

/// The blocks on disk.
#[derive(Clone, Debug)]
pub struct LiveStorage {
    pub kind: StorageKind,
    /// What it does, such as `following` or `paused: the disk cannot be written`.
    pub state: String,
    /// Whether `state` needs the operator's attention.
    pub is_problem: bool,
    pub lowest: Option<u64>,
    pub newest: Option<u64>,
    pub bytes: u64,
    pub execution: Option<LiveExecution>,
}

impl LiveStorage {
    fn heading(&self) -> &'static str {
        match self.kind {
            StorageKind::Archive => "Archive",
            StorageKind::Blocks => "Stored blocks",
        }
    }
}

/// The execution of blocks of the nodes, while the archive is behind their head.
#[derive(Clone, Copy, Debug)]
pub struct LiveExecution {
    pub done_blocks: u64,
    pub total_blocks: u64,
}

impl LiveExecution {
    fn share(&self) -> f64 {
        self.done_blocks as f64 / self.total_blocks.max(1) as f64
    }
}

/// A gateway that shares the limits.
#[derive(Clone, Debug)]
pub struct LiveInstance {
    pub name: String,
    pub is_this: bool,
    /// Such as `shares limits over Redis`.
    pub state: String,
}
