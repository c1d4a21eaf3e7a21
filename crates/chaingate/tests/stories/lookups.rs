//! Logs, receipts, transactions, uncles and raw records of the demo chain.

use std::time::Duration;

use demo_builder::contracts::{CHATTER, TOUR};
use demo_builder::facts::{CHATTER_BLOCKS, Facts, RAW_BLOCKS, topics};
use serde_json::{Value, json};

use crate::demo::Demo;
use crate::gateway_under_test::{Gateway, call, config};

fn facts() -> Facts {
    demo_builder::build().unwrap().facts
}

fn asked(gateway: &Gateway, method: &str, params: Value) -> Value {
    gateway.call(method, &params.to_string())
}

fn result(gateway: &Gateway, method: &str, params: Value) -> Value {
    let json = asked(gateway, method, params);
    assert!(json["error"].is_null(), "{json}");
    json["result"].clone()
}

fn hex(number: u64) -> String {
    format!("{number:#x}")
}

#[test]
fn more_than_10000_logs_name_the_widest_range_that_fits() {
    let gateway = Gateway::on_demo_chain("");
    let (from, to) = (hex(*CHATTER_BLOCKS.start()), hex(*CHATTER_BLOCKS.end()));
    let filter = |to: &Value| json!([{ "address": CHATTER.address(), "fromBlock": from, "toBlock": to }]);
    let error = asked(&gateway, "eth_getLogs", filter(&json!(to)))["error"].clone();
    assert_eq!(error["code"], -32005);
    assert_eq!(error["message"], "query returned more than 10000 results");
    let fits = hex(CHATTER_BLOCKS.start() + 49);
    assert_eq!(error["data"], json!({ "from": from, "to": fits, "limit": 10_000 }));
    let logs = result(&gateway, "eth_getLogs", filter(&error["data"]["to"]));
    assert_eq!(logs.as_array().unwrap().len(), 10_000);
}

