//! JSON-RPC calls: ids, notifications, versions, parameters, batches.

use serde_json::json;

use crate::gateway_under_test::{Gateway, UNREADABLE, block, call, chain_id};

#[test]
fn an_id_comes_back_byte_for_byte() {
    let gateway = Gateway::start();
    for id in ["1", "1.0", "-0", "1e999", "18446744073709551616", "\"a\"", r#""\u0061\ud800""#, "null"] {
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"0x539"}}"#);
        assert_eq!(gateway.post(chain_id(id)).text(), expected);
    }
}

#[test]
fn an_id_of_another_type_is_refused_under_null() {
    let gateway = Gateway::start();
    for id in ["true", "[]", "{}"] {
        let json = gateway.post(chain_id(id)).json();
        assert_eq!((json["id"].is_null(), json["error"]["code"].as_i64()), (true, Some(-32600)), "{id}");
    }
}

#[test]
fn notifications_are_204_alone_and_together() {
    let gateway = Gateway::start();
    let note = r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#;
    let unknown = r#"{"jsonrpc":"2.0","method":"eth_nonsense"}"#;
    for body in [note.to_owned(), unknown.to_owned(), format!("[{note},{unknown},{note}]")] {
        let reply = gateway.post(&body);
        assert_eq!((reply.status, reply.body.len()), (204, 0), "{body}");
    }
    let mixed = gateway.post(format!("[{note},{},{unknown},{},{note}]", chain_id("1"), chain_id("2"))).json();
    assert_eq!(
        mixed,
        json!([{"jsonrpc":"2.0","id":1,"result":"0x539"},{"jsonrpc":"2.0","id":2,"result":"0x539"}])
    );
}

