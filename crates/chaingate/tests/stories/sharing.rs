//! Accounts do not wait for threads and memory that another account has taken.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use testkit::http::{TestConnection, get, post, request};

use crate::demo::{metric, until};
use crate::gateway_under_test::{Gateway, call};
use crate::process::Process;

const OTHER_KEY: &str = "[[key]]\nkey = \"other\"\naccount = \"other\"";

fn run(data: &str) -> String {
    call("eth_call", &format!("[{{\"data\":\"{data}\"}}]"))
}

/// Calls under the key `demo` that do not end by themselves.
fn endless(gateway: &Gateway, calls: usize) -> Vec<TestConnection> {
    let start = |number: usize| {
        let mut wire = TestConnection::connect(gateway.public);
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
        // Too long for the thread of its connection.
        let data = format!("0x04{number:02x}");
        assert_eq!(post(gateway.public, "/v3/other", run(&data)).json()["result"], data);
    }
    assert_eq!(gateway.chain.stopped.load(SeqCst), 0, "the endless calls still run");
    drop(calls);
}

/// Equal calls share one answer, but not with a call that waits behind the endless ones of another account.
#[test]
fn a_call_does_not_wait_for_an_equal_one_in_the_queue_of_another_account() {
    let gateway = Gateway::with("pool_threads = 1\ncall_timeout_ms = 300000", OTHER_KEY);
    let calls = endless(&gateway, 1);
    until("it runs", || gateway.chain.executions.load(SeqCst) == 1);
    let mut queued = TestConnection::connect(gateway.public);
    queued.send(request("/v3/demo", "", run("0x04aa").as_bytes()));
    until("an equal call waits", || metric(gateway.operator, "chaingate_pool_waiting") == 1.0);
    assert_eq!(post(gateway.public, "/v3/other", run("0x04aa")).json()["result"], "0x04aa");
    drop(calls);
    assert_eq!(queued.reply().json()["result"], "0x04aa");
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

/// The data of a revert was written as JSON on the thread of the connection: 0.1 s for 12.5 MB.
#[test]
fn a_large_revert_is_written_in_the_pool() {
    const REVERT_BYTES: usize = 40_000;
    let gateway = Gateway::start();
    let jobs = || metric(gateway.operator, "chaingate_pool_jobs_total");
    let echo = |first: u8| run(&format!("0x{first:02x}{}", "00".repeat(REVERT_BYTES)));
    assert_eq!(gateway.post(echo(0)).status, 200);
    assert_eq!(jobs(), 1.0, "only the body is read there");
    let reply = gateway.post(echo(1)).json();
    assert_eq!(reply["error"]["message"], "execution reverted");
    assert_eq!(reply["error"]["data"], format!("0x{}", "00".repeat(REVERT_BYTES)));
    assert_eq!(jobs(), 3.0, "the body and the revert");
    let batch = gateway.post(format!("[{},{}]", echo(1), call("eth_chainId", "[]"))).json();
    assert_eq!((&batch[0]["error"], &batch[1]["result"]), (&reply["error"], &"0x539".into()));
    assert_eq!(jobs(), 5.0);
}

/// A call whose reply had no memory was 503, and was billed and counted as answered.
#[test]
fn a_call_whose_reply_has_no_memory_costs_nothing() {
    const BYTES: usize = 25_000;
    // Enough for the body, and not for the reply beside it.
    let gateway = Gateway::with("memory_bytes_max = 120000", OTHER_KEY);
    for (first, calls) in [(0, 1), (1, 2)] {
        let data = format!("0x{first:02x}{}", "00".repeat(BYTES));
        let reply = gateway.post(run(&data));
        assert_eq!((reply.status, reply.error().as_str()), (503, "-32005 over capacity"));
        let metrics = get(gateway.operator, "/metrics");
        let counted =
            format!("chaingate_calls_total{{method=\"eth_call\",outcome=\"over_capacity\"}} {calls}\n");
        assert!(metrics.text().contains(&counted), "no {counted}in\n{}", metrics.text());
        assert!(
            !metrics.text().contains("chaingate_credits_total{method=\"eth_call\"}"),
            "nothing is charged"
        );
    }
}

/// A request that inflates to one call with hundreds of thousands of members took 50 ms of a connection's thread for
/// 5 credits.
#[test]
fn a_body_that_inflates_to_many_members_is_refused_and_paid_for_by_its_size() {
    let plan = "[plans.small]\ncredits_per_day = 1000\n[[key]]\nkey = \"small\"\nplan = \"small\"";
    let gateway = Gateway::with("", plan);
    let members: String = (0..400_000).map(|number| format!(",\"x{number:x}\":0")).collect();
    let call = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"eth_chainId"{members}}}"#);
    let body = zstd::encode_all(call.as_bytes(), 1).unwrap();
    let ask = || {
        TestConnection::connect(gateway.public)
            .send(request("/v3/small", "content-encoding: zstd\r\n", &body))
            .reply()
    };
    let refused = ask();
    assert_eq!((refused.status, refused.error().as_str()), (200, "-32600 too many members"));
    assert_eq!(refused.json()["id"], 7);
    assert_eq!(ask().status, 402, "the first one has used up most credits of the day");
}

