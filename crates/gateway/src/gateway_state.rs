//! State that all requests share, one per process.

use std::io;
use std::sync::Arc;

use answers::{Answers, ResolveRules, Sources};
use arc_swap::{ArcSwap, Guard};
use callers::usage::{DayCredits, UsageRecorder};
use callers::{Directory, SharedLimits, StaticKey};
use http_server::{ServedCertificate, ServerState};
use methods::Network;
use resources::{Clock, DiskHealth, FairTurns, MemoryBudget, Supervisor, WhenDown, unix_seconds};

use crate::access_log::AccessLog;
use crate::admit::Capacity;
use crate::allowed_hosts::AllowedHosts;
use crate::limits::GatewayLimits;
use crate::meter::WorkerCounters;
use crate::partner_quotas::PartnerQuotas;
use crate::request_limits::RequestLimits;

/// State that all requests share.
#[derive(Debug)]
pub struct GatewayState {
    /// State that the HTTP server shares between connections.
    pub(crate) server: Arc<ServerState>,
    pub(crate) clock: Clock,
    pub(crate) callers: Arc<Directory>,
    /// The name of the network, for metrics.
    pub(crate) network_name: String,
    settings: ArcSwap<RequestSettings>,
    operator_hosts: ArcSwap<AllowedHosts>,
    pub(crate) answers: Answers,
    pub(crate) capacity: Capacity,
    pub(crate) memory: MemoryBudget,
    pub(crate) worker_counters: Vec<WorkerCounters>,
    /// The turns of requests that take longer than a short call, one entry per worker.
    pub(crate) turns: Vec<Arc<FairTurns>>,
    pub(crate) usage: Arc<UsageRecorder>,
    /// The tasks beside requests.
    pub(crate) supervisor: Supervisor,
    /// The health of the disk that has the data directory.
    pub(crate) disk: DiskHealth,
    partner_quotas: PartnerQuotas,
    /// `None` if no call is logged.
    pub(crate) access_log: Option<AccessLog>,
    /// The time at which this was made, in seconds since 1970.
    pub(crate) started_at: i64,
}

/// The settings of requests that a reload changes.
#[derive(Debug)]
pub(crate) struct RequestSettings {
    pub(crate) limits: RequestLimits,
    /// Values in one log filter.
    pub(crate) log_params_max: usize,
    pub(crate) rules: ResolveRules,
    pub(crate) network: Network,
}

impl RequestSettings {
    fn new(limits: &GatewayLimits, network: Network) -> Self {
        let rules = ResolveRules {
            unsupported_tags: network.unsupported_tags.clone(),
            log_blocks_max: limits.answer.log_blocks_max,
        };
        Self { limits: limits.http, log_params_max: limits.answer.log_params_max, rules, network }
    }
}

