//! Plans: throughput and days, told in credits.

use std::thread;
use std::time::Duration;

use serde_json::json;
use testkit::http::{get, post};

use crate::gateway_under_test::{Gateway, call, chain_id};

const NUMBER: &str = "eth_blockNumber";

fn with_plan(plan: &str) -> Gateway {
    Gateway::with(
        "",
        &format!(
            "[plans.tiny]\n{plan}\n[[key]]\nkey = \"k1\"\naccount = \"a\"\nplan = \"tiny\"\n[[key]]\nkey = \"k2\"\naccount = \"a\"\nplan = \"tiny\""
        ),
    )
}

#[test]
fn throughput_used_up_is_429_with_how_long_to_wait() {
    let gateway = with_plan("credits_per_second = 200");
    let post = |key: &str| post(gateway.public, &format!("/v3/{key}"), call(NUMBER, "[]"));
    assert_eq!((post("k1").status, post("k2").status), (200, 200));
    let reply = post("k1");
    assert_eq!((reply.status, reply.error().as_str()), (429, "-32005 project ID request rate exceeded"));
    assert_eq!(reply.header("retry-after"), Some("1"));
    let rate = &reply.json()["error"]["data"]["rate"];
    assert_eq!((&rate["allowed_rps"], &rate["backoff_seconds"]), (&json!(200), &json!(1)));
    assert!(rate["current_rps"].as_u64().unwrap() > 200, "{rate}");
    assert_eq!(reply.json()["id"], 1);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(post("k2").status, 200);
    assert_eq!(gateway.post(call(NUMBER, "[]")).status, 200, "other accounts are not touched");
}

#[test]
fn a_day_used_up_is_402_until_midnight() {
    let gateway = with_plan("credits_per_day = 100");
    let post = || post(gateway.public, "/v3/k1", call(NUMBER, "[]"));
    assert_eq!(post().status, 200);
    let reply = post();
    let expected = "-32005 daily request count exceeded, request rate limited";
    assert_eq!((reply.status, reply.error().as_str()), (402, expected));
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&wait));
}

#[test]
fn in_a_batch_each_call_is_admitted_for_itself() {
    let gateway = with_plan("credits_per_second = 200");
    let calls = [call(NUMBER, "[]"), call(NUMBER, "[]"), call(NUMBER, "[]"), chain_id("9")];
    let reply = post(gateway.public, "/v3/k1", format!("[{}]", calls.join(",")));
    let json = reply.json();
    assert_eq!(reply.status, 200);
    assert_eq!((&json[0]["result"], &json[1]["result"]), (&json!("0xa"), &json!("0xa")));
    assert_eq!(json[2]["error"]["code"], -32005);
    assert_eq!(json[3]["result"], "0x539", "what is left of the second is enough for a small one");
}

#[test]
fn broken_calls_are_paid_for_and_our_faults_are_not() {
    let gateway = with_plan("credits_per_day = 330");
    let post = |body: String| post(gateway.public, "/v3/k1", body);
    assert_eq!(post(call("eth_nonsense", "[]")).status, 200); // 160
    assert_eq!(post(call("eth_getBalance", "[]")).status, 200); // 5
    assert_eq!(post("nonsense".to_owned()).status, 400); // 5
    assert_eq!(post(call("eth_call", r#"[{"data":"0x05"}]"#)).status, 200); // unavailable: 0
    assert_eq!(post(call(NUMBER, "[]")).status, 200); // 80
    assert_eq!(post(call(NUMBER, "[]")).status, 200); // 80
    assert_eq!(post(chain_id("1")).status, 402);
    let metrics = get(gateway.operator, "/metrics");
    assert!(metrics.text().contains("chaingate_credits_total{method=\"other\"} 165"), "{}", metrics.text());
}
