//! Where callers connect to, and with what they are served.

use std::net::SocketAddr;
use std::thread;

use resources::THREADS_MAX;
use settings::Section;

use crate::peers::ProxyConfig;
use crate::tls::Tls;

/// Where to listen and with what.
#[derive(Clone, Debug)]
pub struct Config {
    pub public: SocketAddr,
    /// Threads that serve connections.
    pub workers: usize,
    pub runtime: Runtime,
    pub tls: Option<Tls>,
    pub proxies: ProxyConfig,
}

/// How connections are spread over the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    PerCore,
    WorkStealing,
}

impl Config {
    pub fn read(section: &mut Section<'_>) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let runtime = match section.text("runtime", "per-core").as_str() {
            "work-stealing" => Runtime::WorkStealing,
            "per-core" => Runtime::PerCore,
            _ => {
                section.mistake("runtime", "must be per-core or work-stealing");
                Runtime::PerCore
            }
        };
        Self {
            public: section.address("public", SocketAddr::from(([127, 0, 0, 1], 8545))),
            workers: section.size_up_to("workers", cores, THREADS_MAX),
            runtime,
            tls: Tls::read(section),
            proxies: ProxyConfig::read(section),
        }
    }
}
