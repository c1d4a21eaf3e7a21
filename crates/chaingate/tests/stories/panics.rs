//! A panic on the way of a request: one call loses its answer, and nothing else happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use serde_json::{Value, json};
use sources::{SnapshotSource, Source};
use testkit::http::{TestConnection, get};

use crate::gateway_under_test::{Chain, Gateway, PANICKING, chain_id};

fn error(id: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "error": { "code": -32603, "message": "internal error" } })
}

/// Only a panic of the embedded chain was caught. Before it, and in front of nodes, the connection was closed without a reply,
/// and the credits were kept.
#[test]
fn a_panic_in_a_call_is_its_error_and_costs_nothing() {
    let gateway = Gateway::start();
    let mut wire = TestConnection::connect(gateway.public);
    let params = format!(r#"["0x{:040x}","{PANICKING:#x}"]"#, 1);
    let panicking = format!(r#"{{"jsonrpc":"2.0","id":"x7","method":"eth_getBalance","params":{params}}}"#);
    for _ in 0..3 {
        let reply = wire.post("/v3/demo", &panicking);
        assert_eq!((reply.status, reply.json()), (200, error("x7")));
    }
    let batch = format!("[{},{panicking},{}]", chain_id("1"), chain_id("2"));
    let told = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "result": "0x539" });
    assert_eq!(wire.post("/v3/demo", &batch).json(), json!([told(1), error("x7"), told(2)]));
    let metrics = get(gateway.operator, "/metrics");
    let text = metrics.text();
    assert!(
        text.contains("chaingate_calls_total{method=\"eth_getBalance\",outcome=\"internal_error\"} 4\n"),
        "{text}"
    );
    assert!(!text.contains("chaingate_credits_total{method=\"eth_getBalance\"}"), "{text}");
    assert!(text.contains("chaingate_calls_in_flight 0\n"), "{text}");
}

/// A chain whose snapshots cannot be taken for some time.
struct FragileChain {
    panics: Arc<AtomicBool>,
    chain: Arc<Chain>,
}

impl SnapshotSource for FragileChain {
    fn snapshot(&self) -> Arc<dyn Source> {
        assert!(!self.panics.load(SeqCst), "a fault of ours");
        Arc::clone(&self.chain) as Arc<dyn Source>
    }
}

#[test]
fn a_panic_outside_of_the_calls_leaves_the_connection() {
    let panics = Arc::new(AtomicBool::new(false));
    let gateway = Gateway::over_growing(FragileChain { panics: Arc::clone(&panics), chain: Arc::default() });
    let mut wire = TestConnection::connect(gateway.public);
    let credits = || {
        let metrics = get(gateway.operator, "/metrics");
        let of = |line: &str| {
            line.strip_prefix("chaingate_credits_total{")?.rsplit(' ').next()?.parse::<u64>().ok()
        };
        metrics.text().lines().filter_map(of).sum::<u64>()
    };
    assert_eq!(wire.post("/v3/demo", chain_id("1")).json()["result"], "0x539");
    let of_one = credits();
    panics.store(true, SeqCst);
    let notification = r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#;
    for (body, answer) in [
        (chain_id("1"), error(1)),
        (chain_id("\"x7\""), error("x7")),
        (format!("[{},{notification},{}]", chain_id("1"), chain_id("2")), json!([error(1), error(2)])),
        (format!("[{{}},{}]", chain_id("3")), json!([error(Value::Null), error(3)])),
    ] {
        let reply = wire.post("/v3/demo", &body);
        assert_eq!((reply.status, reply.json()), (200, answer), "{body}");
        assert!(reply.header("chaingate-request-id").is_some());
    }
    assert_eq!(wire.post("/v3/demo", notification).status, 204);
    // Reading a large body is left to the pool, and its ids are not known outside of it.
    let large = format!("[{}{}]", " ".repeat(64 << 10), chain_id("1"));
    assert_eq!(wire.post("/v3/demo", large).json(), error(Value::Null));
    panics.store(false, SeqCst);
    assert_eq!(wire.post("/v3/demo", chain_id("1")).json()["result"], "0x539");
    assert_eq!(credits(), 2 * of_one, "the calls in between are free");
}
