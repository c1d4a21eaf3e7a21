//! Plans: throughput and days, told in credits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use callers::Plans;
use chaingate::config::Config;
use methods::METHODS;
use serde_json::json;
use testkit::http::{TestConnection, get, post, request};

use crate::demo::until;
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
    // On a busy machine, a part of the credits may be back before the third call.
    let reply = std::iter::repeat_with(|| post("k1")).take(20).find(|reply| reply.status != 200).unwrap();
    assert_eq!((reply.status, reply.error().as_str()), (429, "-32005 project ID request rate exceeded"));
    assert_eq!(reply.header("retry-after"), Some("1"));
    let rate = &reply.json()["error"]["data"]["rate"];
    assert_eq!((&rate["allowed_rps"], &rate["backoff_seconds"]), (&json!(200), &json!(1)));
    assert!(rate["current_rps"].as_u64().unwrap() > 200, "{rate}");
    assert_eq!(reply.json()["id"], 1);
    until("the credits are back", || post("k2").status == 200);
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
    let second_of_day = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() % 86_400;
    let until_midnight = 86_400 - second_of_day;
    assert!(wait.abs_diff(until_midnight) <= 5 || wait.abs_diff(until_midnight) >= 86_395, "{wait}");
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

/// Clients back off on status 429. A batch whose calls were all beyond the rate came with status 200, so they did not.
#[test]
fn a_batch_of_which_the_rate_limit_refuses_every_call_is_429() {
    let gateway = with_plan("credits_per_second = 100");
    let batch = |calls: &[String]| post(gateway.public, "/v3/k1", format!("[{}]", calls.join(",")));
    let number = |id: u64| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_blockNumber","params":[]}}"#);
    let note = r#"{"jsonrpc":"2.0","method":"eth_blockNumber","params":[]}"#.to_owned();
    // After a second without calls, one call leaves 20 credits: enough for a batch, and for none of its calls. They are
    // admitted only if this takes longer than half a second, and then it is done again.
    let refused = |calls: &[String]| {
        let tries = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(1_100));
            assert_eq!(post(gateway.public, "/v3/k1", number(0)).status, 200);
            batch(calls)
        });
        tries.take(100).find(|reply| reply.status == 429).expect("one batch is in time")
    };
    let notes = refused(&[note.clone(), note.clone()]);
    assert_eq!(notes.json()["id"], json!(null), "it was 204: {notes:?}");
    assert!(notes.header("retry-after").is_some());
    let reply = refused(&[number(1), note, number(2)]);
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    let json = reply.json();
    let elements = json.as_array().unwrap();
    assert_eq!((elements.len(), &elements[0]["id"], &elements[1]["id"]), (2, &json!(1), &json!(2)));
    for element in elements {
        assert_eq!(element["error"]["code"], -32005);
        assert!(element["error"]["data"]["rate"]["backoff_seconds"].as_u64().unwrap() <= wait);
    }
    std::thread::sleep(Duration::from_millis(1_100));
    let mixed = batch(&[number(1), number(2), r#"{"id":3}"#.to_owned()]);
    assert_eq!(mixed.status, 200, "one call is wrong whatever the rate is: {mixed:?}");
}

/// The batch itself cost five credits, and then the bucket was not full any more: such a call was refused for ever.
#[test]
fn in_a_batch_a_call_may_cost_more_than_the_credits_of_a_second() {
    let gateway = with_plan("credits_per_second = 100");
    let receipts = r#"[{"jsonrpc":"2.0","id":1,"method":"eth_getBlockReceipts","params":["0x1"]}]"#;
    let reply = post(gateway.public, "/v3/k1", receipts);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.json()[0].get("error").is_none(), "{reply:?}");
    assert_eq!(post(gateway.public, "/v3/k1", chain_id("1")).status, 429, "it is being paid off");
}

