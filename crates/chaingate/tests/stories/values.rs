//! The values that parameters are made of, and the parameters of each method.

use serde_json::{Value, json};

use crate::gateway_under_test::{Gateway, block};

const ADDRESS: &str = "\"0x00000000000000000000000000000000000000aa\"";

fn balance_at(gateway: &Gateway, at: &str) -> Value {
    gateway.call("eth_getBalance", &format!("[{ADDRESS},{at}]"))
}

fn is_invalid_argument(json: &Value, position: usize) -> bool {
    let message = json["error"]["message"].as_str().unwrap_or_default();
    json["error"]["code"] == -32602 && message.starts_with(&format!("invalid argument {position}: "))
}

#[test]
fn quantities_are_minimal_hex_in_either_case() {
    let gateway = Gateway::start();
    for (good, number) in [("0x0", "0x0"), ("0xa", "0xa"), ("0xA", "0xa"), ("0X5", "0x5")] {
        assert_eq!(balance_at(&gateway, &format!("\"{good}\""))["result"], number, "{good}");
    }
    for bad in [
        "\"0x\"", "\"0x05\"", "\"0x00\"", "\"5\"", "\"-0x5\"", "\"0x-5\"", "\"\"", "\"0xg\"", "5", "true",
        "\" 0x5\"", "\"0x5 \"",
    ] {
        assert!(is_invalid_argument(&balance_at(&gateway, bad), 1), "{bad}");
    }
}

#[test]
fn addresses_and_hashes_have_their_exact_length() {
    let gateway = Gateway::start();
    for bad in [
        "0x",
        "0xaa",
        "00000000000000000000000000000000000000aa",
        "0x00000000000000000000000000000000000000a",
        "0x00000000000000000000000000000000000000aag",
        "0x00000000000000000000000000000000000000gg",
    ] {
        assert!(is_invalid_argument(&gateway.call("eth_getBalance", &format!("[\"{bad}\"]")), 0), "{bad}");
    }
    let short = format!("[\"0x{}\"]", "1".repeat(62));
    let json = gateway.call("eth_getTransactionByHash", &short);
    assert_eq!(
        json["error"]["message"],
        "invalid argument 0: hex string has length 62, want 64 for common.Hash"
    );
    assert!(
        gateway.call("eth_getTransactionByHash", &format!("[\"0x{}\"]", "1".repeat(64)))["error"].is_null()
    );
}

#[test]
fn storage_positions_may_be_odd_and_padded_but_not_too_long() {
    let gateway = Gateway::start();
    let read =
        |position: &str| gateway.call("eth_getStorageAt", &format!("[{ADDRESS},\"{position}\",\"latest\"]"));
    for position in ["0x1", "0x01", "0x001", &format!("0x{}1", "0".repeat(63))] {
        assert_eq!(read(position)["result"], block(1).hash.to_string(), "{position}");
    }
    assert_eq!(read("0x0")["result"], block(0).hash.to_string());
    assert_eq!(read("0xasdf")["error"]["message"], "invalid hex in storage key: \"0xasdf\"");
    let long = format!("0x{}", "1".repeat(65));
    let expected = format!("storage key too long (want at most 32 bytes): \"{long}\"");
    assert_eq!(read(&long)["error"], json!({"code": -32602, "message": expected}));
}

