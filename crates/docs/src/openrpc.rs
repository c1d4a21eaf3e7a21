//! The OpenRPC document: every method, for programs.

use methods::Method;
use serde_json::{Map, Value, json};

use crate::examples::Example;
use crate::method_facts;
use crate::types::{Shape, TYPES, Type, members};

pub(crate) fn document(examples: &[Example]) -> String {
    let methods: Vec<_> = examples.iter().map(method).collect();
    let schemas: Map<_, _> = TYPES.iter().map(|row| (row.name.to_owned(), component(row))).collect();
    let document = json!({
        "openrpc": "1.3.2",
        "info": {
            "title": "Chaingate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Calls are POSTed to {base_url}/v3/<API_KEY>.",
        },
        "servers": [{
            "name": "demo",
            "summary": "The demo chain, as `cargo run --release` serves it.",
            "url": "http://127.0.0.1:8545/v3/{key}",
            "variables": { "key": { "default": "demo", "description": "The API key." } },
        }],
        "methods": methods,
        "components": { "schemas": schemas },
    });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn method(example: &Example) -> Value {
    let method = example.method;
    let params = method.params().enumerate().map(|(position, param)| {
        let required = position < method.required.len();
        let mut schema = schema(param.type_name());
        if !required {
            // A parameter that may be left out may also be null.
            schema = json!({ "anyOf": [schema, { "type": "null" }] });
            if let Some(default) = method_facts::param_default(param) {
                schema["default"] = parsed(default);
            }
        }
        let about = param.about();
        json!({ "name": param.name(), "description": about, "required": required, "schema": schema })
    });
    let errors = method_facts::errors(example).into_iter().map(|(_, error)| {
        let mut object = json!({ "code": error.code, "message": error.message });
        if let Some(data) = &error.data {
            object["data"] = parsed(&data.to_string());
        }
        object
    });
    let examples = example.result().map(|result| pairing(method, result));
    json!({
        "name": method.name,
        "summary": method.about,
        "paramStructure": "by-position",
        "params": params.collect::<Vec<_>>(),
        "result": { "name": "result", "schema": schema(method.result) },
        "errors": errors.collect::<Vec<_>>(),
        "examples": Vec::from_iter(examples),
        "x-credits": method.credits,
    })
}

/// An example with its parameters and its whole result.
fn pairing(method: &Method, result: &str) -> Value {
    let values = parsed(method.example);
    let values = values.as_array().into_iter().flatten();
    let params =
        method.params().zip(values).map(|(param, value)| json!({ "name": param.name(), "value": value }));
    json!({
        "name": "demo chain",
        "params": params.collect::<Vec<_>>(),
        "result": { "name": "result", "value": parsed(result) },
    })
}

/// A value whose JSON was written by this program.
fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

fn component(row: &Type) -> Value {
    let mut schema = match row.shape {
        Shape::Text(pattern) => json!({ "type": "string", "pattern": pattern }),
        Shape::Plain(kind) => json!({ "type": kind }),
        Shape::OneOf(shape) => schema(shape),
        Shape::Object(object) => object_schema(object),
    };
    schema["description"] = row.about.into();
    schema
}

fn object_schema(object: &'static str) -> Value {
    let properties: Map<_, _> =
        members(object).map(|(name, shape, _)| (name.to_owned(), schema(shape))).collect();
    let required: Vec<_> = members(object).filter(|(_, _, always)| *always).map(|(name, ..)| name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The schema of a type in shorthand.
fn schema(shape: &str) -> Value {
    if shape.contains('|') {
        return json!({ "anyOf": shape.split('|').map(schema).collect::<Vec<_>>() });
    }
    match shape.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(element) => json!({ "type": "array", "items": schema(element) }),
        None if shape == "null" => json!({ "type": "null" }),
        None => json!({ "$ref": format!("#/components/schemas/{shape}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::examples_without_replies;

    #[test]
    fn every_type_that_is_named_is_there_and_none_is_idle() {
        let text = document(&examples_without_replies().unwrap());
        for row in TYPES {
            let name = format!("\"#/components/schemas/{}\"", row.name);
            assert!(text.contains(&name), "{} is never used", row.name);
        }
        let references = text.split("#/components/schemas/").skip(1);
        for name in references.filter_map(|rest| rest.split('"').next()) {
            assert!(TYPES.iter().any(|row| row.name == name), "there is no {name}");
        }
    }
}
