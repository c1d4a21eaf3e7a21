//! Accounts in front of nodes: none waits for the work of another.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use answers::{ArchiveSource, Sources};
use gateway::{GatewayState, Server};
use resources::Supervisor;
use tempfile::TempDir;
use testkit::http::{TestConnection, post, request};

use crate::config::Config;
use crate::source;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

const ADDRESSES: &str = "[listen]\npublic = \"127.0.0.1:0\"\noperator = \"127.0.0.1:0\"\nworkers = 2\n";

/// Receipts of more than 100 KB, which are checked in the pool.
const RECEIPTS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBlockReceipts","params":["0xb4"]}"#;

/// A gateway that is stopped when the test is over.
struct Running {
    state: Arc<GatewayState>,
    server: Option<Server>,
}

impl Running {
    fn start(config: &Config, sources: impl Into<Sources>) -> Self {
        let state = Arc::new(config.gateway(sources, &Supervisor::default()).unwrap());
        let server = Server::start(&config.listen, Arc::clone(&state)).unwrap();
        Self { state, server: Some(server) }
    }

    fn public(&self) -> std::net::SocketAddr {
        self.server.as_ref().unwrap().public()
    }

    /// Uses the only thread of a key's account until the sender is dropped.
    fn occupy(&self, key: &str) -> mpsc::Sender<()> {
        let account = self.state.callers().find(key.as_bytes()).unwrap().account.id;
        let (release, released) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let job = move || {
            begin.send(()).unwrap();
            let _released = released.recv();
        };
        self.state.answers().threads().submit(account, job).unwrap();
        begun.recv_timeout(PATIENCE).unwrap();
        release
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.drain_at_once();
        }
    }
}

/// A node, which is a gateway with the demo chain, and a gateway in front of it with the keys `one` and `other` of different
/// accounts, each of which has one thread of the pool.
fn in_front_of_a_node() -> (TempDir, Running, Running) {
    let folder = tempfile::tempdir().unwrap();
    let archive = demo::open(folder.path(), |_, _| ()).unwrap();
    let config = Config::parse(ADDRESSES).unwrap();
    let source = ArchiveSource::new(Arc::new(archive), config.limits.answer.clone());
    let node = Running::start(&config, Arc::new(source));
    let url = format!("http://{}/v3/demo", node.public());
    let text = format!(
        "{ADDRESSES}[[key]]\nkey = \"one\"\n[[key]]\nkey = \"other\"\n[network]\nname = \"front\"\n\
         [limits]\npool_threads = 1\n[follow]\nmode = \"off\"\n[cache]\nenabled = false\n\
         [pool]\npoll_interval_ms = 20\ncall_timeout_ms = 300000\n[[node]]\nurl = \"{url}\"\n"
    );
    let config = Config::parse(&text).unwrap();
    let front = Running::start(&config, source::open(&config, &Supervisor::default(), |_, _| {}).unwrap());
    until("it is ready", || front.state.is_ready());
    (folder, node, front)
}

fn until(what: &str, done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < PATIENCE, "it never happened: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Equal calls share one answer, which was checked in the share of the pool of whoever asked first. Whoever else asked waited
/// behind the jobs of that account, and was refused when its share was used up.
#[test]
fn a_large_answer_is_not_shared_with_an_account_that_has_used_up_its_threads() {
    let (_folder, _node, front) = in_front_of_a_node();
    let threads = front.state.answers().threads();
    let occupied = front.occupy("one");
    let mut first = TestConnection::connect(front.public());
    first.send(request("/v3/one", "", RECEIPTS.as_bytes()));
    until("its answer waits to be checked", || threads.waiting() == 1);
    let served = post(front.public(), "/v3/other", RECEIPTS).json();
    assert!(served["result"].is_array(), "{served}");
    assert_eq!(threads.waiting(), 1, "the first one still waits");
    drop(occupied);
    assert_eq!(first.reply().json(), served);
}