#[test]
fn a_block_is_a_number_a_tag_a_hash_or_an_object() {
    let gateway = Gateway::start();
    let hash = block(7).hash;
    let named = [
        ("\"0x7\"".to_owned(), "0x7"),
        ("\"latest\"".to_owned(), "0xa"),
        ("\"pending\"".to_owned(), "0xa"),
        ("\"earliest\"".to_owned(), "0x0"),
        ("\"finalized\"".to_owned(), "0x8"),
        ("null".to_owned(), "0xa"),
        (format!("\"{hash}\""), "0x7"),
        (format!("{{\"blockHash\":\"{hash}\"}}"), "0x7"),
        (format!("{{\"blockHash\":\"{hash}\",\"requireCanonical\":true}}"), "0x7"),
        ("{\"blockNumber\":\"0x7\"}".to_owned(), "0x7"),
        ("{\"blockNumber\":\"finalized\"}".to_owned(), "0x8"),
    ];
    for (written, number) in named {
        assert_eq!(balance_at(&gateway, &written)["result"], number, "{written}");
    }
    let left_out = gateway.call("eth_getBalance", &format!("[{ADDRESS}]"));
    assert_eq!(left_out["result"], "0xa");
    let both = format!("{{\"blockHash\":\"{hash}\",\"blockNumber\":\"0x7\"}}");
    for bad in [
        "\"Latest\"",
        "\"newest\"",
        "{}",
        "[]",
        "{\"block\":\"0x1\"}",
        "{\"blockNumber\":\"0x1\",\"blockNumber\":\"0x2\"}",
        &both,
    ] {
        assert!(is_invalid_argument(&balance_at(&gateway, bad), 1), "{bad}");
    }
}

#[test]
fn block_numbers_end_at_2_to_the_63() {
    let gateway = Gateway::start();
    assert_eq!(balance_at(&gateway, "\"0x7fffffffffffffff\"")["error"]["message"], "header not found");
    for large in ["\"0x8000000000000000\"", "\"0xffffffffffffffffff\""] {
        let json = balance_at(&gateway, large);
        assert_eq!(
            json["error"]["message"], "invalid argument 1: block number larger than 2^63-1",
            "{large}"
        );
    }
}

#[test]
fn a_block_that_is_not_there_is_an_error_for_state_and_null_for_lookups() {
    let gateway = Gateway::start();
    let unknown = format!("\"0x{}\"", "9".repeat(64));
    assert_eq!(
        balance_at(&gateway, "\"0xb\"")["error"],
        json!({"code": -32000, "message": "header not found"})
    );
    let by_hash = json!({"code": -32000, "message": "header for hash not found"});
    assert_eq!(balance_at(&gateway, &unknown)["error"], by_hash);
    assert_eq!(
        balance_at(&gateway, "\"safe\"")["error"],
        json!({"code": -32000, "message": "safe block not found"})
    );
    for (method, params) in [
        ("eth_getBlockByNumber", "[\"0xb\",false]".to_owned()),
        ("eth_getBlockByHash", format!("[{unknown},false]")),
        ("eth_getUncleByBlockNumberAndIndex", "[\"0xb\",\"0x0\"]".to_owned()),
        ("eth_getUncleByBlockHashAndIndex", format!("[{unknown},\"0x0\"]")),
        ("eth_getTransactionByBlockNumberAndIndex", "[\"0xb\",\"0x0\"]".to_owned()),
        ("eth_getHeaderByNumber", "[\"0xb\"]".to_owned()),
        ("eth_getHeaderByHash", format!("[{unknown}]")),
        ("eth_getBlockReceipts", "[\"0xb\"]".to_owned()),
    ] {
        let json = gateway.call(method, &params);
        assert!(json.get("result").is_some_and(Value::is_null), "{method}: {json}");
    }
    assert_eq!(gateway.call("zks_getRawBlockTransactions", "[11]")["result"], json!([]));
}

#[test]
fn by_number_lookups_require_their_block() {
    let gateway = Gateway::start();
    for method in [
        "eth_getBlockByNumber",
        "eth_getHeaderByNumber",
        "eth_getUncleByBlockNumberAndIndex",
        "eth_getBlockReceipts",
    ] {
        assert_eq!(gateway.error(method, "[]"), "-32602 missing value for required argument 0", "{method}");
    }
    let error = gateway.error("eth_getUncleByBlockNumberAndIndex", "[\"0x1\"]");
    assert_eq!(error, "-32602 missing value for required argument 1");
    let error = gateway.error("eth_getUncleByBlockNumberAndIndex", "[\"0x1\",\"1\"]");
    assert_eq!(error, "-32602 invalid argument 1: hex string without 0x prefix");
}

