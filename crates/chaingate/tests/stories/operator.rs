//! The operator's pages.

use chaingate::config::Config;
use gateway::Server;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use testkit::http::{ReceivedReply, TestConnection, get, request};

use crate::demo::{Demo, endless, metric, until};
use crate::gateway_under_test::{Gateway, call, chain_id, state};

#[test]
fn health_and_ready_are_told_apart_from_the_rest() {
    let gateway = Gateway::start();
    assert_eq!(get(gateway.operator, "/health").status, 200);
    assert_eq!(get(gateway.operator, "/ready").status, 200);
    assert_eq!(get(gateway.operator, "/v3/demo").status, 404);
}

#[test]
fn every_call_is_counted_once_by_method_and_outcome() {
    let gateway = Gateway::start();
    let batch =
        [chain_id("1"), chain_id("2"), call("eth_call", r#"[{"data":"0x01"}]"#), call("eth_call", "[7]")];
    gateway.post(format!("[{}]", batch.join(",")));
    for index in 0..50 {
        gateway.post(call(&format!("random_{index}"), "[]"));
    }
    let metrics = get(gateway.operator, "/metrics");
    let text = metrics.text();
    for line in [
        "chaingate_calls_total{method=\"eth_chainId\",outcome=\"ok\"} 2",
        "chaingate_calls_total{method=\"eth_call\",outcome=\"reverted\"} 1",
        "chaingate_calls_total{method=\"other\",outcome=\"invalid\"} 51",
        "chaingate_call_seconds_count{method=\"eth_chainId\"} 2",
        "chaingate_calls_in_flight 0",
        "chaingate_requests_total 51",
        "chaingate_head_block 10",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    assert!(text.contains("chaingate_build_info{version="));
    assert!(!text.contains("random_"), "labels are a closed set");
}

#[test]
fn an_address_where_someone_listens_is_refused() {
    let gateway = Gateway::start();
    let free = "127.0.0.1:0".to_owned();
    let taken = [(gateway.public.to_string(), free.clone()), (free, gateway.operator.to_string())];
    for (public, operator) in taken {
        let text = format!("[listen]\npublic = \"{public}\"\noperator = \"{operator}\"");
        let config = Config::parse(&text).unwrap();
        let error = Server::start(&config.listen, state("")).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse, "{error}");
    }
    assert_eq!(gateway.post(chain_id("1")).status, 200);
}

fn get_under(gateway: &Gateway, target: &str, version: &str, headers: &str) -> ReceivedReply {
    let request = format!("GET {target} HTTP/{version}\r\n{headers}\r\n");
    TestConnection::connect(gateway.operator).send(request).reply()
}

/// Any web page could once read the metrics of a gateway on the visitor's machine, by pointing a name of its own at it.
#[test]
fn only_known_host_names_reach_the_operator_pages() {
    let gateway = Gateway::listening("operator_hosts = [\"metrics.example\"]");
    let port = gateway.operator.port();
    let status = |host: &str| get_under(&gateway, "/metrics", "1.1", &format!("host: {host}\r\n")).status;
    for allowed in ["localhost", "127.0.0.1", "[::1]:1", "metrics.example", "METRICS.example:9090"] {
        assert_eq!(status(allowed), 200, "{allowed}");
    }
    assert_eq!(status(&format!("localhost:{port}")), 200);
    for refused in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "localhost.", ""] {
        assert_eq!(status(refused), 403, "{refused}");
    }
    let two = "host: localhost\r\nhost: evil.example\r\n";
    assert_eq!(get_under(&gateway, "/metrics", "1.1", two).status, 403);
    assert_eq!(get_under(&gateway, "http://evil.example/metrics", "1.1", "host: localhost\r\n").status, 403);
    assert_eq!(get_under(&gateway, "/metrics", "1.1", "").status, 403);
    assert_eq!(get_under(&gateway, "/health", "1.0", "").status, 200, "a simple health check");
}

#[test]
fn no_browser_guesses_the_type_of_an_operator_page() {
    let gateway = Gateway::start();
    for path in ["/health", "/ready", "/metrics", "/other"] {
        assert_eq!(get(gateway.operator, path).header("x-content-type-options"), Some("nosniff"), "{path}");
    }
}

/// Connections to the operator's address once had no bound, and one that read nothing stayed for ever: together they could
/// use up the file descriptors of the process and lock callers out.
#[test]
fn operator_connections_are_few_and_short() {
    let gateway = Gateway::start();
    let mut silent: Vec<_> = (0..200).map(|_| TestConnection::connect(gateway.operator)).collect();
    assert_eq!(get(gateway.operator, "/health").status, 200);
    assert!(silent.drain(..150).all(|mut wire| wire.is_closed()), "the oldest are closed first");

    let mut greedy = TestConnection::connect(gateway.operator);
    greedy.send("GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1_000));
    assert_eq!(greedy.reply().status, 200);
    assert!(greedy.next_reply().is_none(), "one request on each connection");
}

/// The oldest of 33 connections was closed without a reply, so probes and scrapers at the same time failed.
#[test]
fn a_burst_of_probes_is_answered() {
    let limit = getrlimit(Resource::Nofile);
    // A thousand connections have two ends here.
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let gateway = Gateway::start();
    for burst in [33, 64, 1_000] {
        let probe = |_| {
            let mut wire = TestConnection::connect(gateway.operator);
            wire.send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
            wire
        };
        let mut probes: Vec<_> = (0..burst).map(probe).collect();
        assert!(probes.iter_mut().all(|probe| probe.reply().status == 200), "{burst} probes");
    }
}

#[test]
fn the_operator_is_answered_while_callers_overload_the_gateway() {
    let limits = "pool_threads = 1\ncalls_in_flight_max = 16\nconnections_max = 40\n\
                  call_timeout_ms = 120000\ncall_gas_multiple = 1000000000";
    let demo = Demo::with(limits);
    let call_without_end = |number| {
        let mut wire = TestConnection::connect(demo.public);
        wire.send(request("/v3/demo", "", endless(number).as_bytes()));
        wire
    };
    let mut busy: Vec<_> = (0..60).map(call_without_end).collect();
    // One account gets half of the places. Callers whose connection was closed to make room for another try again.
    until("there is no place left", || {
        busy.push(call_without_end(busy.len()));
        metric(demo.operator, "chaingate_calls_in_flight") >= 8.0
    });
    for path in ["/health", "/ready", "/metrics"] {
        assert_eq!(get(demo.operator, path).status, 200, "{path}");
    }
    drop(busy);
}
