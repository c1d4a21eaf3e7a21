//! Heavy work: shared, bounded, stopped in time, and never able to take the gateway down.

use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::http::{TestConnection, get, request};

use crate::demo::{Demo, metric};
use crate::gateway_under_test::{Gateway, call, chain_id};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

fn run(data: &str) -> String {
    call("eth_call", &format!("[{{\"data\":\"{data}\"}}]"))
}

fn together(gateway: &Gateway, bodies: &[String]) -> Vec<testkit::http::ReceivedReply> {
    thread::scope(|scope| {
        let posts: Vec<_> = bodies.iter().map(|body| scope.spawn(move || gateway.post(body))).collect();
        posts.into_iter().map(|post| post.join().unwrap()).collect()
    })
}

/// The only thread of the account is in use until all eight calls are known to wait.
#[test]
fn equal_calls_in_flight_share_one_answer() {
    let gateway = Gateway::with("pool_threads = 1\ncall_timeout_ms = 300000", "[cache]\nenabled = false");
    let send = |data: &str| {
        let mut wire = TestConnection::connect(gateway.public);
        wire.send(request("/v3/demo", "", run(data).as_bytes()));
        wire
    };
    let endless = send("0x02");
    until(|| gateway.chain.executions.load(SeqCst) == 1);
    let calls: Vec<_> = (0..8).map(|_| send("0x04aa")).collect();
    until(|| metric(gateway.operator, "chaingate_shared_calls_total") == 7.0);
    drop(endless);
    for mut call in calls {
        assert_eq!(call.reply().json()["result"], "0x04aa");
    }
    assert_eq!(gateway.chain.executions.load(SeqCst), 2, "one for all eight");
    gateway.post(run("0x04aa"));
    assert_eq!(gateway.chain.executions.load(SeqCst), 3, "what has landed is not kept");
}

