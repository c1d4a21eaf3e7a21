//! A gateway over a real archive: the demo chain, or any other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use answers::ArchiveSource;
use archive::Archive;
use chaingate::config::Config;
use gateway::Server;
use resources::Supervisor;
use serde_json::Value;
use tempfile::TempDir;
use testkit::http::{ReceivedReply, get, post};

use crate::gateway_under_test::call;

/// Longer than anything should take on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// A contract that does nothing for ever, as an override for whoever is called.
pub(crate) const LOOPER: &str = "0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0";

pub(crate) struct Demo {
    server: Option<Server>,
    pub(crate) public: SocketAddr,
    pub(crate) operator: SocketAddr,
    _directory: Option<TempDir>,
}

impl Demo {
    pub(crate) fn with(limits: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let archive = demo::open(directory.path(), |_, _| {}).unwrap();
        Self::over(archive, directory, limits)
    }

    /// `limits` are lines of `[limits]`.
    pub(crate) fn over(archive: Archive, directory: TempDir, limits: &str) -> Self {
        Self::serve(Arc::new(archive), Some(directory), limits)
    }

    /// Over an archive that others write to.
    pub(crate) fn sharing(archive: Arc<Archive>) -> Self {
        Self::serve(archive, None, "")
    }

    fn serve(archive: Arc<Archive>, directory: Option<TempDir>, limits: &str) -> Self {
        let addresses = "public = \"127.0.0.1:0\"\noperator = \"127.0.0.1:0\"\nworkers = 2";
        let config = Config::parse(&format!("[listen]\n{addresses}\n[limits]\n{limits}")).unwrap();
        let source = ArchiveSource::new(archive, config.limits.answer.clone());
        let state = Arc::new(config.gateway(Arc::new(source), &Supervisor::default()).unwrap());
        let server = Server::start(&config.listen, state).unwrap();
        Self {
            public: server.public(),
            operator: server.operator(),
            server: Some(server),
            _directory: directory,
        }
    }

    pub(crate) fn post(&self, body: impl AsRef<[u8]>) -> ReceivedReply {
        post(self.public, "/v3/demo", body)
    }

    pub(crate) fn call(&self, method: &str, params: &str) -> Value {
        self.post(call(method, params)).json()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.drain_at_once();
        }
    }
}

/// A call that never ends by itself. Those of different numbers do not share an answer.
pub(crate) fn endless(number: usize) -> String {
    let message = format!(r#"{{"to":"{LOOPER}","data":"0x{number:08x}"}}"#);
    call("eth_call", &format!(r#"[{message},"latest",{{"{LOOPER}":{{"code":"0x5b5f56"}}}}]"#))
}

/// An endless call in the code of a creation, in which nothing shows at once that it will take long.
pub(crate) fn endless_creation(number: usize) -> String {
    call("eth_call", &format!(r#"[{{"data":"0x5b5f56{number:08x}"}}]"#))
}

/// The value of a series without labels.
pub(crate) fn metric(operator: SocketAddr, name: &str) -> f64 {
    let page = get(operator, "/metrics");
    let line = page.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

/// Waits for something that others bring about.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < PATIENCE, "it never happened: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
