//! Writes replies into one buffer.
//!
//! The caller writes a result between `begin_result` and `end_result`, and `[`, `,` and `]` around the replies of a batch.

use crate::call::Id;

/// Writes the part of a reply before the result.
#[inline]
pub fn begin_result(out: &mut Vec<u8>, id: Id<'_>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.raw().as_bytes());
    out.extend_from_slice(b",\"result\":");
}

/// The part of a reply after the result.
pub const RESULT_END: &[u8] = b"}";

/// Writes the part of a reply after the result.
#[inline]
pub fn end_result(out: &mut Vec<u8>) {
    out.extend_from_slice(RESULT_END);
}

/// Writes the part of an error reply before its data, or before [`ERROR_END`] if it has none.
pub fn begin_error(out: &mut Vec<u8>, id: Id<'_>, code: i32, message: &str, has_data: bool) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.raw().as_bytes());
    out.extend_from_slice(b",\"error\":{\"code\":");
    out.extend_from_slice(code.to_string().as_bytes());
    out.extend_from_slice(b",\"message\":\"");
    escape_into(out, message);
    out.push(b'"');
    if has_data {
        out.extend_from_slice(b",\"data\":");
    }
}

/// The part of an error reply after the message or the data.
pub const ERROR_END: &[u8] = b"}}";

/// Bytes of an error reply around its id, its message and its data, with a code of six characters.
const ERROR_BYTES: usize = 70;

/// An upper bound of the bytes of an error reply, which it misses by a few bytes.
pub fn error_bytes(id_bytes: usize, message: &str, data_bytes: usize) -> usize {
    ERROR_BYTES + id_bytes + escaped_bytes(message) + data_bytes
}

/// Writes text with the escapes of a JSON string, without quotes.
fn escape_into(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
            _ => out.push(byte),
        }
    }
}

/// Bytes of a text with the escapes of a JSON string.
fn escaped_bytes(text: &str) -> usize {
    let escaped = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_result_follows_the_id() {
        let mut out = Vec::new();
        begin_result(&mut out, Id::NULL);
        out.extend_from_slice(b"\"0x1\"");
        end_result(&mut out);
        assert_eq!(out, br#"{"jsonrpc":"2.0","id":null,"result":"0x1"}"#);
    }

    #[test]
    fn an_error_without_data_has_no_data_member() {
        let without = error(-32700, "parse error", "");
        assert_eq!(
            without,
            br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#
        );
        let with = error(3, "a\"b", "\"0x\"");
        assert_eq!(with, br#"{"jsonrpc":"2.0","id":null,"error":{"code":3,"message":"a\"b","data":"0x"}}"#);
    }

    /// An error reply; without data if `data` is empty.
    fn error(code: i32, message: &str, data: &str) -> Vec<u8> {
        let mut out = Vec::new();
        begin_error(&mut out, Id::NULL, code, message, !data.is_empty());
        out.extend_from_slice(data.as_bytes());
        out.extend_from_slice(ERROR_END);
        out
    }

    proptest! {
        #[test]
        fn messages_are_escaped_correctly(message: String) {
            let out = error(1, &message, "");
            let tree: serde_json::Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(tree["error"]["message"].as_str().unwrap(), message);
        }

        #[test]
        fn an_error_reply_is_about_as_long_as_foretold(message: String, data in "[0-9]{0,20}") {
            let (written, foretold) = (error(-32_000, &message, &data).len(), error_bytes(4, &message, data.len()));
            prop_assert!((written..written + 20).contains(&foretold), "{} for {}", foretold, written);
        }
    }
}
