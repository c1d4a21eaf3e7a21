//! What one account takes of threads and memory, others do not have to wait for.

use std::sync::atomic::Ordering::SeqCst;

use testkit::http::{Wire, post, request};

use crate::demo::{metric, until};
use crate::gateway_under_test::{Gateway, call};

const OTHER_KEY: &str = "[[key]]\nkey = \"other\"\naccount = \"other\"";

fn run(data: &str) -> String {
    call("eth_call", &format!("[{{\"data\":\"{data}\"}}]"))
}

/// Calls under the key `demo` that do not end by themselves.
fn endless(gateway: &Gateway, calls: usize) -> Vec<Wire> {
    let start = |number: usize| {
        let mut wire = Wire::connect(gateway.public);
        wire.send(request("/v3/demo", "", run(&format!("0x02{number:04x}")).as_bytes()));
        wire
    };
    (0..calls).map(start).collect()
}

/// The pool had one queue for all accounts: beside 64 endless calls of one key, the calls of others took four seconds.
#[test]
fn an_account_with_endless_calls_does_not_delay_the_calls_of_others() {
    let gateway = Gateway::with("pool_threads = 1\ncall_timeout_ms = 300000", OTHER_KEY);
    let calls = endless(&gateway, 64);
    until("one of them runs and the others wait", || {
        metric(gateway.operator, "chaingate_pool_waiting") == 63.0
    });
    for number in 0..3 {
        // Not short enough for the thread of its connection.
        let data = format!("0x04{number:02x}");
        assert_eq!(post(gateway.public, "/v3/other", run(&data)).json()["result"], data);
    }
    assert_eq!(gateway.chain.stopped.load(SeqCst), 0, "the endless calls still run");
    drop(calls);
}

#[test]
fn an_account_that_fills_the_queue_is_refused_and_others_are_not() {
    let gateway = Gateway::with("pool_threads = 1\npool_queue_max = 20\ncall_timeout_ms = 300000", OTHER_KEY);
    let running = endless(&gateway, 1);
    until("one of them runs", || gateway.chain.executions.load(SeqCst) == 1);
    let calls = endless(&gateway, 11);
    until("ten of the others wait", || metric(gateway.operator, "chaingate_pool_waiting") == 10.0);
    assert_eq!(gateway.post(run("0x04")).status, 503);
    assert_eq!(post(gateway.public, "/v3/other", run("0x04")).json()["result"], "0x04");
    drop((running, calls));
}
