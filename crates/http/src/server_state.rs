//! State shared by all connections of a server.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use resources::{Clock, MemoryBudget, MonoTime, RepeatedWarning};
use tokio::time::Instant;

use crate::config::HttpConfig;
use crate::counts::HttpCounts;
use crate::limits::HttpLimits;
use crate::peers::{ClosableConnections, Peers};

/// State shared by all connections of a server.
#[derive(Debug)]
pub struct ServerState {
    pub clock: Clock,
    pub limits: HttpLimits,
    pub memory: MemoryBudget,
    /// One per worker, so that counting causes no contention between cores.
    pub counts: Vec<HttpCounts>,
    pub(crate) connections: Connections,
    pub(crate) peers: Peers,
}

/// The connections of a server.
#[derive(Debug)]
pub(crate) struct Connections {
    /// A random number at the beginning of all request ids of this process.
    pub(crate) process: u32,
    pub(crate) open: AtomicUsize,
    /// Connections to which a refusal is being sent.
    pub(crate) being_refused: AtomicUsize,
    pub(crate) closable: ClosableConnections,
    /// The number of the next connection.
    pub(crate) seen: AtomicU64,
    pub(crate) draining: AtomicBool,
    pub(crate) accept_failures: RepeatedWarning,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            process: rand::random(),
            open: AtomicUsize::default(),
            being_refused: AtomicUsize::default(),
            closable: ClosableConnections::default(),
            seen: AtomicU64::default(),
            draining: AtomicBool::default(),
            accept_failures: RepeatedWarning::default(),
        }
    }
}

impl ServerState {
    pub fn new(config: &HttpConfig, limits: HttpLimits, memory: MemoryBudget) -> Self {
        Self {
            clock: Clock::default(),
            counts: std::iter::repeat_with(HttpCounts::default).take(config.workers.max(1)).collect(),
            connections: Connections::default(),
            peers: Peers::new(&config.proxies, &limits),
            limits,
            memory,
        }
    }

    /// When the next step of a new connection has to be done that begins now, such as its TLS handshake.
    pub(crate) fn step_deadline(&self, accepted: MonoTime) -> Instant {
        let step = self.clock.now().after(self.limits.header_timeout);
        let all_steps = accepted.after(self.limits.first_head_timeout());
        Instant::from_std(self.clock.instant(step.min(all_steps)))
    }

    /// Whether the gateway is shutting down.
    pub fn is_draining(&self) -> bool {
        self.connections.draining.load(Relaxed)
    }

    pub fn open_connections(&self) -> usize {
        self.connections.open.load(Relaxed)
    }
}