#[test]
fn version_and_method_are_checked() {
    let gateway = Gateway::start();
    let code = |body: &str| {
        let reply = gateway.post(body);
        assert_eq!(reply.status, 200, "{body}");
        reply.json()["error"]["code"].as_i64().unwrap()
    };
    assert_eq!(code(r#"{"id":1,"method":"eth_chainId"}"#), -32600);
    assert_eq!(code(r#"{"jsonrpc":"1.0","id":1,"method":"eth_chainId"}"#), -32006);
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":1}"#), -32600);
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":5}"#), -32600);
}

#[test]
fn unknown_members_are_ignored_and_duplicate_ones_refused() {
    let gateway = Gateway::start();
    let with = |member: &str| {
        gateway.post(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_chainId",{member}}}"#)).json()
    };
    assert_eq!(with(r#""traceparent":"x""#)["result"], "0x539");
    for member in [
        r#""method":"eth_call""#,
        r#""meth\u006fd":"eth_call""#,
        r#""id":2"#,
        r#""jsonrpc":"2.0""#,
        r#""a":1,"\u0061":2"#,
    ] {
        let json = with(member);
        assert_eq!((json["id"].is_null(), json["error"]["code"].as_i64()), (true, Some(-32600)), "{member}");
    }
}

#[test]
fn params_are_counted_from_0() {
    let gateway = Gateway::start();
    let null = gateway.call("eth_chainId", "null");
    assert_eq!(null["result"], "0x539");
    assert_eq!(gateway.error("eth_chainId", "{}"), "-32602 non-array args");
    assert_eq!(gateway.error("eth_chainId", "[1]"), "-32602 too many arguments, want at most 0");
    assert_eq!(gateway.error("eth_getStorageAt", "[1,2,3,4,5]"), "-32602 too many arguments, want at most 3");
    assert_eq!(gateway.error("eth_getStorageAt", "[]"), "-32602 missing value for required argument 0");
    let address = "\"0x00000000000000000000000000000000000000aa\"";
    let error = gateway.error("eth_getStorageAt", &format!("[{address}]"));
    assert_eq!(error, "-32602 missing value for required argument 1");
    let error = gateway.error("eth_getStorageAt", &format!("[{address},null,\"latest\"]"));
    assert_eq!(error, "-32602 missing value for required argument 1");
    let error = gateway.error("eth_getStorageAt", "[\"0x00\"]");
    assert!(error.starts_with("-32602 invalid argument 0: "), "{error}");
}

#[test]
fn unknown_methods_are_named_whatever_they_look_like() {
    let gateway = Gateway::start();
    for (written, shown) in [
        ("eth_sendRawTransaction", "eth_sendRawTransaction"),
        ("ETH_CHAINID", "ETH_CHAINID"),
        ("eth_chainId ", "eth_chainId "),
        ("eth_chainId\\u0000", "eth_chainId\0"),
        ("debug_\\\"x\\\"", "debug_\"x\""),
    ] {
        let expected = format!("-32601 the method {shown} does not exist/is not available");
        let told = gateway.error(written, "[]");
        // The reason follows where there is one.
        let reason = told.strip_prefix(&expected).unwrap_or_else(|| panic!("{told}"));
        assert!(reason.is_empty() || reason.starts_with(": "), "{told}");
    }
}

/// A developer who sends a transaction through the gateway was not told that it only reads.
#[test]
fn a_method_that_exists_elsewhere_is_refused_with_the_reason() {
    let gateway = Gateway::start();
    let data = |method: &str| gateway.call(method, "[]")["error"]["data"].clone();
    for (method, reason) in [
        ("eth_sendRawTransaction", "only reads"),
        ("eth_sendTransaction", "only reads"),
        ("eth_newFilter", "eth_getLogs"),
        ("eth_subscribe", "poll"),
        ("debug_traceTransaction", "traces"),
        ("trace_block", "traces"),
        ("personal_sign", "private keys"),
        ("eth_getProof", "not available here"),
    ] {
        let data = data(method);
        assert!(data["reason"].as_str().unwrap_or_default().contains(reason), "{method}: {data}");
    }
    assert!(data("eth_nonsense").is_null());
}

#[test]
fn a_method_of_another_network_is_told_apart() {
    let gateway = Gateway::with("", "[network]\nname = \"mainnet\"\n[[key]]\nkey = \"demo\"");
    let error = gateway.error("zks_getRawBlockTransactions", "[1]");
    assert_eq!(error, "-32004 method not supported on this network: zks_getRawBlockTransactions");
    let gateway =
        Gateway::with("", "[network]\nname = \"era\"\nfamily = \"zksync\"\n[[key]]\nkey = \"demo\"");
    assert!(gateway.call("zks_getRawBlockTransactions", "[1]")["result"].is_array());
    assert_eq!(gateway.call("eth_chainId", "[]")["result"], "0x539");
}

#[test]
fn a_batch_is_answered_in_order_each_call_for_itself() {
    let gateway = Gateway::start();
    let calls =
        [chain_id("3"), "17".to_owned(), call("eth_nonsense", "[]"), chain_id("\"x\""), chain_id("3")];
    let reply = gateway.post(format!("[{}]", calls.join(" , ")));
    let json = reply.json();
    assert_eq!(reply.status, 200);
    let ids: Vec<_> = json.as_array().unwrap().iter().map(|element| element["id"].clone()).collect();
    assert_eq!(ids, [json!(3), json!(null), json!(1), json!("x"), json!(3)]);
    assert_eq!((&json[1]["error"]["code"], &json[2]["error"]["code"]), (&json!(-32600), &json!(-32601)));
    assert_eq!(json[4]["result"], "0x539");
    assert_eq!(reply.header("chaingate-source"), None);
}

#[test]
fn a_batch_of_1000_is_answered_and_one_of_1001_is_not() {
    let gateway = Gateway::start();
    let batch = |calls: usize| format!("[{}]", vec![chain_id("1"); calls].join(","));
    assert_eq!(gateway.post(batch(1_000)).json().as_array().unwrap().len(), 1_000);
    let reply = gateway.post(batch(1_001));
    assert_eq!(reply.error(), "-32600 batch too large");
    assert!(reply.json()["id"].is_null());
}

#[test]
fn what_does_not_fit_into_a_batch_is_an_error_and_the_rest_is_not() {
    let gateway = Gateway::with("batch_reply_bytes_max = 70_000", "");
    let code = call("eth_getCode", r#"["0x00000000000000000000000000000000000000aa"]"#);
    let json = gateway.post(format!("[{code},{code},{code},{}]", chain_id("4"))).json();
    assert!(json[0]["result"].is_string() && json[1]["result"].is_string());
    assert_eq!(json[2]["error"], json!({"code": -32003, "message": "response too large"}));
    assert_eq!(json[3]["result"], "0x539");
    assert!(gateway.post(code).json()["result"].is_string(), "a single call has no such limit");
}

#[test]
fn nesting_beyond_64_is_no_json() {
    let gateway = Gateway::start();
    let deepest = format!("[{}{}]", "[".repeat(62), "]".repeat(62));
    assert_eq!(gateway.error("eth_chainId", &deepest), "-32602 too many arguments, want at most 0");
    for depth in [63, 1_000, 1_000_000] {
        let body = call("eth_chainId", &format!("[{}{}]", "[".repeat(depth), "]".repeat(depth)));
        let reply = gateway.post(&body);
        assert_eq!((reply.status, reply.error().as_str()), (400, "-32700 parse error"), "{depth}");
    }
}

#[test]
fn a_method_name_over_128_bytes_is_refused() {
    let gateway = Gateway::start();
    assert!(gateway.error(&"m".repeat(128), "[]").starts_with("-32601"));
    assert_eq!(gateway.error(&"m".repeat(129), "[]"), "-32600 method name too long");
}

/// A disk that fails must not look like a chain without that block.
#[test]
fn a_block_that_cannot_be_read_is_an_error_and_not_null() {
    let gateway = Gateway::start();
    let (number, hash) = (format!("\"{UNREADABLE:#x}\""), format!("\"{}\"", block(UNREADABLE).hash));
    for (method, params) in [
        ("eth_getBlockByNumber", format!("[{number},false]")),
        ("eth_getBlockByHash", format!("[{hash},false]")),
        ("eth_getBalance", format!("[\"0x{}\",{number}]", "00".repeat(20))),
        ("eth_getLogs", format!("[{{\"fromBlock\":{number},\"toBlock\":\"0x8\"}}]")),
        ("eth_getLogs", format!("[{{\"blockHash\":{hash}}}]")),
    ] {
        assert_eq!(gateway.error(method, &params), "-32603 internal error", "{method} {params}");
    }
}
