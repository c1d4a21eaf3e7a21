//! The `data` of an error.

use std::fmt;

use alloy_primitives::{Bytes as RevertData, hex};
use bytes::Bytes;

use crate::policy::INLINE_REVERT_BYTES_MAX;

/// Bytes of JSON text that are copied at once, as many as such a revert has.
const COPIED_JSON_BYTES_MAX: usize = 2 * INLINE_REVERT_BYTES_MAX + QUOTES_BYTES;

/// Bytes of JSON text around the digits.
const QUOTES_BYTES: usize = r#""0x""#.len();

/// The `data` of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorData {
    /// JSON text.
    Json(Bytes),
    /// The data of a revert, which becomes a string of hexadecimal digits.
    Revert(RevertData),
}

impl From<String> for ErrorData {
    fn from(json: String) -> Self {
        Self::Json(json.into())
    }
}

impl ErrorData {
    /// Bytes of the JSON text.
    pub(super) fn json_bytes(&self) -> usize {
        match self {
            Self::Json(json) => json.len(),
            Self::Revert(data) => QUOTES_BYTES + 2 * data.len(),
        }
    }

    /// Whether it is to be turned into JSON in the pool.
    pub(crate) fn is_large_revert(&self) -> bool {
        matches!(self, Self::Revert(data) if data.len() > INLINE_REVERT_BYTES_MAX)
    }

    /// The data as JSON text.
    pub(crate) fn into_json(self) -> Self {
        let mut json = Vec::with_capacity(self.json_bytes());
        match self {
            Self::Revert(data) => write_revert(&mut json, &data),
            Self::Json(_) => return self,
        }
        Self::Json(json.into())
    }

    /// Writes the JSON text, or returns it if it is large.
    pub(super) fn write(self, out: &mut Vec<u8>) -> Option<Bytes> {
        match self {
            Self::Json(json) if json.len() > COPIED_JSON_BYTES_MAX => return Some(json),
            Self::Json(json) => out.extend_from_slice(&json),
            Self::Revert(data) => write_revert(out, &data),
        }
        None
    }
}

impl fmt::Display for ErrorData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(json) => f.write_str(&String::from_utf8_lossy(json)),
            Self::Revert(data) => write!(f, "\"{data}\""),
        }
    }
}

fn write_revert(out: &mut Vec<u8>, data: &[u8]) {
    out.extend_from_slice(b"\"0x");
    let digits = out.len();
    out.resize(digits + 2 * data.len(), b'0');
    let written = hex::encode_to_slice(data, &mut out[digits..]);
    debug_assert!(written.is_ok(), "there is room for two digits per byte");
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_revert_is_written_once_and_a_small_one_in_place() {
        for (len, is_large) in
            [(0, false), (INLINE_REVERT_BYTES_MAX, false), (INLINE_REVERT_BYTES_MAX + 1, true)]
        {
            let data = ErrorData::Revert(vec![0xa5; len].into());
            let expected = format!("\"0x{}\"", "a5".repeat(len));
            assert_eq!((data.is_large_revert(), data.json_bytes()), (is_large, expected.len()), "{len}");
            assert!(data.to_string() == expected, "{len}");
            let mut out = Vec::new();
            let rest = data.clone().into_json().write(&mut out);
            assert_eq!(rest.is_some(), is_large, "{len}");
            assert!(rest.unwrap_or(out.into()) == expected, "{len}");
            let mut out = Vec::new();
            assert!(data.write(&mut out).is_none() && out == expected.into_bytes(), "{len}");
        }
    }
}