#[test]
fn broken_calls_are_paid_for_and_internal_errors_are_not() {
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

#[test]
fn the_usual_plans_are_those_of_the_price_list() {
    let plans = Plans::default();
    let shown: Vec<_> = plans
        .names()
        .map(|name| plans.named(name).unwrap())
        .map(|plan| {
            (plan.name.as_str(), plan.credits_per_second, plan.credits_per_day, plan.keys_max, plan.failover)
        })
        .collect();
    let expected = [
        ("core", Some(500), Some(3_000_000), Some(1), false),
        ("developer", Some(4_000), Some(15_000_000), Some(5), false),
        ("team", Some(40_000), Some(75_000_000), None, false),
        ("growth", Some(100_000), Some(250_000_000), None, true),
        ("custom", None, None, None, true),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn every_method_costs_what_the_price_list_says() {
    for method in METHODS {
        let credits = match method.name {
            "eth_getBlockReceipts" => 1_000,
            "eth_estimateGas" => 300,
            "eth_getLogs" => 255,
            "eth_getUncleByBlockNumberAndIndex"
            | "eth_getUncleByBlockHashAndIndex"
            | "eth_getTransactionByBlockNumberAndIndex"
            | "eth_getTransactionByBlockHashAndIndex" => 150,
            "eth_getStorageAt"
            | "eth_getTransactionByHash"
            | "eth_getTransactionReceipt"
            | "eth_call"
            | "zks_getRawBlockTransactions"
            | "web3_clientVersion"
            | "rpc.discover"
            | "eth_blockNumber"
            | "eth_gasPrice"
            | "eth_maxPriorityFeePerGas"
            | "eth_feeHistory"
            | "eth_getBalance"
            | "eth_getCode"
            | "eth_getTransactionCount"
            | "eth_getBlockByNumber"
            | "eth_getBlockByHash"
            | "eth_getHeaderByNumber"
            | "eth_getHeaderByHash"
            | "eth_getBlockTransactionCountByNumber"
            | "eth_getBlockTransactionCountByHash"
            | "eth_getUncleCountByBlockNumber"
            | "eth_getUncleCountByBlockHash" => 80,
            "eth_chainId" | "net_version" | "eth_syncing" => 5,
            name => panic!("{name} is not in the price list"),
        };
        assert_eq!(method.credits, credits, "{}", method.name);
    }
}

#[test]
fn a_batch_costs_one_chain_id_more_than_its_calls() {
    let gateway = with_plan("credits_per_day = 100");
    let post = |body: String| post(gateway.public, "/v3/k1", body);
    assert_eq!(post(format!("[{},{}]", call(NUMBER, "[]"), chain_id("1"))).status, 200); // 5 + 80 + 5
    assert_eq!(post(chain_id("1")).status, 200); // 5
    assert_eq!(post(chain_id("1")).status, 200); // 5
    assert_eq!(post(chain_id("1")).status, 402);
}

#[test]
fn the_data_of_429_has_exactly_the_three_rates() {
    let gateway = with_plan("credits_per_second = 100");
    let post = || post(gateway.public, "/v3/k1", call(NUMBER, "[]"));
    let refused = std::iter::repeat_with(post).take(20).find(|reply| reply.status != 200).unwrap();
    let data = refused.json()["error"]["data"].clone();
    let names: Vec<_> = data["rate"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["allowed_rps", "backoff_seconds", "current_rps"]);
    assert_eq!(data.as_object().unwrap().len(), 1);
}

#[test]
fn failover_covers_two_methods_by_default() {
    let marked: Vec<_> =
        METHODS.iter().filter(|method| method.rules.failover).map(|method| method.name).collect();
    assert_eq!(marked, ["eth_getStorageAt", "eth_getTransactionByBlockNumberAndIndex"]);
    let config = |text: &str| Config::parse(text).unwrap().network.failover;
    assert_eq!(config(""), marked);
    assert_eq!(config("[methods]\nfailover = [\"eth_call\"]"), ["eth_call"]);
}

#[test]
fn refusing_failover_changes_nothing_where_there_is_none() {
    let gateway = Gateway::start();
    for value in ["false", "true", "nonsense"] {
        let headers = format!("enable-failover: {value}\r\n");
        let reply = TestConnection::connect(gateway.public)
            .send(request("/v3/demo", &headers, chain_id("1").as_bytes()))
            .reply();
        assert_eq!((reply.status, reply.json()["result"].as_str()), (200, Some("0x539")), "{value}");
    }
}
