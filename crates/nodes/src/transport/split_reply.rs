//! Finds the results in replies of the usual form without parsing them.
//!
//! A large result is read to its last byte by whoever checks it, so parsing it here would be a second pass over megabytes. This
//! module only finds where the result is if the reply is well-formed. If it then turns out to be no JSON value, the reply was not.

use std::sync::LazyLock;

use memchr::memmem;

const ID_FIRST: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
const RESULT_LAST: &[u8] = br#","result":"#;
const RESULT_FIRST: &[u8] = br#"{"jsonrpc":"2.0","result":"#;
const ID_LAST: &[u8] = br#","id":"#;
/// The text between two results of a batch, up to the id of the second.
const NEXT: &[u8] = br#"},{"jsonrpc":"2.0","id":"#;

static NEXT_REPLY: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(NEXT));

/// The result of the reply with this id, if the reply has one of the two usual forms and the result is an array or an
/// object. Not proven to be JSON.
pub(super) fn split_reply(body: &[u8], id: u64) -> Option<&[u8]> {
    let (mut digits, inside) = (itoa::Buffer::new(), body.trim_ascii().strip_suffix(b"}")?);
    let id = digits.format(id).as_bytes();
    let result = match inside.strip_prefix(ID_FIRST) {
        Some(rest) => rest.strip_prefix(id)?.strip_prefix(RESULT_LAST)?,
        None => inside.strip_prefix(RESULT_FIRST)?.strip_suffix(id)?.strip_suffix(ID_LAST)?,
    };
    matches!((result.first()?, result.last()?), (b'[', b']') | (b'{', b'}')).then_some(result)
}

/// The results of a batch with running ids, if all replies are there, in their order and with their ids first. Not proven
/// to be JSON.
pub(super) fn split_batch(body: &[u8], first_id: u64, count: usize) -> Option<Vec<&[u8]>> {
    let mut rest = body.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"}]")?.strip_prefix(ID_FIRST)?;
    let mut digits = itoa::Buffer::new();
    let mut results = Vec::with_capacity(count);
    for id in (first_id..).take(count) {
        rest = rest.strip_prefix(digits.format(id).as_bytes())?.strip_prefix(RESULT_LAST)?;
        let is_last = results.len() + 1 == count;
        // Quotes inside strings are escaped, so this text is never a part of one.
        let end = if is_last { rest.len() } else { NEXT_REPLY.find(rest)? };
        results.push(&rest[..end]);
        rest = rest.get(end + NEXT.len()..).unwrap_or_default();
    }
    results.iter().all(|result| is_trimmed(result)).then_some(results)
}

fn is_trimmed(result: &[u8]) -> bool {
    !result.is_empty() && result.trim_ascii().len() == result.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_usual_forms_are_taken_apart() {
        for body in [
            r#"{"jsonrpc":"2.0","id":17,"result":[{"a":1},[]]}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":17,\"result\":[{\"a\":1},[]]}\n",
            r#" {"jsonrpc":"2.0","result":[{"a":1},[]],"id":17} "#,
        ] {
            assert_eq!(split_reply(body.as_bytes(), 17), Some(&br#"[{"a":1},[]]"#[..]), "{body}");
        }
    }

    #[test]
    fn anything_else_is_for_the_scanner() {
        for body in [
            r#"{"jsonrpc":"2.0","id":18,"result":[]}"#,
            r#"{"jsonrpc":"2.0","id":170,"result":[]}"#,
            r#"{"jsonrpc":"2.0","id":17,"result":null}"#,
            r#"{"jsonrpc":"2.0","id":17,"result":"0x"}"#,
            r#"{"jsonrpc":"2.0","id":17,"result":[],"error":null}"#,
            r#"{"jsonrpc":"2.0","id":17,"error":{}}"#,
            r#"{"jsonrpc":"2.0","result":[],"id":18}"#,
            r#"{"jsonrpc":"2.0","result":[],"id":117}"#,
            r#"{"jsonrpc": "2.0","id":17,"result":[]}"#,
            r#"{"jsonrpc":"2.0","id":17,"result":[}"#,
            r#"{"jsonrpc":"2.0","id":17,"result":}"#,
            "",
        ] {
            assert_eq!(split_reply(body.as_bytes(), 17), None, "{body}");
        }
    }

    #[test]
    fn a_batch_in_order_is_taken_apart() {
        let reply = |id: u64, result: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        let (one, two, three) = (reply(9, "[{}]"), reply(10, "null"), reply(11, r#"{"a":{}}"#));
        let body = format!("[{one},{two},{three}]\n");
        let results: [&[u8]; 3] = [b"[{}]", b"null", br#"{"a":{}}"#];
        assert_eq!(split_batch(body.as_bytes(), 9, 3), Some(results.to_vec()));
        assert_eq!(split_batch(body.as_bytes(), 9, 4), None);
        assert_eq!(split_batch(body.as_bytes(), 8, 3), None);
        assert_eq!(split_batch(format!("[{two},{one}]").as_bytes(), 9, 2), None);
        assert_eq!(split_batch(format!("[{one}]").as_bytes(), 9, 1), Some(vec![&b"[{}]"[..]]));
        assert_eq!(split_batch(b"[]", 9, 1), None);
        assert_eq!(split_batch(b"", 9, 0), None);
        // A result that looks like two.
        let (odd, two) = (reply(9, r#"[{"a":1},{"jsonrpc":"2.0","id":5}]"#), reply(10, "[]"));
        assert_eq!(split_batch(format!("[{odd},{two}]").as_bytes(), 9, 2), None);
    }

    /// Fewer were asked for than came: what is left over makes the last one no JSON.
    #[test]
    fn a_reply_too_many_spoils_the_last_one() {
        let body = br#"[{"jsonrpc":"2.0","id":1,"result":[]},{"jsonrpc":"2.0","id":2,"result":[]}]"#;
        let results = split_batch(body, 1, 1).unwrap();
        assert!(jsonrpc::Value::read(std::str::from_utf8(results[0]).unwrap()).is_none());
    }
}