impl GatewayState {
    /// The changes of the chain from now on.
    pub fn chain_changes(&self) -> answers::ChainChanges {
        self.answers.changes()
    }

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
        let memory = MemoryBudget::new(limits.memory_bytes_max);
        let server = Arc::new(ServerState::new(listen, limits.listen.clone(), memory.clone())?);
        let answers = Answers::new(sources.into(), limits.answer.clone(), memory.clone())?;
        Ok(Self {
            clock: server.clock,
            server,
            callers: Arc::new(Directory::new(keys)),
            network_name: network.name.clone(),
            settings: ArcSwap::from_pointee(RequestSettings::new(limits, network.clone())),
            operator_hosts: ArcSwap::default(),
            partner_quotas: PartnerQuotas::new(&answers, &usage),
            answers,
            capacity: Capacity::new(limits.http.calls_in_flight_max),
            memory,
            worker_counters,
            turns: std::iter::repeat_with(FairTurns::new).take(workers).collect(),
            usage,
            supervisor,
            disk,
            access_log: None,
            started_at: unix_seconds(),
        })
    }

    /// Logs calls there.
    pub fn with_access_log(self, access_log: Option<AccessLog>) -> Self {
        Self { access_log, ..self }
    }

    /// The access log, if calls are logged.
    pub fn access_log(&self) -> Option<&AccessLog> {
        self.access_log.as_ref()
    }

    /// The certificate of the public listener; `None` without TLS.
    pub fn certificate(&self) -> Option<&Arc<ServedCertificate>> {
        self.server.certificate.as_ref()
    }

    /// How requests are answered now.
    pub(crate) fn settings(&self) -> Guard<Arc<RequestSettings>> {
        self.settings.load()
    }

    /// The limits of one request as they are now.
    pub(crate) fn request_limits(&self) -> RequestLimits {
        self.settings().limits
    }

    /// Requests that begin from now on have these limits, and methods these settings. The rest of the network stays what it was.
    pub fn change_settings(&self, limits: &GatewayLimits, methods: &Network) {
        self.capacity.set_calls_max(limits.http.calls_in_flight_max);
        self.server.change_limits(limits.listen.clone());
        self.answers.change_limits(&limits.answer);
        let network = Network {
            failover: methods.failover.clone(),
            eth_call_requires_from: methods.eth_call_requires_from,
            ..self.settings().network.clone()
        };
        self.settings.store(Arc::new(RequestSettings::new(limits, network)));
    }

    /// The host names under which the operator's pages are answered.
    pub(crate) fn operator_hosts(&self) -> Guard<Arc<AllowedHosts>> {
        self.operator_hosts.load()
    }

    pub fn change_operator_hosts(&self, names: &[String]) {
        self.operator_hosts.store(Arc::new(AllowedHosts::new(names)));
    }

    pub fn usage(&self) -> &Arc<UsageRecorder> {
        &self.usage
    }

    /// Shares limits per second with all gateways on the same Redis from now on.
    pub fn share_limits(&self, shared: &Arc<SharedLimits>) {
        self.callers.share_limits(shared);
    }

    /// Raises the used credits of today to those that the store knows, unless more are known here.
    pub fn raise_used(&self, credits: &DayCredits) {
        credits.raise_used(&self.callers);
        self.partner_quotas.raise_used(&self.answers, credits);
    }

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

    /// The tasks beside requests.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    pub fn disk(&self) -> &DiskHealth {
        &self.disk
    }

    /// The reason why a load balancer should not send callers here, if there is one. A disk that cannot be written is none: calls
    /// are answered and counted from memory.
    pub(crate) fn unready(&self) -> Option<String> {
        if self.server.is_draining() {
            return Some("draining".to_owned());
        }
        if let Some(task) = self.supervisor.first_down(WhenDown::NotReady) {
            return Some(format!("the task {} does not run: {}, see the log", task.name, task.reason()));
        }
        self.unready_sources().map(str::to_owned)
    }

    /// The reason why callers are not known or blocks cannot be served, if there is one.
    fn unready_sources(&self) -> Option<&'static str> {
        if let Some(reason) = self.callers.feed_status().not_ready_because() {
            return Some(reason);
        }
        let pool = self.answers.remote()?.pool();
        let view = pool.view();
        match view.head() {
            _ if pool.all_excluded() => {
                Some("no node is used: all are of another chain or syncing, see the log")
            }
            _ if pool.all_unreachable() => Some("no node answers, see the log"),
            _ if view.refused_head().is_some() => {
                Some("the nodes have a chain without the checkpoint in [network], see /status")
            }
            None if pool.has_undecided_chain() => Some("the nodes do not agree on a chain, see /status"),
            None => Some("no quorum of the nodes has shown its chain yet, see /status"),
            Some(_) if view.is_stale() => Some("the head has not changed for too long, see /status"),
            Some(_) => None,
        }
    }

    /// The number of the newest block that is served.
    pub fn head(&self) -> Option<u64> {
        self.answers.head()
    }
}
