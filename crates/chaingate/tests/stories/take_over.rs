//! A gateway is replaced by another process while calls go on: none is lost.
//!
//! `CHAINGATE_RESTARTS` says how often; then the figures say something.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use testkit::http::get;
use testkit::proxy::Proxy;

use crate::demo::{Demo, until};
use crate::process::Process;
use crate::steady_load::{LoadTarget, SteadyLoad};
use crate::tls::certificate_in;

/// Every caller on a connection that stays open is told to open another one in this time, also on a busy machine.
const TIMES: &str = "[limits]\ndrain_delay_ms = 2000\ndrain_timeout_ms = 60000\n";

fn restarts() -> usize {
    std::env::var("CHAINGATE_RESTARTS").map_or(2, |count| count.parse().unwrap())
}

/// Replaces a gateway again and again. `restart` starts the next one and returns when it serves.
fn replace_under_load(
    what: &str,
    target: LoadTarget,
    mut running: Process,
    restart: impl Fn(Process) -> Process,
) -> Process {
    let load = SteadyLoad::start(target);
    let begin = Instant::now();
    until("calls are answered", || load.answered() > 500);
    let [calm, _] = load.slowest_second(begin);
    let mut slowest = Vec::new();
    for _ in 0..restarts() {
        let begin = Instant::now();
        running = restart(running);
        let before = load.answered();
        until("calls go on", || load.answered() > before + 300);
        slowest.push(load.slowest_second(begin));
    }
    let answered = load.stop();
    slowest.sort();
    let [p99, longest] = slowest[slowest.len() / 2];
    let [worst, longest_of_all] = slowest[slowest.len() - 1];
    eprintln!(
        "{what}: {} restarts, {answered} calls, 0 lost; p99 before {calm:.1?}; slowest second of a restart: p99 {p99:.1?} \
         (worst {worst:.1?}), longest call {longest:.1?} (worst {longest_of_all:.1?})",
        restarts()
    );
    running
}

/// Starts another process that takes over, and waits for the end of this one.
fn take_over(running: Process) -> Process {
    let next = Process::take_over(&running.data());
    let (status, log) = running.ended();
    assert_eq!(status.code(), Some(0), "{log:#?}");
    next
}

fn plain(running: &Process, key: &'static str) -> LoadTarget {
    LoadTarget { address: running.public, certificates: Vec::new(), key }
}

/// The archive can be open in one process only, so there is a pause, in which the kernel holds new connections.
#[test]
fn no_call_is_lost_when_an_archive_is_taken_over() {
    let running = Process::start("127.0.0.1:0", TIMES, "info");
    let (public, operator) = (running.public, running.operator);
    let last = replace_under_load("archive", plain(&running, "demo"), running, take_over);
    assert_eq!((last.public, last.operator), (public, operator), "the addresses stay");
    assert_eq!(get(operator, "/ready").status, 200);
}

#[test]
fn no_call_is_lost_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (tls, certificate) = certificate_in(folder.path());
    let running = Process::start("127.0.0.1:0", &format!("{tls}\n{TIMES}"), "info");
    let target = LoadTarget { certificates: vec![certificate], ..plain(&running, "demo") };
    replace_under_load("archive over TLS", target, running, take_over);
}

/// A gateway in front of nodes, which stores blocks (`blocks`) or not (`off`).
fn in_front_of_nodes(follow: &str, nodes: &[Proxy]) -> Process {
    let nodes: String = nodes.iter().map(|node| format!("[[node]]\nurl = \"{}\"\n", node.url())).collect();
    let key = "[[key]]\nkey = \"key\"\n[network]\nname = \"test\"\n";
    let config = format!("{TIMES}{key}[follow]\nmode = \"{follow}\"\n{nodes}");
    let running = Process::start("127.0.0.1:0", &config, "info");
    until("it is ready", || get(running.operator, "/ready").status == 200);
    running
}

#[test]
fn no_call_is_lost_in_front_of_nodes() {
    let chain = Demo::with("");
    let nodes = [(); 2].map(|()| Proxy::start(chain.public, "/v3/demo"));
    for follow in ["off", "blocks"] {
        let running = in_front_of_nodes(follow, &nodes);
        let what = format!("nodes, follow = {follow}");
        let last = replace_under_load(&what, plain(&running, "key"), running, take_over);
        assert_eq!(get(last.operator, "/ready").status, 200);
    }
}

/// systemd has the sockets while no gateway runs.
#[test]
fn no_call_is_lost_between_the_end_and_the_start_on_the_sockets_of_a_service_manager() {
    let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [public, operator] = &sockets;
    let running = Process::start_on_sockets([public, operator], TIMES, None);
    assert_eq!(running.public, public.local_addr().unwrap());
    assert_eq!(running.operator, operator.local_addr().unwrap());
    replace_under_load("sockets of a service manager", plain(&running, "demo"), running, |running| {
        running.terminate();
        until("it is not ready", || get(running.operator, "/ready").status == 503);
        let data = running.data();
        let (status, log) = running.ended();
        assert_eq!(status.code(), Some(0), "{log:#?}");
        Process::start_on_sockets([public, operator], "", Some(&data))
    });
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;

    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_gateway_serves_on_if_the_process_that_takes_over_cannot_start() {
    let running = Process::start("127.0.0.1:0", TIMES, "info");
    let socket = running.data_dir().join("handover.sock");
    assert_eq!(mode(&socket), 0o600);
    running.write_config("[limits]\nlog_results_max = \"many\"\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaingate"));
    command.args(["serve", "--take-over", "--config"]).arg(running.data_dir().join("../chaingate.toml"));
    let output = command.arg("--data-dir").arg(running.data_dir()).output().unwrap();
    assert!(!output.status.success());
    // One that has the sockets, and ends before it asks for more.
    drop(std::os::unix::net::UnixStream::connect(&socket).unwrap());
    until("it is noticed", || running.lines_with("a process that wanted to take over has failed") == 1);
    assert_eq!(get(running.operator, "/ready").status, 200);
    running.terminate();
    let data = running.data();
    let (status, log) = running.ended();
    assert_eq!(status.code(), Some(0), "{log:#?}");
    assert!(!data.path().join("handover.sock").exists());
}

/// Whoever restarts always in this way can start in this way, too.
#[test]
fn a_process_that_finds_nothing_to_take_over_starts() {
    let data = Process::start("127.0.0.1:0", TIMES, "info").kill();
    let next = Process::take_over(&data);
    assert_eq!(next.lines_with("no gateway runs with this data directory"), 1);
}
