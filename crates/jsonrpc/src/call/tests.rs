use proptest::prelude::*;
use serde_json::{Value as Tree, json};

use super::*;

fn single(body: &str) -> RequestItem<'_> {
    match parse(body.as_bytes()) {
        Ok(Request::Single(item)) => item,
        other => panic!("not a single call: {other:?}"),
    }
}

fn fault(body: &str) -> CallFault {
    single(body).unwrap_err().fault
}

#[test]
fn calls_borrow_from_the_body() {
    let call =
        single(r#" { "jsonrpc":"2.0", "id": 1.0 ,"method":"eth_call","params":[ {"to":"0x"} , "latest"] } "#)
            .unwrap();
    assert_eq!(call.id.unwrap().raw(), "1.0");
    assert!(matches!(call.method, Cow::Borrowed("eth_call")));
    assert_eq!(call.params.count(), 2);
    assert_eq!(call.params.get(0).unwrap().raw(), r#"{"to":"0x"}"#);
    assert_eq!(call.params.get(1).unwrap().as_str().unwrap(), "latest");
    assert_eq!(call.params.get(2), None);
}

#[test]
fn an_id_is_a_number_a_string_or_null_and_keeps_its_bytes() {
    for id in
        ["1", "1.0", "-0", "1e999", "18446744073709551616", "\"a\"", r#""\u0061\ud800""#, "\"\"", "null"]
    {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        assert_eq!(single(&body).unwrap().id.unwrap().raw(), id);
    }
    let longest = format!("\"{}\"", "a".repeat(ID_BYTES_MAX - 2));
    let too_long = longest.replacen('a', "aa", 1);
    let body = format!(r#"{{"jsonrpc":"2.0","id":{longest},"method":"m"}}"#);
    assert_eq!(single(&body).unwrap().id.unwrap().raw(), longest);
    for id in ["true", "[1]", "{}", &too_long] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        assert_eq!(single(&body), Err(BadCall { id: Id::NULL, fault: CallFault::BadId }));
    }
}

/// A zstd body of 500 bytes inflated to a call with 870,000 members; finding duplicates among them took 50 ms.
#[test]
fn the_number_of_unknown_members_is_limited() {
    let call = |others: usize| {
        let others: String = (0..others).map(|number| format!(r#","x{number}":0"#)).collect();
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m"{others}}}"#)
    };
    assert!(single(&call(UNKNOWN_MEMBERS_MAX)).is_ok());
    let refused = call(UNKNOWN_MEMBERS_MAX + 1);
    let bad = single(&refused).unwrap_err();
    assert_eq!((bad.id.raw(), bad.fault), ("7", CallFault::TooManyMembers));
}

#[test]
fn a_call_without_id_is_a_notification() {
    assert_eq!(single(r#"{"jsonrpc":"2.0","method":"m"}"#).unwrap().id, None);
}

#[test]
fn version_and_method_are_required() {
    assert_eq!(fault(r#"{"id":1,"method":"m"}"#), CallFault::NoVersion);
    assert_eq!(fault(r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#), CallFault::NoVersion);
    assert_eq!(fault(r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#), CallFault::OtherVersion);
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1}"#), CallFault::NoMethod);
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1,"method":7}"#), CallFault::NoMethod);
    assert_eq!(fault("{}"), CallFault::NoVersion);
}

#[test]
fn a_fault_has_the_id_of_its_call() {
    assert_eq!(single(r#"{"id":"x","method":"m"}"#).unwrap_err().id.raw(), "\"x\"");
    assert_eq!(single(r#"{"method":"m"}"#).unwrap_err().id, Id::NULL);
}

#[test]
fn a_method_name_has_at_most_128_bytes() {
    let body = |len: usize| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "m".repeat(len));
    assert!(single(&body(128)).is_ok());
    assert_eq!(fault(&body(129)), CallFault::MethodTooLong);
}

#[test]
fn duplicate_members_are_refused_also_with_escapes() {
    let members = [r#""jsonrpc":"2.0""#, r#""id":1"#, r#""method":"m""#, r#""params":[]"#, r#""other":1"#];
    let names = ["jsonrpc", "id", "method", "params", "other"];
    for name in names {
        let escaped = format!("\\u{:04x}{}", name.as_bytes()[0], &name[1..]);
        for again in [name, &escaped] {
            let body = format!(r#"{{{},"{again}":null}}"#, members.join(","));
            assert_eq!(fault(&body), CallFault::DuplicateMember, "{body}");
        }
    }
}

#[test]
fn member_names_may_have_escapes() {
    let call = single(
        r#"{"\u006asonrpc":"2\u002e0","\u0069d":7,"meth\u006fd":"eth_ch\u0061inId","p\u0061rams":[1]}"#,
    );
    let call = call.unwrap();
    assert_eq!((call.id.unwrap().raw(), &*call.method, call.params.count()), ("7", "eth_chainId", 1));
}

#[test]
fn unknown_members_are_ignored_but_must_be_json() {
    assert!(single(r#"{"jsonrpc":"2.0","id":1,"method":"m","x":{"y":[1,{"z":null}]}}"#).is_ok());
    assert_eq!(parse(br#"{"jsonrpc":"2.0","id":1,"method":"m","x":{"y":01}}"#), Err(BodyFault::NotJson));
}

#[test]
fn params_are_an_array_or_null() {
    let params = |text: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{text}}}"#);
        let params = single(&body).unwrap().params;
        (params.count(), params.is_not_array())
    };
    assert_eq!(params("null"), (0, false));
    assert_eq!(params("[ ]"), (0, false));
    assert_eq!(params("[1,2,3,4,5,6]"), (6, false));
    assert_eq!(params("{}"), (0, true));
    assert_eq!(params("\"x\""), (0, true));
}

#[test]
fn invalid_json_and_json_that_is_not_a_call_are_distinguished() {
    for body in
        ["", " ", "{", "[", "[1", "nul", "{}x", "[]x", "1 2", "\u{feff}{}", "{'a':1}", "[1,]", "{\"a\":1,}"]
    {
        assert_eq!(parse(body.as_bytes()), Err(BodyFault::NotJson), "{body:?}");
    }
    assert_eq!(parse(b"{\"a\":\"\xff\"}"), Err(BodyFault::NotJson));
    assert_eq!(parse(b"{\"a\":\"\x00\"}"), Err(BodyFault::NotJson));
    for body in ["1", "\"x\"", "null", "true"] {
        assert_eq!(parse(body.as_bytes()), Err(BodyFault::NotACall), "{body:?}");
    }
    assert_eq!(parse(b" [ ] "), Err(BodyFault::EmptyBatch));
}

#[test]
fn depth_counts_from_the_outermost_bracket() {
    let body = |inner: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":[{}{}]}}"#,
            "[".repeat(inner),
            "]".repeat(inner)
        )
    };
    assert!(parse(body(62).as_bytes()).is_ok());
    assert_eq!(parse(body(63).as_bytes()), Err(BodyFault::NotJson));
    let batch = |inner: usize| format!("[{}]", body(inner));
    assert!(parse(batch(61).as_bytes()).is_ok());
    assert_eq!(parse(batch(62).as_bytes()), Err(BodyFault::NotJson));
    assert_eq!(parse("[".repeat(1_000_000).as_bytes()), Err(BodyFault::NotJson));
    assert_eq!(parse("{\"a\":".repeat(1_000_000).as_bytes()), Err(BodyFault::NotJson));
}

#[test]
fn a_batch_keeps_the_order_of_valid_and_invalid_elements() {
    let Ok(Request::Batch(items)) = parse(br#"[1,{"jsonrpc":"2.0","id":2,"method":"m"},[],{}]"#) else {
        panic!()
    };
    let faults: Vec<_> = items.iter().map(|item| item.as_ref().err().map(|bad| bad.fault)).collect();
    let no_object = Some(CallFault::NotAnObject);
    assert_eq!(faults, [no_object, None, no_object, Some(CallFault::NoVersion)]);
}

#[test]
fn a_batch_holds_at_most_1000_calls() {
    let body = |calls: usize| format!("[{}]", vec!["1"; calls].join(","));
    assert!(matches!(parse(body(1_000).as_bytes()), Ok(Request::Batch(items)) if items.len() == 1_000));
    assert_eq!(parse(body(1_001).as_bytes()), Err(BodyFault::BatchTooLarge));
}

/// Any JSON tree within the depth limit.
fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::from),
        any::<i64>().prop_map(Tree::from),
        any::<i32>().prop_map(|halves| Tree::from(f64::from(halves) / 2.0)),
        any::<String>().prop_map(Tree::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Tree::from),
            prop::collection::hash_map("[a-z\"\\\\é]{0,6}", inner, 0..5)
                .prop_map(|map| Tree::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_call_that_serde_json_writes_is_read_back(id in "[0-9]{1,30}", method: String, params in prop::collection::vec(tree(), 0..7), pretty: bool) {
        let raw_id: &serde_json::value::RawValue = serde_json::from_str(if id.starts_with('0') { "0" } else { &id }).unwrap();
        let mut tree = json!({"jsonrpc": "2.0", "method": method, "params": params});
        tree["id"] = Tree::Null;
        let body = if pretty { serde_json::to_string_pretty(&tree) } else { serde_json::to_string(&tree) }.unwrap();
        let body = body.replacen(if pretty { "\"id\": null" } else { "\"id\":null" }, &format!("\"id\":{raw_id}"), 1);
        match single(&body) {
            Ok(call) => {
                prop_assert_eq!(call.id.unwrap().raw(), raw_id.get());
                prop_assert_eq!(&*call.method, method.as_str());
                prop_assert_eq!(call.params.count(), params.len());
                for (position, param) in params.iter().take(POSITIONS_MAX).enumerate() {
                    let raw = call.params.get(position).unwrap().raw();
                    prop_assert_eq!(&serde_json::from_str::<Tree>(raw).unwrap(), param);
                }
            }
            Err(bad) => prop_assert!(bad.fault == CallFault::MethodTooLong && method.len() > METHOD_BYTES_MAX),
        }
    }

    /// Changes one byte anywhere in a body.
    #[test]
    fn bodies_are_invalid_json_exactly_if_serde_json_refuses_them(params in tree(), at: prop::sample::Index, byte: u8) {
        let mut body = serde_json::to_vec(&json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": [params]})).unwrap();
        let at = at.index(body.len());
        body[at] = byte;
        let expected = std::str::from_utf8(&body).is_ok() && serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok();
        prop_assert_eq!(parse(&body) != Err(BodyFault::NotJson), expected, "{}", String::from_utf8_lossy(&body));
    }

    #[test]
    fn arbitrary_bytes_never_panic(body: Vec<u8>) {
        let _result = parse(&body);
    }
}
