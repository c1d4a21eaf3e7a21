//! State that all requests share, one per process.

use std::io;
use std::sync::Arc;

use answers::{Answers, ResolveRules, Sources};
use callers::usage::UsageRecorder;
use callers::{Directory, StaticKey};
use http_server::ServerState;
use methods::Network;
use resources::{Clock, MemoryBudget};

use crate::admit::Capacity;
use crate::limits::GatewayLimits;
use crate::meter::WorkerCounters;

/// What all requests share.
#[derive(Debug)]
pub struct GatewayState {
    /// What the HTTP server shares between connections.
    pub(crate) server: Arc<ServerState>,
    pub(crate) clock: Clock,
    pub(crate) callers: Arc<Directory>,
    pub(crate) network: Network,
    pub(crate) rules: ResolveRules,
    pub(crate) limits: GatewayLimits,
    pub(crate) answers: Answers,
    pub(crate) capacity: Capacity,
    pub(crate) memory: MemoryBudget,
    pub(crate) worker_counters: Vec<WorkerCounters>,
    pub(crate) usage: Arc<UsageRecorder>,
}

impl GatewayState {
    pub fn new(
        listen: &http_server::HttpConfig,
        limits: &GatewayLimits,
        keys: &[StaticKey],
        network: &Network,
        sources: impl Into<Sources>,
    ) -> io::Result<Self> {
        let workers = listen.workers.max(1);
        let usage = Arc::new(UsageRecorder::new(workers));
        let worker_counters = (0..workers).map(|worker| WorkerCounters::new(usage.shard(worker))).collect();
        let memory = MemoryBudget::new(limits.memory_bytes_max);
        let server = Arc::new(ServerState::new(listen, limits.listen.clone(), memory.clone()));
        Ok(Self {
            clock: server.clock,
            server,
            callers: Arc::new(Directory::new(keys)),
            rules: ResolveRules {
                unsupported_tags: network.unsupported_tags.clone(),
                log_blocks_max: limits.answer.log_blocks_max,
            },
            network: network.clone(),
            answers: Answers::new(sources.into(), limits.answer.clone(), memory.clone())?,
            capacity: Capacity::new(limits.http.calls_in_flight_max),
            memory,
            limits: limits.clone(),
            worker_counters,
            usage,
        })
    }

    /// What callers have used.
    pub fn usage(&self) -> &Arc<UsageRecorder> {
        &self.usage
    }

    /// All accounts and keys.
    pub fn callers(&self) -> &Arc<Directory> {
        &self.callers
    }

    /// The sources of answers.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Whether a load balancer should send callers here.
    pub fn is_ready(&self) -> bool {
        self.unready().is_none()
    }

    /// Why callers should not be sent here, if so.
    pub(crate) fn unready(&self) -> Option<&'static str> {
        if self.server.is_draining() {
            return Some("draining");
        }
        if self.callers.feed_status().lacks_keys() {
            return Some(
                "the store of accounts and keys cannot be reached, and there is no local copy of it, see /status",
            );
        }
        let pool = self.answers.remote()?.pool();
        let view = pool.view();
        match view.head() {
            _ if pool.is_excluded() => {
                Some("no node is used: all are of another chain or syncing, see the log")
            }
            _ if pool.is_silent() => Some("no node answers, see the log"),
            _ if view.refused_head().is_some() => {
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
