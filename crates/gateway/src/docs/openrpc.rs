//! The OpenRPC document: every method, for programs.

use serde_json::{Map, Value, json};

use super::types::{Shape, TYPES, Type, members, of_param};
use crate::methods::{METHODS, Method};

pub(super) fn document() -> String {
    let methods: Vec<_> = METHODS.iter().map(method).collect();
    let schemas: Map<_, _> = TYPES.iter().map(|row| (row.name.to_owned(), component(row))).collect();
    let document = json!({
        "openrpc": "1.3.2",
        "info": {
            "title": "Chaingate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Calls are POSTed to {base_url}/v3/<API_KEY>.",
        },
        "methods": methods,
        "components": { "schemas": schemas },
    });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn method(method: &Method) -> Value {
    let params = method.params.iter().enumerate().map(|(position, name)| {
        let required = position < method.optional_from;
        let schema = schema(of_param(method, name));
        // A parameter that may be left out may also be null.
        let schema = if required { schema } else { json!({ "anyOf": [schema, { "type": "null" }] }) };
        json!({ "name": name, "required": required, "schema": schema })
    });
    json!({
        "name": method.name,
        "summary": method.about,
        "paramStructure": "by-position",
        "params": params.collect::<Vec<_>>(),
        "result": { "name": "result", "schema": schema(method.result) },
        "x-credits": method.credits,
    })
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

    #[test]
    fn every_type_that_is_named_is_there_and_none_is_idle() {
        let text = document();
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
