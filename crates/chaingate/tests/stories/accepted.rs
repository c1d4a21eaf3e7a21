//! `docs/openrpc.json` accepts what the gateway accepts: tools that check calls against it must not refuse good ones.

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::gateway_under_test::{Gateway, block};

const ADDRESS: &str = "0x00000000000000000000000000000000000000Aa";

/// The document, and the schema of one parameter of one method with all that it refers to.
struct Document(Value);

impl Document {
    fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openrpc.json");
        Self(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    }

    fn methods(&self) -> &[Value] {
        self.0["methods"].as_array().unwrap()
    }

    fn validator(&self, param: &Value) -> Validator {
        let root = json!({ "components": self.0["components"], "allOf": [param["schema"]] });
        jsonschema::draft201909::new(&root).unwrap()
    }
}

fn numbers() -> Vec<Value> {
    ["0x0", "0xa", "0xA", "0X5", "latest", "earliest", "pending", "finalized"].map(Value::from).to_vec()
}

fn hashes() -> Vec<Value> {
    let hash = block(4).hash.to_string();
    vec![json!(hash), json!(hash.to_uppercase().replacen("0X", "0x", 1)), json!(hash.replacen("0x", "0X", 1))]
}

fn blocks() -> Vec<Value> {
    let hash = block(4).hash;
    let objects = [
        json!({ "blockNumber": "0x4" }),
        json!({ "blockNumber": "latest", "blockHash": null }),
        json!({ "blockHash": hash }),
        json!({ "blockHash": hash, "requireCanonical": true }),
        json!({ "blockHash": hash, "requireCanonical": false, "blockNumber": null }),
        json!({ "blockHash": hash, "requireCanonical": null }),
    ];
    [numbers(), hashes(), objects.to_vec()].concat()
}

fn filters() -> Vec<Value> {
    let (topic, hash) = (block(1).hash, block(4).hash);
    let mut filters = vec![
        json!({}),
        json!({ "fromBlock": null, "toBlock": null, "address": null, "topics": null, "blockHash": null }),
        json!({ "fromBlock": "0x1", "toBlock": "finalized", "limit": 7 }),
        json!({ "blockHash": hash }),
        json!({ "blockhash": hash }),
        json!({ "address": ADDRESS }),
        json!({ "address": [] }),
        json!({ "address": [ADDRESS, ADDRESS.to_lowercase()] }),
    ];
    for topics in [
        json!([]),
        json!([null]),
        json!([[]]),
        json!([topic]),
        json!([null, [topic, topic], null, topic]),
        json!([[null, topic]]),
        json!([null, null, null, null]),
    ] {
        filters.push(json!({ "topics": topics }));
    }
    filters
}

