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
    pub tls: Option<TlsConfig>,
    pub proxies: ProxyConfig,
}

impl HttpConfig {
    pub fn read(section: &mut Section<'_>) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        section.removed("runtime", "each connection stays on one worker");
        Self {
            public: section.address("public", SocketAddr::from(([127, 0, 0, 1], 8545))),
            workers: section.size_up_to("workers", cores, THREADS_MAX),
            tls: TlsConfig::read(section),
            proxies: ProxyConfig::read(section),
        }
    }
}
