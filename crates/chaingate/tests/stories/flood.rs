//! Loops in the EVM, more than there are threads for them.

use testkit::http::{TestConnection, request};

use crate::demo::{Demo, endless, endless_creation, metric, until};
use crate::gateway_under_test::call;

const LOOPS: usize = 32;

/// Enough gas and time that no loop ends before the test has seen what it came for.
const LIMITS: &str = "call_gas_multiple = 1000000000\ncall_timeout_ms = 120000";

#[test]
fn cheap_reads_do_not_queue_behind_endless_loops() {
    let demo = Demo::with(LIMITS);
    let in_flight = || metric(demo.operator, "chaingate_calls_in_flight");
    let loops: Vec<_> = (0..LOOPS)
        .map(|number| {
            let mut wire = TestConnection::connect(demo.public);
            let endless = if number % 2 == 0 { endless(number) } else { endless_creation(number) };
            wire.send(request("/v3/demo", "", endless.as_bytes()));
            wire
        })
        .collect();
    until("all loops are there", || in_flight() == LOOPS as f64);
    let answer = call("eth_getStorageAt", r#"["0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","0x0","latest"]"#);
    let mut wire = TestConnection::connect(demo.public);
    for _ in 0..500 {
        let json = wire.post("/v3/demo", &answer).json();
        assert_eq!(json["result"], format!("0x{:064x}", 1234));
    }
    assert_eq!(in_flight(), LOOPS as f64, "every loop still runs or waits");
    drop(loops);
    until("all loops are stopped", || in_flight() == 0.0);
    until("nothing waits for a thread", || metric(demo.operator, "chaingate_pool_waiting") == 0.0);
    let quick = demo.call("eth_call", r#"[{"data":"0x5f5ff3"}]"#);
    assert_eq!(quick["result"], "0x", "the threads are free again");
}

#[test]
fn loops_end_at_their_deadline_even_while_they_wait_for_a_thread() {
    let demo = Demo::with("pool_threads = 1\ncall_timeout_ms = 1000\ncall_gas_multiple = 1000000000");
    let mut loops: Vec<_> = (0..8).map(|_| TestConnection::connect(demo.public)).collect();
    for (number, wire) in loops.iter_mut().enumerate() {
        let endless = if number % 2 == 0 { endless(number) } else { endless_creation(number) };
        wire.send(request("/v3/demo", "", endless.as_bytes()));
    }
    for wire in &mut loops {
        assert_eq!(wire.reply().error(), "-32000 execution aborted (timeout = 1s)");
    }
}