/// Inflating and reading a large body is work for the pool: it is refused when the account has used up its share there.
#[test]
fn a_large_body_is_read_in_its_accounts_share_of_the_pool() {
    let gateway = Gateway::with("pool_threads = 1\npool_queue_max = 2\ncall_timeout_ms = 300000", OTHER_KEY);
    let running = endless(&gateway, 1);
    until("one of them runs", || gateway.chain.executions.load(SeqCst) == 1);
    let calls = endless(&gateway, 2);
    until("another waits", || metric(gateway.operator, "chaingate_pool_waiting") == 1.0);
    let large = call("eth_chainId", &format!("[{}]", " ".repeat(100 << 10)));
    let compressed = zstd::encode_all(large.as_bytes(), 1).unwrap();
    let compressed = request("/v3/demo", "content-encoding: zstd\r\n", &compressed);
    assert_eq!(gateway.post(&large).status, 503);
    assert_eq!(TestConnection::connect(gateway.public).send(compressed).reply().status, 503);
    assert_eq!(gateway.post(call("eth_chainId", "[]")).status, 200);
    assert_eq!(post(gateway.public, "/v3/other", &large).json()["result"], "0x539");
    drop((running, calls));
}

#[test]
fn calls_in_flight_of_one_account_leave_places_for_others() {
    let gateway = Gateway::with("calls_in_flight_max = 8\ncall_timeout_ms = 300000", OTHER_KEY);
    let calls = endless(&gateway, 4);
    until("all of them are in flight", || metric(gateway.operator, "chaingate_calls_in_flight") == 4.0);
    assert_eq!(gateway.post(run("0xaa")).status, 503);
    assert_eq!(post(gateway.public, "/v3/other", run("0xaa")).status, 200);
    drop(calls);
}

/// Short work that is too long for the thread of its connection: a loop of 10,000 rounds. Numbers keep answers apart.
fn short_loop(number: usize) -> String {
    call("eth_call", &format!(r#"[{{"data":"0x622710005b600190038060045700{number:08x}"}}]"#))
}

/// Times of so many calls, one after another, in ascending order.
fn times(address: SocketAddr, calls: usize, body: impl Fn(usize) -> String) -> Vec<Duration> {
    let mut wire = TestConnection::connect(address);
    let mut times: Vec<_> = (0..calls)
        .map(|number| {
            let (body, started) = (body(number), Instant::now());
            assert_eq!(wire.post("/v3/other", body).status, 200);
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

/// Prints how long calls of one account take alone, and beside endless calls of another. To be run by hand, with the
/// release build: `CHAINGATE_NEIGHBOUR_CALLS=2000 cargo test --release --test stories neighbour -- --nocapture`.
#[test]
fn the_latency_beside_a_greedy_neighbour_is_measured_on_request() {
    let Some(calls) = std::env::var("CHAINGATE_NEIGHBOUR_CALLS").ok().and_then(|calls| calls.parse().ok())
    else {
        return;
    };
    let limits = "[limits]\ncall_timeout_ms = 600000\ncall_gas_multiple = 1000000000\n";
    let key = "[[key]]\nkey = \"other\"\naccount = \"other\"\nplan = \"custom\"\n";
    let process = Process::start("127.0.0.1:0", &format!("{limits}{key}"), "info");
    let read = |number: usize| call("eth_getStorageAt", &format!(r#"["0x{number:040x}","0x0","latest"]"#));
    let kinds: [(&str, &dyn Fn(usize) -> String); 2] =
        [("storage read", &read), ("10,000 rounds", &short_loop)];
    let report = |when: &str| {
        for (name, body) in kinds {
            let times = times(process.public, calls, body);
            let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
            eprintln!("{when}, {name}: median {:?}, p99 {:?}", at(50), at(99));
        }
    };
    report("alone");
    let endless: Vec<_> = (0..64)
        .map(|number| {
            let mut wire = TestConnection::connect(process.public);
            wire.send(request("/v3/demo", "", crate::demo::endless(number).as_bytes()));
            wire
        })
        .collect();
    until("they are all there", || metric(process.operator, "chaingate_calls_in_flight") == 64.0);
    report("beside 64 endless calls");
    drop(endless);
}
