//! State shared by all connections of a server.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use arc_swap::{ArcSwap, Guard};
use resources::{Clock, MemoryBudget, MonoTime, RepeatedWarning};
use tokio::time::Instant;

use crate::config::HttpConfig;
use crate::counts::HttpCounts;
use crate::limits::HttpLimits;
use crate::peers::{ClosableConnections, Peers};
use crate::tls::ServedCertificate;

/// State shared by all connections of a server.
#[derive(Debug)]
pub struct ServerState {
    pub clock: Clock,
    /// Connections keep those with which they began.
    limits: Arc<ArcSwap<HttpLimits>>,
    pub memory: MemoryBudget,
    /// One per worker, so that counting causes no contention between cores.
    pub counts: Vec<HttpCounts>,
    /// `None` without TLS.
    pub certificate: Option<Arc<ServedCertificate>>,
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
    /// Fails if the certificate cannot be read.
    pub fn new(config: &HttpConfig, limits: HttpLimits, memory: MemoryBudget) -> io::Result<Self> {
        let limits = Arc::new(ArcSwap::from_pointee(limits));
        Ok(Self {
            clock: Clock::default(),
            counts: std::iter::repeat_with(HttpCounts::default).take(config.workers.max(1)).collect(),
            certificate: config.tls.as_ref().map(ServedCertificate::read).transpose()?.map(Arc::new),
            connections: Connections::default(),
            peers: Peers::new(&config.proxies, Arc::clone(&limits)),
            limits,
            memory,
        })
    }

    pub fn limits(&self) -> Guard<Arc<HttpLimits>> {
        self.limits.load()
    }

    /// Connections that begin from now on have these limits. Those of addresses hold at once.
    pub fn change_limits(&self, limits: HttpLimits) {
        let before = self.limits.swap(Arc::new(limits));
        self.peers.limits_changed(&before);
    }

    /// When the next step of a new connection has to be done that begins now, such as its TLS handshake.
    pub(crate) fn step_deadline(&self, accepted: MonoTime) -> Instant {
        let limits = self.limits();
        let step = self.clock.now().after(limits.header_timeout);
        let all_steps = accepted.after(limits.first_head_timeout());
        Instant::from_std(self.clock.instant(step.min(all_steps)))
    }

    pub fn is_draining(&self) -> bool {
        self.connections.draining.load(Relaxed)
    }

    pub fn open_connections(&self) -> usize {
        self.connections.open.load(Relaxed)
    }
}
