//! Support of the program for service managers, containers and packages.

use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Output};

use crate::process::Process;

fn chaingate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_chaingate")).args(arguments).output().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// systemd counts the gateway as started when it serves, and restarts it when it hangs.
#[test]
fn a_service_manager_hears_when_the_gateway_serves_lives_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let until_heard = |expected: &str| {
        let mut bytes = [0; 64];
        while socket.recv(&mut bytes).map(|length| &bytes[..length]).unwrap() != expected.as_bytes() {}
    };
    let variables = format!("export NOTIFY_SOCKET={} WATCHDOG_USEC=200000;", path.display());
    let gateway = Process::start_with_data("", "info", &variables, |_| {});
    until_heard("READY=1");
    until_heard("WATCHDOG=1");
    gateway.terminate();
    until_heard("STOPPING=1");
}

#[test]
fn a_gateway_is_healthy_while_callers_should_be_sent_to_it() {
    let health = |operator: SocketAddr| {
        let Output { status, stderr, .. } = chaingate(&["health", &format!("http://{operator}")]);
        (status.code(), text(stderr))
    };
    let gateway = Process::start("127.0.0.1:0", "[limits]\ndrain_delay_ms = 600000\n", "info");
    let operator = gateway.operator;
    assert_eq!(health(operator), (Some(0), "chaingate: ready\n".to_owned()));
    // A container without a shell names the address once, for the gateway and for its health.
    let asked = chaingate(&["health", "--operator", &operator.to_string()]);
    assert!(asked.status.success(), "{asked:?}");
    gateway.terminate();
    crate::demo::until("it drains", || health(operator).0 == Some(1));
    assert_eq!(health(operator).1, format!("chaingate: {operator} is not ready: draining\n"));
    drop(gateway);
    let (status, message) = health(operator);
    assert_eq!(status, Some(1));
    assert!(message.starts_with(&format!("chaingate: {operator} does not answer: ")), "{message}");
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let help = text(chaingate(&["--help"]).stdout);
    let commands: Vec<_> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next().filter(|name| *name != "help"))
        .collect();
    assert!(commands.contains(&"serve") && commands.contains(&"health"), "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    assert!(chaingate(&["man-pages", &folder.path().display().to_string()]).status.success());
    let scripts = ["bash", "zsh", "fish"].map(|shell| text(chaingate(&["completions", shell]).stdout));
    for command in commands {
        assert!(scripts.iter().all(|script| script.contains(command)), "{command}");
        let page = folder.path().join(format!("chaingate-{command}.1"));
        assert!(std::fs::read_to_string(page).unwrap().contains(".SH OPTIONS"), "{command}");
    }
}
