//! SIGTERM: what is under way is finished, nobody is let in, and the program ends well. A second signal ends it at once, and
//! SIGHUP, SIGUSR1 and SIGUSR2 change nothing.

use std::net::TcpStream;

use testkit::http::{TestConnection, get, request};

use crate::demo::{endless, metric, until};
use crate::gateway_under_test::chain_id;
use crate::process::Process;

#[test]
fn a_program_that_is_told_to_stop_finishes_what_it_has_begun() {
    let limits = "[limits]\ncall_timeout_ms = 5000\ncall_gas_multiple = 1000000000\ndrain_timeout_ms = 60000";
    let process = Process::start("127.0.0.1:0", limits, "info");
    let (public, operator) = (process.public, process.operator);
    let mut idle = TestConnection::connect(public);
    assert_eq!(idle.post("/v3/demo", chain_id("1")).status, 200);
    let mut busy = TestConnection::connect(public);
    busy.send(request("/v3/demo", "", endless(1).as_bytes()));
    until("the call runs", || metric(operator, "chaingate_calls_in_flight") == 1.0);
    assert_eq!(get(operator, "/ready").status, 200);

    // `timeout` and some supervisors send it twice in the same instant, which is no second signal.
    process.terminate_twice();

    until("it is not ready", || get(operator, "/ready").status == 503);
    assert_eq!(get(operator, "/health").status, 200);
    assert_eq!(metric(operator, "chaingate_calls_in_flight"), 1.0, "it was not given up");
    until("nobody is let in", || TcpStream::connect(public).is_err());
    assert!(idle.is_closed(), "an idle connection is closed, and not reset");
    let reply = busy.reply();
    assert_eq!((reply.status, reply.error().as_str()), (200, "-32000 execution aborted (timeout = 5s)"));
    assert_eq!(reply.header("connection"), Some("close"));
    assert!(busy.is_closed());
    let (status, log) = process.ended();
    assert_eq!(status.code(), Some(0), "{log:#?}");
}

/// SIGHUP once stopped the program; SIGUSR1 and SIGUSR2, which ask many programs to reopen their log, killed it in the middle of its
/// calls.
#[test]
fn signals_that_do_not_stop_the_program_leave_it_running() {
    let process = Process::start("127.0.0.1:0", "", "info");
    for (name, logged) in [
        ("HUP", "the configuration was read again"),
        ("USR1", "SIGUSR1 ignored"),
        ("USR2", "SIGUSR2 ignored"),
    ] {
        process.signal(name);
        until("the log says so", || process.lines_with(logged) == 1);
    }
    assert_eq!(get(process.operator, "/ready").status, 200);
    assert_eq!(TestConnection::connect(process.public).post("/v3/demo", chain_id("1")).status, 200);
}

/// An operator who was tired of waiting once had only SIGKILL.
#[test]
fn a_second_signal_ends_the_drain_at_once() {
    let limits =
        "[limits]\ncall_timeout_ms = 600000\ncall_gas_multiple = 1000000000\ndrain_timeout_ms = 600000";
    let mut process = Process::start("127.0.0.1:0", limits, "info");
    let mut busy = TestConnection::connect(process.public);
    busy.send(request("/v3/demo", "", endless(1).as_bytes()));
    until("the call runs", || metric(process.operator, "chaingate_calls_in_flight") == 1.0);
    process.terminate();
    until("it drains", || get(process.operator, "/ready").status == 503);
    until("it has ended", || {
        process.signal("INT");
        process.has_ended()
    });
    let (status, log) = process.ended();
    assert_eq!(status.code(), Some(130), "{log:#?}");
}
