//! Settings of the public listener.

use std::net::SocketAddr;
use std::thread;

use resources::THREADS_MAX;
use settings::Section;

use crate::peers::ProxyConfig;
use crate::tls::TlsConfig;

/// Settings of the public listener.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    pub public: SocketAddr,
    /// Threads that serve connections.
    pub workers: usize,
    pub runtime: RuntimeKind,
    pub tls: Option<TlsConfig>,
    pub proxies: ProxyConfig,
}

/// How connections are spread over the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeKind {
    PerCore,
    WorkStealing,
}

impl HttpConfig {
    /// The threads on which the connections of one worker are served.
    pub fn threads_per_worker(&self) -> usize {
        match self.runtime {
            RuntimeKind::PerCore => 1,
            RuntimeKind::WorkStealing => self.workers,
        }
    }

    pub fn read(section: &mut Section<'_>) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let runtime = match section.text("runtime", "per-core").as_str() {
            "work-stealing" => RuntimeKind::WorkStealing,
            "per-core" => RuntimeKind::PerCore,
            _ => {
                section.error("runtime", "must be per-core or work-stealing");
                RuntimeKind::PerCore
            }
        };
        Self {
            public: section.address("public", SocketAddr::from(([127, 0, 0, 1], 8545))),
            workers: section.size_up_to("workers", cores, THREADS_MAX),
            runtime,
            tls: TlsConfig::read(section),
            proxies: ProxyConfig::read(section),
        }
    }
}