#[test]
fn block_receipts_take_integers_and_decimals_and_pending_is_latest() {
    let gateway = Gateway::start();
    for (written, number) in
        [("7", "0x7"), ("\"7\"", "0x7"), ("\"0x7\"", "0x7"), ("\"pending\"", "0xa"), ("\"latest\"", "0xa")]
    {
        let json = gateway.call("eth_getBlockReceipts", &format!("[{written}]"));
        assert_eq!(json["result"]["number"], number, "{written}");
    }
    for bad in ["-1", "1.5", "\"07x\"", "\"\"", "9223372036854775808"] {
        assert!(is_invalid_argument(&gateway.call("eth_getBlockReceipts", &format!("[{bad}]")), 0), "{bad}");
    }
}

#[test]
fn raw_block_transactions_take_an_integer_only() {
    let gateway = Gateway::start();
    assert!(gateway.call("zks_getRawBlockTransactions", "[7]")["result"].is_array());
    for bad in ["\"7\"", "\"0x7\"", "\"latest\"", "7.0", "-7", "true"] {
        assert!(
            is_invalid_argument(&gateway.call("zks_getRawBlockTransactions", &format!("[{bad}]")), 0),
            "{bad}"
        );
    }
}

#[test]
fn a_network_may_refuse_the_safe_tag_for_some_methods() {
    let rest = "[network]\nunsupported_tags = { safe = [\"eth_getStorageAt\"] }";
    let gateway = Gateway::with("", rest);
    let error = gateway.error("eth_getStorageAt", &format!("[{ADDRESS},\"0x0\",\"safe\"]"));
    assert_eq!(error, "-32602 the safe tag is not supported for eth_getStorageAt, use finalized");
    assert_eq!(balance_at(&gateway, "\"safe\"")["error"]["message"], "safe block not found");
}

fn logs(gateway: &Gateway, filter: &str) -> Value {
    gateway.call("eth_getLogs", &format!("[{filter}]"))
}

