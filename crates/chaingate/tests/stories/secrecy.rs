//! Keys, secrets and tokens are in no log, not even at TRACE, and in no metric.

#[path = "secrecy/canaries.rs"]
mod canaries; // a thousand stored keys

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tempfile::TempDir;
use testkit::http::{TestConnection, get, post, request};

use crate::demo::until;
use crate::gateway_under_test::{call, chain_id};
use crate::http2::post as post_http2;
use crate::process::{Process, send_signal};
use crate::signing::Signer;

const KEY: &str = "canary-key-7f3a";
const SECRET: &str = "canary-secret-91c2";
const UNKNOWN: &str = "canary-unknown-55e0";

/// The program itself, logging everything it can into a file.
struct Program {
    child: Child,
    folder: TempDir,
}

impl Program {
    fn start(settings: &str) -> Self {
        Self::start_prepared(settings, |_| {})
    }

    /// Like [`start`](Self::start). `prepare` fills the data directory.
    fn start_prepared(settings: &str, prepare: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(&folder.path().join("data"));
        let config = format!(
            "[listen]\npublic = \"127.0.0.1:0\"\noperator = \"127.0.0.1:0\"\nworkers = 1\n\
             [[key]]\nkey = \"{KEY}\"\n{settings}\n"
        );
        fs::write(folder.path().join("config.toml"), config).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_chaingate"))
            .args(["serve", "--config", "config.toml", "--data-dir", "data"])
            // A directive for a part of a library once went over the limit of the whole library.
            .env("RUST_LOG", "trace,h2=trace,h2::server=trace,hyper::proto=trace,hyper_util=trace")
            .env("CHAINGATE_CONSOLE", "127.0.0.1:0")
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        Self { child, folder }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Where it listens, for callers and for the operator.
    fn addresses(&self) -> (SocketAddr, SocketAddr) {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(60) {
            let log = self.log();
            let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(line) = lines.find(|line| line["fields"]["message"] == "serving") {
                let address = |name: &str| line["fields"][name].as_str().unwrap().parse().unwrap();
                return (address("public"), address("operator"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("it never served:\n{}", self.log());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn basic(password: &str) -> String {
    format!("authorization: Basic {}\r\n", STANDARD.encode(format!(":{password}")))
}

#[test]
fn no_log_line_and_no_metric_shows_a_key_a_secret_or_a_token() {
    let signer = Signer::ed25519();
    let token = signer.good_token();
    let pem = signer.public_pem();
    let program = Program::start(&format!(
        "secret = \"{SECRET}\"\nsecret_required = false\njwt_required = false\njwt_public_keys = ['''{pem}''']\n\
         [access_log]\ncalls = \"all\"\nfile = \"access.log\""
    ));
    let (public, operator) = program.addresses();
    let path = format!("/v3/{KEY}");
    let headers =
        ["".to_owned(), basic(SECRET), basic("wrong-canary"), format!("authorization: Bearer {token}\r\n")];
    for headers in &headers {
        for body in
            [chain_id("1"), call("eth_call", "[{}]"), "nonsense".to_owned(), format!("[{}]", chain_id("1"))]
        {
            TestConnection::connect(public).send(request(&path, headers, body.as_bytes())).reply();
        }
    }
    for path in
        [format!("/v3/{UNKNOWN}"), format!("/v3/{KEY}/x"), format!("/v2/{KEY}"), format!("/v3/{KEY}?x")]
    {
        assert!(!post(public, &path, chain_id("1")).text().contains("canary"), "{path}");
    }
    TestConnection::connect(public).send(format!("POST /v3/{KEY} x HTTP/1.1\r\n\r\n")).next_reply();
    over_http2(public, &path);
    let metrics = get(operator, "/metrics");
    until("all requests are logged", || program.log().matches("\"answered\"").count() > 20);
    let access_log = fs::read_to_string(program.folder.path().join("access.log")).unwrap();
    assert!(access_log.lines().count() > 20, "{access_log}");
    let log = program.log() + &access_log;
    let encoded = STANDARD.encode(format!(":{SECRET}"));
    for canary in [KEY, SECRET, UNKNOWN, "canary", token.as_str(), encoded.as_str()] {
        assert!(!metrics.text().contains(canary), "{canary} is in the metrics");
        let line = log.lines().find(|line| line.contains(canary));
        assert_eq!(line, None, "{canary} is in the log");
    }
}

fn over_http2(public: SocketAddr, path: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(public).await.unwrap();
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        assert_eq!(post_http2(&mut sender, path, chain_id("1")).await.0, 200);
        assert_eq!(post_http2(&mut sender, &format!("/v3/{UNKNOWN}"), chain_id("1")).await.0, 401);
    });
}

/// HTTP libraries, which have logs of their own, see the credentials of a node on the way out.
#[test]
fn no_log_line_shows_the_credentials_of_a_node() {
    let node =
        Process::start("127.0.0.1:0", &format!("[[key]]\nkey = \"{KEY}\"\nplan = \"custom\"\n"), "info");
    let port = node.public.port();
    let entry = |host: &str, rest: &str| {
        let url = format!("http://user:canary-password@{host}:{port}/v3/{KEY}");
        format!("[[node]]\nurl = \"{url}\"\nheaders = [\"X-Token: canary-token\"]\n{rest}\n")
    };
    let nodes = entry("127.0.0.1", "name = \"one\"") + &entry("localhost", "name = \"two\"\nhttp2 = true");
    let rest = format!("{nodes}[network]\nname = \"front\"\n[[key]]\nkey = \"{UNKNOWN}\"\n");
    let log =
        "trace,h2=trace,h2::client=trace,hyper::proto=trace,hyper_util=trace,rustls=trace,tungstenite=trace";
    let front = Process::start("127.0.0.1:0", &rest, log);
    until("its nodes are there", || get(front.operator, "/ready").status == 200);
    let path = format!("/v3/{UNKNOWN}");
    let read = call("eth_getBalance", r#"["0x00000000000000000000000000000000000000ff","latest"]"#);
    assert!(post(front.public, &path, read).json()["result"].is_string());
    let metrics = get(front.operator, "/metrics");
    front.terminate();
    let (_, log) = front.ended();
    for line in log.iter().map(String::as_str).chain(metrics.text().lines()) {
        assert!(!line.contains("canary"), "{line}");
    }
}

/// A core dump contains every key that the gateway has, in memory of its own and in that of its connections.
#[test]
fn a_crash_leaves_no_core_dump() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = Command::new("sh")
        .args(["-c", "ulimit -c unlimited && exec sleep 600"])
        .current_dir(folder.path())
        .spawn()
        .unwrap();
    until("the shell has become the program, or has ended because it may not raise the limit", || {
        other.try_wait().unwrap().is_some()
            || fs::read_to_string(format!("/proc/{}/comm", other.id())).unwrap().trim() == "sleep"
    });
    if other.try_wait().unwrap().is_none() {
        send_signal("QUIT", &other.id().to_string());
    }
    if !other.wait().unwrap().core_dumped() {
        return testkit::skip::report("no program leaves a core dump on this machine");
    }
    let before = format!("cd '{}' && ulimit -c unlimited;", folder.path().display());
    for (settings, is_dumped) in [("", false), ("core_dumps = true\n", true)] {
        let gateway = Process::start_with_data("", "info", &before, |data| {
            let config = data.with_file_name("chaingate.toml");
            fs::write(&config, settings.to_owned() + &fs::read_to_string(&config).unwrap()).unwrap();
        });
        gateway.signal("QUIT");
        let (status, _log) = gateway.ended();
        assert_eq!((status.signal(), status.core_dumped()), (Some(3), is_dumped), "{settings}");
    }
}