#[test]
fn different_calls_do_not() {
    let gateway = Gateway::start();
    let other_block = call("eth_call", r#"[{"data":"0x04aa"},"0x5"]"#);
    let overridden = call("eth_call", r#"[{"data":"0x04aa"},"latest",{}]"#);
    let replies = together(&gateway, &[run("0x04aa"), run("0x04bb"), other_block, overridden]);
    assert!(replies.iter().all(|reply| reply.status == 200));
    assert_eq!(gateway.chain.executions.load(SeqCst), 4);
}

#[test]
fn work_beyond_its_deadline_is_stopped() {
    let gateway = Gateway::with("call_timeout_ms = 200", "");
    assert_eq!(gateway.error("eth_call", r#"[{"data":"0x02"}]"#), "-32000 execution aborted (timeout = 5s)");
    assert_eq!(gateway.chain.stopped.load(SeqCst), 1);
}

#[test]
fn work_that_nobody_waits_for_is_stopped() {
    // The deadline is further away than the patience of this test.
    let gateway = Gateway::with("call_timeout_ms = 120000", "");
    let mut wire = TestConnection::connect(gateway.public);
    wire.send(request("/v3/demo", "", run("0x02").as_bytes()));
    until(|| gateway.chain.executions.load(SeqCst) == 1);
    drop(wire);
    until(|| gateway.chain.stopped.load(SeqCst) == 1);
}

#[test]
fn a_full_pool_is_503_and_cheap_calls_go_on() {
    let gateway = Gateway::with("pool_threads = 1\npool_queue_max = 1\ncall_timeout_ms = 10000", "");
    thread::scope(|scope| {
        let hang = |data: &'static str| scope.spawn(|| gateway.post(run(data)));
        let running = hang("0x0201");
        until(|| gateway.chain.executions.load(SeqCst) == 1);
        let waiting = hang("0x0202");
        until(|| get(gateway.operator, "/metrics").text().contains("chaingate_pool_waiting 1"));
        let reply = gateway.post(run("0x04"));
        assert_eq!((reply.status, reply.error().as_str()), (503, "-32005 over capacity"));
        assert_eq!(reply.header("retry-after"), Some("1"));
        assert_eq!(gateway.post(chain_id("1")).json()["result"], "0x539");
        until(|| gateway.post(run("0xff")).json()["result"] == "0xff");
        let batch = gateway.post(format!("[{},{}]", run("0x04"), chain_id("2"))).json();
        assert_eq!(batch[0]["error"], json!({"code": -32005, "message": "over capacity"}));
        assert_eq!(batch[1]["result"], "0x539");
        for post in [running, waiting] {
            assert_eq!(post.join().unwrap().status, 200);
        }
    });
}

/// Waits for something that another thread brings about.
fn until(done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < PATIENCE, "it never happened");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn too_many_calls_in_flight_is_503() {
    let gateway = Gateway::with("calls_in_flight_max = 1\ncall_timeout_ms = 10000", "");
    thread::scope(|scope| {
        let slow = scope.spawn(|| gateway.post(run("0x02")));
        until(|| gateway.chain.executions.load(SeqCst) == 1);
        assert_eq!(gateway.post(chain_id("1")).status, 503);
        assert_eq!(slow.join().unwrap().status, 200);
    });
    assert_eq!(gateway.post(chain_id("1")).status, 200);
}

#[test]
fn a_panic_costs_one_call_its_answer() {
    let gateway = Gateway::with("pool_threads = 1", "");
    for _ in 0..3 {
        assert_eq!(gateway.error("eth_call", r#"[{"data":"0x03"}]"#), "-32603 internal error");
    }
    assert_eq!(gateway.post(run("0xaa")).json()["result"], "0xaa");
}

/// A call with overrides goes to the pool at once, and one without is tried where it came in.
#[test]
fn a_call_has_the_same_answer_wherever_it_runs() {
    let demo = Demo::with("");
    let messages = [
        r#"{"data":"0x5f5ff3"}"#,
        r#"{"data":"0x602a5f5260205ff3"}"#,
        r#"{"data":"0x602a5f5260205ffd"}"#,
        r#"{"data":"0xfe"}"#,
        r#"{"data":"0x5f5ff3","gas":"0x1"}"#,
        // All of the gas, told by the code that it would leave behind.
        r#"{"data":"0x5a5f5260205ff3","gas":"0x100000"}"#,
        r#"{"data":"0x5a5f5260205ff3"}"#,
        // Memory that a try does not have, and more than anyone has.
        r#"{"data":"0x6001620fffff5360205ff3"}"#,
        r#"{"data":"0x6001630fffffff5360205ff3"}"#,
        // A precompile that is too dear for a try.
        r#"{"data":"0x60805f60805f60015afa60205ff3"}"#,
        r#"{"to":"0x0000000000000000000000000000000000000001","data":"0x"}"#,
        r#"{"from":"0x0000000000000000000000000000000000000009","to":"0x0000000000000000000000000000000000000008","value":"0x1"}"#,
    ];
    for method in ["eth_call", "eth_estimateGas"] {
        for message in messages {
            let tried = demo.call(method, &format!(r#"[{message},"latest"]"#));
            let pooled = demo.call(method, &format!(r#"[{message},"latest",{{}}]"#));
            assert_eq!(tried, pooled, "{method} {message}");
        }
    }
}

fn pooled(demo: &Demo) -> f64 {
    metric(demo.operator, "chaingate_pool_wait_seconds_count")
}

/// Each `eth_gasPrice` read the receipts of twenty blocks on the thread of its connection.
#[test]
fn gas_prices_are_computed_once_per_head_and_in_the_pool() {
    let demo = Demo::with("");
    let first = demo.call("eth_gasPrice", "[]");
    assert!(first["result"].is_string(), "{first}");
    assert_eq!(pooled(&demo), 1.0);
    for _ in 0..20 {
        assert_eq!(demo.call("eth_gasPrice", "[]"), first);
        assert!(demo.call("eth_maxPriorityFeePerGas", "[]")["result"].is_string());
    }
    assert_eq!(pooled(&demo), 1.0);
}

/// A block has any number of transactions and logs, and was written on the thread of its connection.
#[test]
fn blocks_and_receipts_with_many_logs_are_written_in_the_pool() {
    let demo = Demo::with("");
    assert!(demo.call("eth_getBlockByNumber", r#"["0x1",true]"#)["result"].is_object());
    assert_eq!(pooled(&demo), 0.0, "small ones are not");
    let receipts = demo.call("eth_getBlockReceipts", r#"["0xb4"]"#);
    assert!(receipts["result"].is_array(), "{receipts}");
    assert_eq!(pooled(&demo), 1.0);
}
