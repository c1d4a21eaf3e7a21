//! The operator's pages.

use gateway::config::Config;
use gateway::listen::Server;
use testkit::http::get;

use crate::gateway_under_test::{Gateway, call, chain_id, edge};

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
        let error = Server::start(&config.listen, edge("")).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse, "{error}");
    }
    assert_eq!(gateway.post(chain_id("1")).status, 200);
}
