//! Real answers have the shape that `docs/openrpc.json` gives them: no member is missing, and none is unknown.

use methods::{METHODS, Method};
use serde_json::{Value, json};

use crate::gateway_under_test::Gateway;

fn document() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openrpc.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The first fault of a value against its schema, if there is one.
fn fault(document: &Value, schema: &Value, value: &Value) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return fault(document, &document["components"]["schemas"][name], value);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let faults: Option<Vec<_>> = choices.iter().map(|choice| fault(document, choice, value)).collect();
        return faults.map(|faults| faults.join(" or "));
    }
    let right = match schema["type"].as_str().unwrap() {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => return array_fault(document, &schema["items"], value),
        "object" => return object_fault(document, schema, value),
        other => panic!("{other}"),
    };
    (!right).then(|| format!("{value} is not {schema}"))
}

fn array_fault(document: &Value, items: &Value, value: &Value) -> Option<String> {
    let Some(elements) = value.as_array() else { return Some(format!("{value} is no array")) };
    elements.iter().find_map(|element| fault(document, items, element))
}

fn object_fault(document: &Value, schema: &Value, value: &Value) -> Option<String> {
    let Some(object) = value.as_object() else { return Some(format!("{value} is no object")) };
    let properties = schema["properties"].as_object()?;
    let required = schema["required"].as_array().unwrap();
    if let Some(name) = required.iter().find(|name| !object.contains_key(name.as_str().unwrap())) {
        return Some(format!("{name} is missing"));
    }
    object.iter().find_map(|(name, value)| match properties.get(name) {
        None => Some(format!("{name} is not in the document")),
        Some(schema) => fault(document, schema, value).map(|fault| format!("{name}: {fault}")),
    })
}

/// The examples of all methods, and calls whose results have other members than those.
pub(crate) fn samples() -> Vec<(&'static str, Value)> {
    let examples = METHODS.iter().filter(|method| method.name != "rpc.discover");
    let example = |method: &Method| (method.name, serde_json::from_str(method.example).unwrap());
    let mut samples: Vec<_> = examples.map(example).collect();
    samples.extend([
        ("eth_getLogs", json!([{ "fromBlock": "earliest", "toBlock": "0x80" }])),
        ("eth_feeHistory", json!(["0x4", "latest", [10, 90]])),
        ("zks_getRawBlockTransactions", json!([240])),
        ("zks_getRawBlockTransactions", json!([247])),
    ]);
    // One block of each era has its own members.
    for block in ["0x0", "0x5", "0x22", "0x48", "0x69", "0x72", "0x88", "latest"] {
        samples.push(("eth_getBlockByNumber", json!([block, true])));
        samples.push(("eth_getBlockByNumber", json!([block, false])));
        samples.push(("eth_getBlockReceipts", json!([block])));
    }
    samples
}

#[test]
fn answers_have_the_shape_that_the_document_gives_them() {
    let (gateway, document) = (Gateway::on_demo_chain(""), document());
    for (name, params) in samples() {
        let methods = document["methods"].as_array().unwrap();
        let method = methods.iter().find(|method| method["name"] == name).unwrap();
        let json = gateway.call(name, &params.to_string());
        assert!(json["result"] != Value::Null, "{name} {params}: {json}");
        let fault = fault(&document, &method["result"]["schema"], &json["result"]);
        assert_eq!(fault, None, "{name} {params}");
    }
}

#[test]
fn the_examples_of_the_document_have_the_shape_that_it_gives_them() {
    let document = document();
    for method in document["methods"].as_array().unwrap() {
        let (name, examples) = (&method["name"], method["examples"].as_array().unwrap());
        assert_eq!(examples.is_empty(), name == "rpc.discover", "{name}");
        for example in examples {
            let params =
                example["params"].as_array().unwrap().iter().zip(method["params"].as_array().unwrap());
            for (given, param) in params {
                assert_eq!(given["name"], param["name"], "{name}");
                assert_eq!(fault(&document, &param["schema"], &given["value"]), None, "{name}");
            }
            let result = &example["result"]["value"];
            assert_eq!(fault(&document, &method["result"]["schema"], result), None, "{name}");
        }
    }
}

#[test]
fn the_document_is_served_by_rpc_discover() {
    let gateway = Gateway::on_demo_chain("");
    assert_eq!(gateway.call("rpc.discover", "[]")["result"], document());
}
