//! State that all requests share, one per process.

use std::io;
use std::sync::Arc;

use answers::{Answers, ResolveRules, Sources};
use callers::usage::{DayCredits, UsageRecorder};
use callers::{Directory, SharedLimits, StaticKey};
use http_server::{ServerState, TlsConfig};
use methods::Network;
use resources::{Clock, DiskHealth, FairTurns, MemoryBudget, Supervisor, WhenDown};

use crate::admit::Capacity;
use crate::limits::GatewayLimits;
use crate::meter::WorkerCounters;
use crate::partner_quotas::PartnerQuotas;

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
    /// By worker: turns of the requests that take longer than a short call.
    pub(crate) turns: Vec<Arc<FairTurns>>,
    pub(crate) usage: Arc<UsageRecorder>,
    /// The tasks beside requests.
    pub(crate) supervisor: Supervisor,
    /// The health of the disk that has the data directory.
    pub(crate) disk: DiskHealth,
    /// When the certificate of the public listener expires, in seconds since 1970; `None` without TLS.
    tls_expires_at: Option<i64>,
    partner_quotas: PartnerQuotas,
}

impl GatewayState {
    pub fn new(
        listen: &http_server::HttpConfig,
        limits: &GatewayLimits,
        keys: &[StaticKey],
        network: &Network,
        sources: impl Into<Sources>,
        supervisor: Supervisor,
        disk: DiskHealth,
    ) -> io::Result<Self> {
        let workers = listen.workers.max(1);
        let usage = Arc::new(UsageRecorder::new(workers));
        let worker_counters = (0..workers).map(|worker| WorkerCounters::new(usage.shard(worker))).collect();
        let threads = listen.threads_per_worker();
        let memory = MemoryBudget::new(limits.memory_bytes_max);
        let server = Arc::new(ServerState::new(listen, limits.listen.clone(), memory.clone()));
        let answers = Answers::new(sources.into(), limits.answer.clone(), memory.clone())?;
        Ok(Self {
            clock: server.clock,
            server,
            callers: Arc::new(Directory::new(keys)),
            rules: ResolveRules {
                unsupported_tags: network.unsupported_tags.clone(),
                log_blocks_max: limits.answer.log_blocks_max,
            },
            network: network.clone(),
            partner_quotas: PartnerQuotas::new(&answers, &usage),
            answers,
            capacity: Capacity::new(limits.http.calls_in_flight_max),
            memory,
            limits: limits.clone(),
            worker_counters,
            turns: std::iter::repeat_with(|| FairTurns::new(threads)).take(workers).collect(),
            usage,
            supervisor,
            disk,
            tls_expires_at: listen.tls.as_ref().map(TlsConfig::expires_at).transpose()?,
        })
    }

    /// When the certificate of the public listener expires, in seconds since 1970; `None` without TLS. The certificate is read
    /// once, when the gateway starts.
    pub fn tls_expires_at(&self) -> Option<i64> {
        self.tls_expires_at
    }

    /// What callers have used.
    pub fn usage(&self) -> &Arc<UsageRecorder> {
        &self.usage
    }

    /// From now on limits, and quotas of partners, hold over all gateways with the same Redis.
    pub fn share_limits(&self, shared: &Arc<SharedLimits>) {
        self.callers.share_limits(shared);
        self.partner_quotas.share(shared);
    }

    /// Counts as used what the store knows of today, unless more is known here.
    pub fn raise_used(&self, credits: &DayCredits) {
        credits.raise_used(&self.callers);
        self.partner_quotas.raise_used(credits);
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

    /// Knows the tasks beside requests.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    pub fn disk(&self) -> &DiskHealth {
        &self.disk
    }

    /// Why callers should not be sent here, if so. A disk that cannot be written is no reason: calls are answered and counted
    /// from memory.
    pub(crate) fn unready(&self) -> Option<String> {
        if self.server.is_draining() {
            return Some("draining".to_owned());
        }
        if let Some(task) = self.supervisor.first_down(WhenDown::NotReady) {
            return Some(format!("the task {} does not run: {}, see the log", task.name, task.reason()));
        }
        self.unready_sources().map(str::to_owned)
    }

    /// Why callers or blocks cannot be told, if so.
    fn unready_sources(&self) -> Option<&'static str> {
        if let Some(reason) = self.callers.feed_status().not_ready_because() {
            return Some(reason);
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