#[test]
fn a_filter_names_a_range_or_one_block() {
    let gateway = Gateway::start();
    let hash = block(4).hash;
    assert_eq!(logs(&gateway, "{}")["result"], json!(["10-10"]));
    assert_eq!(logs(&gateway, r#"{"fromBlock":"0x2","toBlock":"finalized"}"#)["result"], json!(["2-8"]));
    assert_eq!(logs(&gateway, r#"{"fromBlock":"earliest"}"#)["result"], json!(["0-10"]));
    for name in ["blockHash", "blockhash"] {
        assert_eq!(logs(&gateway, &format!("{{\"{name}\":\"{hash}\"}}"))["result"], json!(["4"]), "{name}");
    }
    let both = logs(&gateway, &format!("{{\"blockHash\":\"{hash}\",\"fromBlock\":\"0x1\"}}"));
    let expected =
        "invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other";
    assert_eq!(both["error"], json!({"code": -32602, "message": expected}));
}

#[test]
fn ranges_are_checked_against_themselves_and_the_head() {
    let gateway = Gateway::start();
    let error = |filter: &str| {
        let error = logs(&gateway, filter)["error"].clone();
        format!("{} {}", error["code"], error["message"].as_str().unwrap())
    };
    assert_eq!(error(r#"{"fromBlock":"0x5","toBlock":"0x4"}"#), "-32602 invalid block range params");
    assert_eq!(
        error(r#"{"fromBlock":"0x5","toBlock":"0xb"}"#),
        "-32602 block range extends beyond current head block"
    );
    assert_eq!(
        error(r#"{"fromBlock":"0x0","toBlock":"0x7fffffffffffffff"}"#),
        "-32602 block range extends beyond current head block"
    );
    assert_eq!(error(r#"{"fromBlock":"pending"}"#), "-32602 pending logs are not supported");
    assert_eq!(error(&format!("{{\"blockHash\":\"0x{}\"}}", "9".repeat(64))), "-32000 unknown block");

    let capped = Gateway::with("log_blocks_max = 5", "");
    let json = logs(&capped, r#"{"fromBlock":"0x0","toBlock":"0x5"}"#);
    assert_eq!(json["error"], json!({"code": -32602, "message": "range 6 exceeds limit of 5"}));
    assert_eq!(logs(&capped, r#"{"fromBlock":"0x0","toBlock":"0x4"}"#)["result"], json!(["0-4"]));
}

#[test]
fn topics_have_four_positions_and_each_its_alternatives() {
    let gateway = Gateway::start();
    let topic = format!("\"{}\"", block(1).hash);
    for good in [
        "[]",
        "[null]",
        "[[]]",
        &format!("[{topic}]"),
        &format!("[null,[{topic},{topic}],null,{topic}]"),
        &format!("[[null,{topic}]]"),
    ] {
        let json = logs(&gateway, &format!("{{\"topics\":{good}}}"));
        assert_eq!(json["result"], json!(["10-10"]), "{good}");
    }
    for bad in ["[null,null,null,null,null]", "[\"0x1\"]", "[[[]]]", "{}", "[1]", "\"0x\""] {
        assert!(is_invalid_argument(&logs(&gateway, &format!("{{\"topics\":{bad}}}")), 0), "{bad}");
    }
    for bad in ["1", "\"0x1\"", "[\"0x1\"]", "[null]"] {
        assert!(is_invalid_argument(&logs(&gateway, &format!("{{\"address\":{bad}}}")), 0), "{bad}");
    }
    assert!(is_invalid_argument(&logs(&gateway, r#"{"fromBlock":"0x1","fromBlock":"0x2"}"#), 0));
    assert!(is_invalid_argument(&logs(&gateway, "[]"), 0));
}

/// A filter with five fields and one mistake in it was refused without a word on where the mistake is.
#[test]
fn an_error_in_a_filter_names_its_field() {
    let gateway = Gateway::start();
    let topic = format!("\"{}\"", block(1).hash);
    for (filter, place) in [
        (r#"{"fromBlock":"5"}"#.to_owned(), "fromBlock: "),
        (r#"{"toBlock":"0x05"}"#.to_owned(), "toBlock: "),
        (r#"{"blockHash":"0x1"}"#.to_owned(), "blockHash: "),
        (r#"{"blockhash":"0x1"}"#.to_owned(), "blockhash: "),
        (r#"{"address":"0x1"}"#.to_owned(), "address: "),
        (format!(r#"{{"address":[{ADDRESS},{ADDRESS},{ADDRESS},"0x1"]}}"#), "address[3]: "),
        (r#"{"topics":{}}"#.to_owned(), "topics: "),
        (r#"{"topics":[null,null,null,null,null]}"#.to_owned(), "topics: "),
        (r#"{"topics":["0x1"]}"#.to_owned(), "topics[0]: "),
        (format!(r#"{{"topics":[null,[7,{topic}]]}}"#), "topics[1][0]: "),
        (format!(r#"{{"topics":[{topic},[{topic},null,[]]]}}"#), "topics[1][2]: "),
    ] {
        let json = logs(&gateway, &filter);
        let message = json["error"]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(&format!("invalid argument 0: {place}")), "{filter}: {json}");
    }
    let json = balance_at(&gateway, r#"{"blockHash":"0x1"}"#);
    let message = json["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("invalid argument 1: blockHash: "), "{message}");
}

#[test]
fn a_filter_has_at_most_5000_values() {
    let gateway = Gateway::start();
    let filter = |addresses: usize| {
        let topic = format!("\"{}\"", block(1).hash);
        format!("{{\"address\":[{}],\"topics\":[{topic}]}}", vec![ADDRESS; addresses].join(","))
    };
    assert_eq!(logs(&gateway, &filter(4_999))["result"], json!(["10-10"]));
    let expected = json!({"code": -32005, "message": "query contains 5001 parameters, the limit is 5000"});
    assert_eq!(logs(&gateway, &filter(5_000))["error"], expected);
}

#[test]
fn a_call_object_takes_what_clients_send() {
    let gateway = Gateway::start();
    let run = |object: &str| gateway.call("eth_call", &format!("[{object},\"latest\"]"));
    assert_eq!(run(r#"{"data":"0xaa"}"#)["result"], "0xaa");
    assert_eq!(run(r#"{"data":"0xaa","input":"0xbb"}"#)["result"], "0xbb", "input wins");
    assert_eq!(run(r#"{"input":"0xbb","data":"0xaa"}"#)["result"], "0xbb", "input wins");
    let whole = format!(
        r#"{{"from":{ADDRESS},"to":{ADDRESS},"gas":"0xffffffffffffffffffff","maxFeePerGas":"0x1","maxPriorityFeePerGas":"0x1","value":"0x0","nonce":"0x1","chainId":"0x1","type":"0x2","accessList":[{{"address":{ADDRESS},"storageKeys":[]}}],"maxFeePerBlobGas":"0x1","blobVersionedHashes":[],"authorizationList":[],"hash":null,"unknown":{{}}}}"#
    );
    assert_eq!(run(&whole)["result"], "0x");
    for bad in [
        "[]",
        "\"0x\"",
        r#"{"data":"0xa"}"#,
        r#"{"data":"aa"}"#,
        r#"{"to":"0xaa"}"#,
        r#"{"gas":"0x01"}"#,
        r#"{"gas":21000}"#,
        r#"{"gasPrice":"0x1","maxFeePerGas":"0x1"}"#,
        r#"{"data":"0x","data":"0x"}"#,
        r#"{"accessList":7}"#,
    ] {
        assert!(is_invalid_argument(&run(bad), 0), "{bad}");
    }
}

#[test]
fn overrides_are_read_and_checked() {
    let gateway = Gateway::start();
    let run =
        |state: &str, block: &str| gateway.call("eth_call", &format!("[{{}},\"latest\",{state},{block}]"));
    let state = format!(r#"{{{ADDRESS}:{{"balance":"0x1","stateDiff":{{}}}}}}"#);
    assert_eq!(run(&state, r#"{"time":"0x1"}"#)["result"], "0x");
    assert_eq!(run("null", "null")["result"], "0x");
    assert!(is_invalid_argument(&run("[]", "null"), 2));
    assert!(is_invalid_argument(&run(r#"{"0x1":{}}"#, "null"), 2));
    assert!(is_invalid_argument(&run(&format!("{{{ADDRESS}:{{}},{ADDRESS}:{{}}}}"), "null"), 2));
    assert!(is_invalid_argument(&run("null", "7"), 3));
}

#[test]
fn from_is_required_only_where_the_operator_says_so() {
    let gateway = Gateway::with("", "[methods]\neth_call_requires_from = true");
    assert_eq!(gateway.error("eth_call", "[{}]"), "-32602 invalid argument 0: from is required");
    assert_eq!(gateway.call("eth_call", &format!("[{{\"from\":{ADDRESS}}}]"))["result"], "0x");
    assert!(gateway.call("eth_estimateGas", "[{}]")["error"].is_null());
}

#[test]
fn a_revert_is_told_with_its_reason_and_data() {
    let gateway = Gateway::start();
    let panic = format!("4e487b71{:064x}", 0x11);
    let json = gateway.call("eth_call", &format!("[{{\"data\":\"0x01{panic}\"}}]"));
    let expected = json!({
        "code": 3,
        "message": "execution reverted: arithmetic underflow or overflow",
        "data": format!("0x{panic}"),
    });
    assert_eq!(json["error"], expected);
    let bare = gateway.call("eth_call", "[{\"data\":\"0x01\"}]");
    assert_eq!(bare["error"], json!({"code": 3, "message": "execution reverted", "data": "0x"}));
}

#[test]
fn fee_history_takes_a_count_in_any_spelling() {
    let gateway = Gateway::start();
    for count in ["\"0x4\"", "4", "\"4\""] {
        let json = gateway.call("eth_feeHistory", &format!("[{count},\"latest\",[10,50.5,99]]"));
        assert!(json["error"].is_null(), "{json}");
    }
    for bad in ["[50,10]", "[101]", "[-1]", "[\"1\"]", "7"] {
        let json = gateway.call("eth_feeHistory", &format!("[4,\"latest\",{bad}]"));
        assert!(is_invalid_argument(&json, 2), "{bad}");
    }
}
