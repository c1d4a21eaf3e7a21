//! What all connections of a server share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use resources::{Clock, MemoryBudget, RepeatedWarning};

use crate::config::Config;
use crate::counts::HttpCounts;
use crate::limits::Limits;
use crate::peers::{ClosableConnections, Peers};

/// What all connections share.
#[derive(Debug)]
pub struct ServerState {
    pub clock: Clock,
    pub limits: Limits,
    pub memory: MemoryBudget,
    /// One for each worker, so that counting never makes two cores wait for each other.
    pub counts: Vec<HttpCounts>,
    pub(crate) connections: Connections,
    pub(crate) peers: Peers,
}

/// How many connections there are, and whether new ones are welcome.
#[derive(Debug)]
pub(crate) struct Connections {
    /// A random number that the ids of all requests of this process begin with.
    pub(crate) process: u32,
    pub(crate) open: AtomicUsize,
    /// Connections that are being told that there is no place for them.
    pub(crate) being_refused: AtomicUsize,
    pub(crate) closable: ClosableConnections,
    /// How many there were; each takes its number from here.
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
    pub fn new(config: &Config, limits: Limits, memory: MemoryBudget) -> Self {
        Self {
            clock: Clock::default(),
            counts: std::iter::repeat_with(HttpCounts::default).take(config.workers.max(1)).collect(),
            connections: Connections::default(),
            peers: Peers::new(&config.proxies, &limits),
            limits,
            memory,
        }
    }

    /// Whether the gateway is about to end.
    pub fn is_draining(&self) -> bool {
        self.connections.draining.load(Relaxed)
    }

    /// How many connections there are.
    pub fn open_connections(&self) -> usize {
        self.connections.open.load(Relaxed)
    }
}
