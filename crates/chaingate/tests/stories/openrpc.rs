//! Results on the demo chain against the schemas that the execution APIs publish. They are not part of this repository:
//! `CHAINGATE_CONFORMANCE` names the folder that they are in.

use std::collections::BTreeSet;

use demo_builder::accounts::ALICE;
use demo_builder::contracts::TOUR;
use jsonschema::Validator;
use methods::{METHODS, Method, MethodId};
use serde_json::{Value, json};

use crate::demo::Demo;

/// Methods that the published document has no schema for.
const WITHOUT_SCHEMA: [&str; 9] = [
    "eth_getHeaderByNumber",
    "eth_getHeaderByHash",
    "eth_getUncleByBlockNumberAndIndex",
    "eth_getUncleByBlockHashAndIndex",
    "zks_getRawBlockTransactions",
    "web3_clientVersion",
    "rpc.discover",
    "eth_getUncleCountByBlockNumber",
    "eth_getUncleCountByBlockHash",
];

/// The document, unless there is none.
fn document() -> Option<Value> {
    let folder = testkit::skip::recorded_chains()?;
    let text = std::fs::read(folder.join("execution-apis/openrpc.json")).unwrap();
    Some(serde_json::from_slice(&text).unwrap())
}

fn schema(document: &Value, method: &str) -> Option<Validator> {
    let row = document["methods"].as_array()?.iter().find(|row| row["name"] == method)?;
    let schema = row.get("result")?.get("schema")?;
    Some(jsonschema::draft201909::new(schema).unwrap())
}

/// Calls that between them show every form of every result.
fn calls() -> Vec<(&'static str, Value)> {
    let chain = demo_builder::build().unwrap();
    let examples = METHODS.iter().filter(|method| !WITHOUT_SCHEMA.contains(&method.name));
    let example = |method: &Method| (method.name, serde_json::from_str(method.example).unwrap());
    let mut calls: Vec<_> = examples.map(example).collect();
    calls.extend([
        ("eth_feeHistory", json!(["0x10", "latest", [10, 50, 90]])),
        ("eth_feeHistory", json!(["0x10", "0x4f", []])),
        ("eth_getCode", json!([TOUR.address(), "latest"])),
        ("eth_getCode", json!([ALICE.address, "latest"])),
        ("eth_getLogs", json!([{"fromBlock": "0x0", "toBlock": "0xa0"}])),
        ("eth_getLogs", json!([{"fromBlock": "0x0", "toBlock": "0x1"}])),
    ]);
    for point in &chain.facts.points {
        let (number, hash) = (format!("{:#x}", point.block), point.block_hash);
        calls.push(("eth_getBlockByNumber", json!([number, true])));
        calls.push(("eth_getBlockByHash", json!([hash, false])));
        calls.push(("eth_getBlockReceipts", json!([number])));
        calls.push(("eth_getBlockTransactionCountByNumber", json!([number])));
        calls.push(("eth_getBlockTransactionCountByHash", json!([hash])));
        if let Some(transaction) = point.transaction {
            let index = format!("{:#x}", transaction.index);
            calls.push(("eth_getTransactionByHash", json!([transaction.hash])));
            calls.push(("eth_getTransactionReceipt", json!([transaction.hash])));
            calls.push(("eth_getTransactionByBlockNumberAndIndex", json!([number, index])));
            calls.push(("eth_getTransactionByBlockHashAndIndex", json!([hash, index])));
        }
    }
    calls
}

#[test]
fn results_have_the_published_form() {
    let Some(document) = document() else { return };
    let demo = Demo::with("");
    let mut faults = BTreeSet::new();
    for (method, params) in calls() {
        let schema = schema(&document, method).unwrap_or_else(|| panic!("no schema for {method}"));
        let reply = demo.call(method, &params.to_string());
        let result = reply.get("result").unwrap_or_else(|| panic!("{method} {params}: {reply}"));
        // The schema offers two forms of an array, and an empty one is both, which it forbids.
        if method == "eth_getLogs" && *result == json!([]) {
            continue;
        }
        for error in schema.iter_errors(result).take(3) {
            faults.insert(format!("{method} {params} at {}: {error:.300}", error.instance_path()));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    for method in WITHOUT_SCHEMA {
        assert!(MethodId::named(method).is_some(), "{method} is not in the table");
        assert!(schema(&document, method).is_none(), "{method} has a schema");
    }
}