fn calls() -> Vec<Value> {
    let quantity = ["gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "maxFeePerBlobGas", "value"];
    let mut calls = vec![
        json!({}),
        json!({ "from": ADDRESS, "to": ADDRESS, "data": "0xAAbb", "input": "0x" }),
        json!({ "from": null, "to": null, "data": null, "input": null, "gas": null, "accessList": null }),
        json!({ "gas": "0xffffffffffffffffffff" }),
        json!({ "nonce": "0x1", "chainId": "0x539", "type": "0x2", "hash": null, "v": "0x1", "unknown": {} }),
        json!({ "accessList": [] }),
        json!({ "accessList": [{ "address": ADDRESS, "storageKeys": [block(1).hash] }] }),
        json!({ "accessList": [{ "address": &ADDRESS[2..], "storageKeys": [&block(1).hash.to_string()[2..]] }] }),
        json!({ "blobVersionedHashes": [block(1).hash] }),
        json!({ "blobVersionedHashes": null, "authorizationList": null }),
        json!({ "authorizationList": [{
            "chainId": "0x1", "address": ADDRESS, "nonce": "0x0", "yParity": "0x1", "r": "0x1", "s": "0x1",
        }] }),
    ];
    calls.extend(quantity.map(|name| json!({ name: "0xA" })));
    calls
}

fn state_overrides() -> Vec<Value> {
    let slot = json!({ block(1).hash.to_string(): block(2).hash });
    vec![
        json!({}),
        json!({ ADDRESS: {} }),
        json!({ ADDRESS: { "balance": "0x1", "nonce": "0x1", "code": "0x00", "stateDiff": slot } }),
        json!({ ADDRESS: { "balance": "1", "state": slot } }),
    ]
}

fn block_overrides() -> Vec<Value> {
    vec![json!({}), json!({ "number": "0x7", "time": "0x1", "gasLimit": "0x1000000", "baseFee": "0x1" })]
}

/// Everything that the gateway takes as this parameter, in all forms.
fn forms(method: &str, param: &str) -> Vec<Value> {
    match (param, method) {
        ("block", "eth_getBlockReceipts") => {
            [blocks(), vec![json!(7), json!(0), json!("7"), json!("07")]].concat()
        }
        ("block", "zks_getRawBlockTransactions") => vec![json!(0), json!(7)],
        ("block", name) if name.contains("ByBlockNumber") || name.contains("ByNumber") => numbers(),
        ("block", _) => blocks(),
        ("newestBlock", _) => numbers(),
        ("blockHash" | "transactionHash", _) => hashes(),
        ("address", _) => vec![json!(ADDRESS), json!(ADDRESS.replacen("0x", "0X", 1))],
        ("position", _) => {
            let padded = format!("0x{:064X}", 10);
            vec![json!("0x0"), json!("0x"), json!("0x001"), json!("0xA"), json!("1"), json!(padded)]
        }
        ("index", _) => vec![json!("0x0"), json!("0xA")],
        ("filter", _) => filters(),
        ("call", _) => calls(),
        ("stateOverrides", _) => state_overrides(),
        ("blockOverrides", _) => block_overrides(),
        ("blockCount", _) => vec![json!("0x4"), json!(4), json!("4")],
        ("rewardPercentiles", _) => vec![json!([]), json!([0, 10, 50.5, 100])],
        ("fullTransactions", _) => vec![json!(true), json!(false)],
        other => panic!("no forms of the parameter {other:?}"),
    }
}

/// Lists of parameters in which each parameter takes all of its forms, and optional ones are left out and null.
fn lists_of_params(method: &Value) -> Vec<Vec<Value>> {
    let name = method["name"].as_str().unwrap();
    let params = method["params"].as_array().unwrap();
    let first = |param: &Value| forms(name, param["name"].as_str().unwrap()).swap_remove(0);
    let usual: Vec<_> = params.iter().map(first).collect();
    let required = params.iter().filter(|param| param["required"] == true).count();
    let mut lists: Vec<_> = (required..=params.len()).map(|len| usual[..len].to_vec()).collect();
    for (position, param) in params.iter().enumerate() {
        let mut values = forms(name, param["name"].as_str().unwrap());
        if param["required"] == false {
            values.push(Value::Null);
        }
        for value in values {
            let mut list = usual.clone();
            list[position] = value;
            lists.push(list);
        }
    }
    lists
}

#[test]
fn the_document_accepts_every_call_that_the_gateway_accepts() {
    let (gateway, document) = (Gateway::start(), Document::read());
    let mut refused = Vec::new();
    for method in document.methods() {
        let name = method["name"].as_str().unwrap();
        let params = method["params"].as_array().unwrap();
        let validators: Vec<_> = params.iter().map(|param| document.validator(param)).collect();
        for list in lists_of_params(method) {
            let shown = json!(list).to_string();
            let reply = gateway.call(name, &shown);
            let code = reply["error"]["code"].as_i64();
            assert!(!matches!(code, Some(-32700 | -32602..=-32600)), "{name} {shown}: {reply}");
            for ((value, validator), param) in list.iter().zip(&validators).zip(params) {
                if let Err(error) = validator.validate(value) {
                    refused.push(format!("{name} {}: {value}: {error}", param["name"]));
                }
            }
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}