#[test]
fn a_log_query_beyond_its_time_is_told_so() {
    let mut config = config("", "log_timeout_ms = 1", "");
    let time = &mut config.limits.answer.log_timeout;
    assert_eq!(*time, Duration::from_millis(1));
    // A fast machine may need less than a millisecond.
    *time = Duration::ZERO;
    let gateway = Gateway::on_demo_chain_configured(&config);
    let error = gateway.error("eth_getLogs", r#"[{"fromBlock":"earliest"}]"#);
    assert_eq!(error, "-32005 query timeout exceeded");
}

#[test]
fn topics_match_by_position() {
    let gateway = Gateway::on_demo_chain("");
    let block = hex(facts().block("all-topics").unwrap());
    let count = |topics: Value| {
        let filter =
            json!([{ "address": TOUR.address(), "fromBlock": block, "toBlock": block, "topics": topics }]);
        result(&gateway, "eth_getLogs", filter).as_array().unwrap().len()
    };
    let topic = |name: &str| {
        topics().iter().find(|topic| topic.signature.starts_with(name)).unwrap().hash.to_string()
    };
    assert_eq!(count(json!([])), 7);
    assert_eq!(count(json!([null])), 5, "two logs have no topic at all");
    assert_eq!(count(json!([[]])), 5);
    assert_eq!(count(json!([null, null])), 3);
    assert_eq!(count(json!([null, null, null, null])), 1);
    assert_eq!(count(json!([topic("One")])), 1);
    assert_eq!(count(json!([[topic("One"), topic("Two")]])), 2);
    assert_eq!(
        count(json!([topic("One"), null])),
        0,
        "a log with fewer topics than the filter does not match"
    );
    assert_eq!(count(json!([null, topic("One")])), 0);
}

#[test]
fn logs_of_one_block_are_found_by_its_hash() {
    let gateway = Gateway::on_demo_chain("");
    let facts = facts();
    let point = facts.point("all-topics").unwrap();
    let by_hash = result(&gateway, "eth_getLogs", json!([{ "blockHash": point.block_hash }]));
    let number = hex(point.block);
    let by_number = result(&gateway, "eth_getLogs", json!([{ "fromBlock": number, "toBlock": number }]));
    assert_eq!(by_hash, by_number);
    assert_eq!(by_hash[0]["removed"], false);
    assert!(by_hash[0]["blockTimestamp"].is_string());
}

#[test]
fn a_receipt_has_a_root_before_byzantium_and_a_status_after() {
    let gateway = Gateway::on_demo_chain("");
    let facts = facts();
    let receipt =
        |name: &str| result(&gateway, "eth_getTransactionReceipt", json!([facts.transaction(name).unwrap()]));
    let early = receipt("create-early");
    assert!(early["root"].is_string() && early["status"].is_null(), "{early}");
    assert!(early["contractAddress"].is_string() && early["to"].is_null());
    let (good, bad) = (receipt("create-tour"), receipt("revert-reason"));
    assert_eq!((&good["status"], &bad["status"]), (&json!("0x1"), &json!("0x0")));
    assert!(good["root"].is_null() && good["effectiveGasPrice"].is_string());
    let blob = receipt("blob");
    assert!(blob["blobGasUsed"].is_string() && blob["blobGasPrice"].is_string(), "{blob}");
    assert!(receipt("dynamic-fee")["blobGasUsed"].is_null());
    assert!(receipt("all-topics")["logs"][0]["blockTimestamp"].is_string());
    let unknown = json!([format!("0x{}", "1".repeat(64))]);
    assert!(asked(&gateway, "eth_getTransactionReceipt", unknown)["result"].is_null());
}

#[test]
fn a_transaction_has_what_its_type_has() {
    let gateway = Gateway::on_demo_chain("");
    let facts = facts();
    let transaction =
        |name: &str| result(&gateway, "eth_getTransactionByHash", json!([facts.transaction(name).unwrap()]));
    let unprotected = transaction("head-unprotected");
    assert!(unprotected["chainId"].is_null() && unprotected["yParity"].is_null(), "{unprotected}");
    assert!(unprotected["blockTimestamp"].is_string());
    assert!(transaction("head-protected")["chainId"].is_string());
    let dynamic = transaction("head-dynamic-fee");
    assert_eq!((&dynamic["type"], dynamic["yParity"].is_string()), (&json!("0x2"), true));
    let number = |value: &Value| u128::from_str_radix(&value.as_str().unwrap()[2..], 16).unwrap();
    assert!(number(&dynamic["gasPrice"]) <= number(&dynamic["maxFeePerGas"]), "the price that was paid");
    assert!(transaction("head-blobs")["blobVersionedHashes"].is_array());
    assert!(transaction("head-delegation")["authorizationList"].is_array());
    let point = facts.point("head-dynamic-fee").unwrap();
    let place = hex(point.transaction.unwrap().index);
    let by_number = json!([hex(point.block), place]);
    assert_eq!(result(&gateway, "eth_getTransactionByBlockNumberAndIndex", by_number), dynamic);
    let by_hash = json!([point.block_hash, place]);
    assert_eq!(result(&gateway, "eth_getTransactionByBlockHashAndIndex", by_hash), dynamic);
    assert!(result(&gateway, "eth_getTransactionByBlockNumberAndIndex", json!(["latest", "0xff"])).is_null());
}

#[test]
fn a_header_is_its_block_without_what_only_the_whole_block_has() {
    let gateway = Gateway::on_demo_chain("");
    for number in ["0x0", "0x5", "0x9", "0x48", "latest"] {
        let header = result(&gateway, "eth_getHeaderByNumber", json!([number]));
        let mut block = result(&gateway, "eth_getBlockByNumber", json!([number, false]));
        let members = block.as_object_mut().unwrap();
        members.retain(|name, _| {
            !["size", "totalDifficulty", "transactions", "uncles", "withdrawals"].contains(&name.as_str())
        });
        assert_eq!(header, block);
        assert_eq!(result(&gateway, "eth_getHeaderByHash", json!([header["hash"]])), block);
    }
    assert!(result(&gateway, "eth_getHeaderByNumber", json!(["0xffffff"])).is_null());
}

#[test]
fn an_uncle_is_its_header_and_no_transactions() {
    let gateway = Gateway::on_demo_chain("");
    let facts = facts();
    let point = facts.point("two-uncles").unwrap();
    let by_number = json!([hex(point.block), "0x1"]);
    let uncle = result(&gateway, "eth_getUncleByBlockNumberAndIndex", by_number);
    let by_hash = json!([point.block_hash, "0x1"]);
    assert_eq!(result(&gateway, "eth_getUncleByBlockHashAndIndex", by_hash), uncle);
    let members = uncle.as_object().unwrap();
    assert!(!members.contains_key("transactions"), "{uncle}");
    assert_eq!((&uncle["uncles"], &members["totalDifficulty"]), (&json!([]), &Value::Null));
    assert!(uncle["size"].is_string() && uncle["mixHash"].is_string());
    assert!(
        result(&gateway, "eth_getUncleByBlockNumberAndIndex", json!([hex(point.block), "0x2"])).is_null()
    );
    assert_eq!(result(&gateway, "eth_getUncleCountByBlockNumber", json!([hex(point.block)])), "0x2");
}

#[test]
fn raw_records_are_of_three_kinds_and_a_block_without_them_has_an_empty_list() {
    let gateway = Gateway::on_demo_chain("");
    let records = |block: u64| result(&gateway, "zks_getRawBlockTransactions", json!([block]));
    let first = records(*RAW_BLOCKS.start());
    assert!(first[0]["common_data"]["ProtocolUpgrade"].is_object(), "{first}");
    let second = records(RAW_BLOCKS.start() + 1);
    let (deposit, transaction) = (&second[0], &second[1]);
    assert!(deposit["common_data"]["L1"].is_object() && deposit["raw_bytes"].is_null());
    let l2 = &transaction["common_data"]["L2"];
    assert!(l2["nonce"].is_u64() && l2["signature"][0].is_u64() && l2["input"]["data"][0].is_u64(), "{l2}");
    assert!(l2["fee"]["gas_limit"].is_string() && l2["paymasterParams"]["paymasterInput"].is_array());
    assert!(transaction["raw_bytes"].is_string());
    assert_eq!((records(1), records(1_000_000)), (json!([]), json!([])));
}

#[test]
fn what_is_asked_for_again_is_kept_and_stays_the_same() {
    let demo = Demo::with("");
    let block = demo.call("eth_getBlockByNumber", r#"["0x10",true]"#)["result"].clone();
    let questions = [
        ("eth_getBlockByNumber", r#"["0x11",true]"#.to_owned()),
        ("eth_getBlockByNumber", r#"["0x11",false]"#.to_owned()),
        ("eth_getBlockByHash", format!(r#"[{},true]"#, block["hash"])),
        ("eth_getBlockReceipts", r#"["0x11"]"#.to_owned()),
        ("eth_getLogs", r#"[{"fromBlock":"0x10","toBlock":"0x20"}]"#.to_owned()),
        ("eth_getLogs", format!(r#"[{{"blockHash":{}}}]"#, block["hash"])),
        ("eth_call", r#"[{"data":"0x5f5ff3"},"latest"]"#.to_owned()),
        ("eth_feeHistory", r#"["0x4","0x20",[10,90]]"#.to_owned()),
    ];
    let asked = |(method, params): &(&str, String)| {
        let reply = demo.post(call(method, params));
        let source = reply.header("chaingate-source").unwrap().to_owned();
        (source, reply.header("chaingate-block").map(str::to_owned), reply.text().to_owned())
    };
    let first: Vec<_> = questions.iter().map(asked).collect();
    assert!(first.iter().all(|(source, ..)| source == "archive"), "{first:?}");
    questions.iter().for_each(|question| drop(asked(question)));
    for (question, (_, block, text)) in questions.iter().zip(first) {
        assert_eq!(asked(question), ("cache".to_owned(), block, text), "{question:?}");
    }
    let state = ("eth_getBalance", r#"["0x00000000000000000000000000000000000000aa","0x10"]"#.to_owned());
    assert!((0..3).all(|_| asked(&state).0 == "archive"), "a single value is read anew");
}
