//! `jsonrpc::parse` against `serde_json`, which reads the same bytes in another way.

use jsonrpc::{BodyFault, Call, DEPTH_MAX, Id, POSITIONS_MAX, Request, RequestItem};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// Judges any bytes.
pub fn run(data: &[u8]) {
    let parsed = jsonrpc::parse(data);
    let text = std::str::from_utf8(data).ok();
    let valid = text.is_some_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
    let acceptable = valid && text.is_some_and(|text| depth(text) <= DEPTH_MAX);
    match &parsed {
        // What comes after too many calls is not looked at.
        Err(BodyFault::BatchTooLarge) => {}
        Err(BodyFault::NotJson) => assert!(!acceptable, "JSON within the limits was refused"),
        _ => assert!(acceptable, "what is no JSON, or too deep, was accepted as {parsed:?}"),
    }
    let Some(text) = text else { return };
    match parsed {
        Ok(Request::Single(item)) => check(&item, text),
        Ok(Request::Batch(items)) => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).expect("a batch is an array");
            assert_eq!(items.len(), elements.len());
            items.iter().zip(elements).for_each(|(item, element)| check(item, element.get()));
        }
        Err(_) => {}
    }
}

/// How deep arrays and objects nest, whatever else is wrong with the text.
fn depth(text: &str) -> usize {
    let (mut open, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' if !quoted => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn check(item: &RequestItem<'_>, text: &str) {
    // A name with half a surrogate pair has no text, and the other parser refuses it.
    let members = serde_json::from_str::<HashMap<String, &RawValue>>(text).ok();
    match (item, members) {
        (Ok(call), Some(members)) => check_call(call, &members),
        (Ok(_), None) => assert!(text.contains("\\u"), "no object was accepted: {text}"),
        (Err(bad), members) => {
            let own = members.and_then(|members| members.get("id").map(|id| id.get().to_owned()));
            let known = bad.id == Id::NULL || own.as_deref() == Some(bad.id.raw());
            assert!(known || text.contains("\\u"), "the id {:?} is not the caller's", bad.id);
        }
    }
}

fn check_call(call: &Call<'_>, members: &HashMap<String, &RawValue>) {
    let raw = |name: &str| members.get(name).map(|value| value.get());
    assert_eq!(call.id.map(Id::raw), raw("id"));
    assert_eq!(raw("jsonrpc").and_then(string).as_deref(), Some("2.0"));
    if let Some(method) = raw("method").and_then(string) {
        assert_eq!(call.method, method);
    }
    match raw("params") {
        Some(params) if params.starts_with('[') => {
            let values: Vec<&RawValue> = serde_json::from_str(params).expect("it is an array");
            assert_eq!(call.params.count(), values.len());
            for (position, value) in values.iter().enumerate().take(POSITIONS_MAX) {
                assert_eq!(call.params.get(position).map(|value| value.raw()), Some(value.get()));
            }
        }
        Some(params) => assert_eq!(call.params.is_not_array(), params != "null"),
        None => assert_eq!((call.params.count(), call.params.is_not_array()), (0, false)),
    }
}

fn string(raw: &str) -> Option<String> {
    serde_json::from_str(raw).ok()
}
