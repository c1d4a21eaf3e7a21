//! What the steps of a request work with: one per process, shared by all connections.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::admit::Capacity;
use crate::answer::{Answers, Sources};
use crate::callers::Directory;
use crate::clock::Clock;
use crate::config::Config;
use crate::limits::Limits;
use crate::listen::peers::{ClosableConnections, Peers};
use crate::log::RepeatedWarning;
use crate::memory::MemoryBudget;
use crate::meter::Shard;
use crate::network::Network;
use crate::resolve::Rules;

/// The public side of the gateway.
#[derive(Debug)]
pub struct Edge {
    pub(crate) clock: Clock,
    pub(crate) callers: Directory,
    pub(crate) network: Network,
    pub(crate) rules: Rules,
    pub(crate) limits: Limits,
    pub(crate) answers: Answers,
    pub(crate) capacity: Capacity,
    pub(crate) memory: MemoryBudget,
    pub(crate) shards: Vec<Shard>,
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

impl Edge {
    pub fn new(config: &Config, sources: impl Into<Sources>) -> io::Result<Self> {
        let shards = std::iter::repeat_with(Shard::default).take(config.listen.workers.max(1)).collect();
        let memory = MemoryBudget::new(config.limits.memory_bytes_max);
        Ok(Self {
            clock: Clock::default(),
            callers: Directory::new(&config.keys),
            rules: Rules {
                unsupported_tags: config.network.unsupported_tags.clone(),
                log_blocks_max: config.limits.answer.log_blocks_max,
            },
            network: config.network.clone(),
            answers: Answers::new(sources.into(), config.limits.answer.clone(), memory.clone())?,
            capacity: Capacity::new(config.limits.http.calls_in_flight_max),
            memory,
            limits: config.limits.clone(),
            shards,
            connections: Connections::default(),
            peers: Peers::new(&config.listen.proxies, &config.limits.listen),
        })
    }

    /// Whether a load balancer should send callers here.
    pub fn is_ready(&self) -> bool {
        self.unready().is_none()
    }

    /// Why callers should not be sent here, if so.
    pub(crate) fn unready(&self) -> Option<&'static str> {
        if self.connections.draining.load(Relaxed) {
            return Some("draining");
        }
        let pool = self.answers.remote()?.pool();
        let view = pool.view();
        match view.head() {
            _ if pool.is_left_out() => {
                Some("no node is used: all are of another chain or syncing, see the log")
            }
            _ if pool.is_silent() => Some("no node answers, see the log"),
            _ if view.refused().is_some() => {
                Some("the nodes have a chain without the checkpoint in [network], see /status")
            }
            None if pool.has_undecided_chain() => Some("the nodes do not agree on a chain, see /status"),
            None => Some("no quorum of the nodes has shown its chain yet, see /status"),
            Some(_) if view.is_stale() => Some("the head stands still, see /status"),
            Some(_) => None,
        }
    }

    /// The number of the newest block that is served.
    pub fn head(&self) -> Option<u64> {
        self.answers.head()
    }
}
