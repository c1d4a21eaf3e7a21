//! A log that cannot be written must not cost a call. It once ended the whole service: with standard error on a full disk
//! the program did not start, without a reader every request and the drain panicked, and a reader that was stuck stopped
//! everything.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use testkit::http::{TestConnection, get, request};
use testkit::ports::free_ports;

use crate::demo::{endless, metric, until};
use crate::gateway_under_test::chain_id;
use crate::process::send_signal;

/// The program with standard error of the test's choice.
struct Program {
    child: Child,
    public: SocketAddr,
    operator: SocketAddr,
    _directory: TempDir,
}

impl Program {
    /// Starts it on addresses that are chosen beforehand, because the log that usually names them cannot be read here. It logs at
    /// debug: at least one line for each request.
    fn start(stderr: Stdio) -> Self {
        Self::with_streams(Stdio::null(), stderr, "debug,trie=off", "")
    }

    /// The same with an access log on standard output.
    fn with_access_log(stdout: Stdio) -> Self {
        Self::with_streams(stdout, Stdio::null(), "info", "[access_log]\ncalls = \"all\"\n")
    }

    fn with_streams(stdout: Stdio, stderr: Stdio, log: &str, settings: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let [public, operator] = free_ports().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let config = format!(
            "[listen]\npublic = \"{public}\"\noperator = \"{operator}\"\n\
             [limits]\ncall_timeout_ms = 3000\ncall_gas_multiple = 1000000000\ndrain_timeout_ms = 60000\n{settings}"
        );
        std::fs::write(directory.path().join("config.toml"), config).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_chaingate"))
            .args(["serve", "--config", "config.toml", "--data-dir", "data"])
            .env("RUST_LOG", log)
            .env("CHAINGATE_CONSOLE", "off")
            .current_dir(directory.path())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .unwrap();
        Self { child, public, operator, _directory: directory }
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Calls until lines are dropped, which callers do not notice, and then stops it in the middle of a call.
    fn answers_and_drains(self) {
        self.drops_and_drains("chaingate_log_lines_dropped_total");
    }

    /// The same for lines that this metric counts.
    fn drops_and_drains(mut self, dropped: &str) {
        let (public, operator) = (self.public, self.operator);
        until("it listens", || {
            assert!(self.is_running(), "it ended before it served");
            std::net::TcpStream::connect(operator).is_ok()
        });
        until("it is ready", || get(operator, "/ready").status == 200);
        let mut wire = TestConnection::connect(public);
        until("lines are dropped", || {
            const TOGETHER: usize = 500;
            wire.send(request("/v3/demo", "", chain_id("1").as_bytes()).repeat(TOGETHER));
            assert!((0..TOGETHER).all(|_| wire.reply().status == 200));
            metric(operator, dropped) > 0.0
        });

        let mut busy = TestConnection::connect(public);
        busy.send(request("/v3/demo", "", endless(1).as_bytes()));
        until("the call runs", || metric(operator, "chaingate_calls_in_flight") == 1.0);
        send_signal("TERM", &self.child.id().to_string());
        let reply = busy.reply();
        assert_eq!((reply.status, reply.error().as_str()), (200, "-32000 execution aborted (timeout = 3s)"));
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, which is as good.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

#[test]
fn a_full_disk_under_the_log_costs_no_call() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    Program::start(full.into()).answers_and_drains();
}

#[test]
fn a_log_whose_reader_is_gone_costs_no_call() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    Program::start(writer.into()).answers_and_drains();
}

#[test]
fn a_log_whose_reader_is_stuck_costs_no_call() {
    let (stuck_reader, writer) = std::io::pipe().unwrap();
    Program::start(writer.into()).answers_and_drains();
    drop(stuck_reader);
}

/// The same for the access log on standard output.
#[test]
fn an_access_log_that_cannot_be_written_costs_no_call() {
    const DROPPED: &str = "chaingate_access_log_lines_dropped_total";
    let full = File::options().write(true).open("/dev/full").unwrap();
    Program::with_access_log(full.into()).drops_and_drains(DROPPED);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    Program::with_access_log(writer.into()).drops_and_drains(DROPPED);
    let (stuck_reader, writer) = std::io::pipe().unwrap();
    Program::with_access_log(writer.into()).drops_and_drains(DROPPED);
    drop(stuck_reader);
}

/// A message that cannot be written once made the program panic, and so hid its exit status.
#[test]
fn a_message_that_cannot_be_written_does_not_change_the_exit_status() {
    let run = |arguments: &[&str]| {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_chaingate"));
        command.args(arguments).stdout(Stdio::null()).stderr(full).status().unwrap().code()
    };
    assert_eq!(run(&["check"]), Some(0));
    assert_eq!(run(&["serve", "--config", "/nonexistent"]), Some(1));
    assert_eq!(run(&["import", "--genesis", "/nonexistent", "/nonexistent"]), Some(1));
}
