//! Tasks beside requests that panic: once, after which they do their work again, and for ever, which everybody is told.
//!
//! A task that had panicked was gone for good, while `/ready`, `/status` and the metrics said that all was well.

use std::net::SocketAddr;

use resources::{Supervisor, WhenDown};
use serde_json::Value;
use testkit::http::{TestConnection, get, request};

use crate::demo::until;
use crate::gateway_under_test::{Gateway, chain_id};

/// Lets a task panic once, and waits until it has.
pub(crate) fn panic_once(supervisor: &Supervisor, task: &str) {
    supervisor.inject_panics(task, 1);
    until("the task panics", || {
        supervisor.report().iter().any(|report| report.name == task && report.panics > 0)
    });
}

/// Lets a task panic whenever it runs, and waits until it counts as down.
pub(crate) fn panic_for_ever(supervisor: &Supervisor, task: &str) {
    supervisor.inject_panics(task, u32::MAX);
    until("the task is down", || supervisor.why_down(task).is_some());
}

/// `/status` and the metrics say that this task is down.
pub(crate) fn is_shown_as_down(operator: SocketAddr, task: &str) {
    let status: Value = get(operator, "/status").json();
    let shown = status["tasks"].as_array().unwrap().iter().find(|shown| shown["name"] == task).unwrap();
    assert_eq!(
        (&shown["state"], &shown["last_panic"]),
        (&"down".into(), &"injected panic".into()),
        "{shown}"
    );
    assert!(shown["panics"].as_u64().unwrap() >= 3 && shown["silent_seconds"].is_u64(), "{shown}");
    let metrics = get(operator, "/metrics");
    let value = |name: &str| {
        let series = format!("{name}{{task=\"{task}\"}} ");
        let line = metrics.text().lines().find_map(|line| line.strip_prefix(&series));
        line.unwrap_or_else(|| panic!("no {series}")).parse::<u64>().unwrap()
    };
    assert_eq!(value("chaingate_task_up"), 0);
    assert!(value("chaingate_task_panics_total") >= 3);
    assert!(value("chaingate_task_last_alive_seconds") < 60);
}

/// `/ready` is 200 and names this task.
pub(crate) fn is_ready_without(operator: SocketAddr, task: &str) {
    let ready = get(operator, "/ready");
    assert_eq!(ready.status, 200);
    assert_eq!(ready.text(), format!("ready, but the task {task} does not run, see /status\n"));
}

#[test]
fn workers_that_panic_accept_again_and_keep_their_connections() {
    let gateway = Gateway::start();
    let mut connections: Vec<_> = (0..8).map(|_| TestConnection::connect(gateway.public)).collect();
    for connection in &mut connections {
        assert_eq!(connection.send(request("/v3/demo", "", chain_id("1").as_bytes())).reply().status, 200);
    }
    for worker in ["worker 0", "worker 1"] {
        panic_once(&gateway.supervisor, worker);
    }
    for connection in &mut connections {
        assert_eq!(connection.send(request("/v3/demo", "", chain_id("2").as_bytes())).reply().status, 200);
    }
    assert!((0..20).all(|_| gateway.post(chain_id("3")).status == 200), "both accept");
    assert_eq!(get(gateway.operator, "/ready").text(), "ready\n");
}

/// The kernel gives it connections that nobody accepts.
#[test]
fn a_gateway_with_a_worker_that_does_not_run_is_not_ready() {
    let gateway = Gateway::start();
    panic_for_ever(&gateway.supervisor, "worker 1");
    let ready = get(gateway.operator, "/ready");
    assert_eq!(ready.status, 503);
    let text = ready.text();
    assert!(text.starts_with("the task worker 1 does not run: it panicked "), "{text}");
    assert!(text.ends_with(" times (injected panic), see the log\n"), "{text}");
    is_shown_as_down(gateway.operator, "worker 1");
}

#[test]
fn the_listener_of_the_operator_answers_after_a_panic() {
    let gateway = Gateway::start();
    let listener = "listener of the operator";
    panic_once(&gateway.supervisor, listener);
    assert_eq!(get(gateway.operator, "/health").status, 200);
    panic_for_ever(&gateway.supervisor, listener);
    // The console shows it, because nobody can ask the operator's port.
    assert_eq!(
        gateway.supervisor.first_down(WhenDown::Degraded).map(|task| task.name).as_deref(),
        Some(listener)
    );
}
