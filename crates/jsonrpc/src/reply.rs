//! Writes replies into one buffer.
//!
//! The caller writes a result between `begin_result` and `end_result`, and `[`, `,` and `]` around the replies of a batch.

use crate::call::Id;

/// The `error` member of a reply.
#[derive(Clone, Copy, Debug)]
pub struct ErrorObject<'a> {
    pub code: i32,
    pub message: &'a str,
    /// JSON text, which is copied verbatim.
    pub data: Option<&'a str>,
}

/// Writes the part of a reply before the result.
#[inline]
pub fn begin_result(out: &mut Vec<u8>, id: Id<'_>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.raw().as_bytes());
    out.extend_from_slice(b",\"result\":");
}

/// Writes the part of a reply after the result.
#[inline]
pub fn end_result(out: &mut Vec<u8>) {
    out.push(b'}');
}

/// Writes an error reply.
pub fn write_error(out: &mut Vec<u8>, id: Id<'_>, error: ErrorObject<'_>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.raw().as_bytes());
    out.extend_from_slice(b",\"error\":{\"code\":");
    out.extend_from_slice(error.code.to_string().as_bytes());
    out.extend_from_slice(b",\"message\":\"");
    escape_into(out, error.message);
    out.push(b'"');
    if let Some(data) = error.data {
        out.extend_from_slice(b",\"data\":");
        out.extend_from_slice(data.as_bytes());
    }
    out.extend_from_slice(b"}}");
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
        let mut out = Vec::new();
        write_error(&mut out, Id::NULL, ErrorObject { code: -32700, message: "parse error", data: None });
        assert_eq!(out, br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#);
        out.clear();
        write_error(&mut out, Id::NULL, ErrorObject { code: 3, message: "a\"b", data: Some("\"0x\"") });
        assert_eq!(out, br#"{"jsonrpc":"2.0","id":null,"error":{"code":3,"message":"a\"b","data":"0x"}}"#);
    }

    proptest! {
        #[test]
        fn messages_are_escaped_correctly(message: String) {
            let mut out = Vec::new();
            write_error(&mut out, Id::NULL, ErrorObject { code: 1, message: &message, data: None });
            let tree: serde_json::Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(tree["error"]["message"].as_str().unwrap(), message);
        }
    }
}
