//! A gateway with the demo chain, as `chaingate serve` starts it without configuration.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chaingate::config::Config;
use chaingate::source;
use gateway::Server;
use resources::Supervisor;
use tempfile::TempDir;

/// Stopped when the test is over.
pub(crate) struct DemoGateway {
    server: Option<Server>,
    pub(crate) public: SocketAddr,
    _folder: TempDir,
}

impl DemoGateway {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = "[listen]\npublic = \"127.0.0.1:0\"\noperator = \"127.0.0.1:0\"\nworkers = 2\n";
        // No machine takes so long for a call, however busy it is.
        let patient = "[limits]\ncall_timeout_ms = 120000\n";
        let mut config =
            Config::parse(&format!("{listen}{patient}")).unwrap_or_else(|errors| panic!("{errors}"));
        config.data_dir = folder.path().to_owned();
        config.limits.listen.drain_timeout = Duration::from_millis(200);
        let supervisor = Supervisor::default();
        let source = source::open(&config, &supervisor, |_, _| {}).unwrap();
        let server =
            Server::start(&config.listen, Arc::new(config.gateway(source, &supervisor).unwrap())).unwrap();
        Self { public: server.public(), server: Some(server), _folder: folder }
    }
}

impl Drop for DemoGateway {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.drain_at_once();
        }
    }
}
