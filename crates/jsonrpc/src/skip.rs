//! Finds the end of a value in text that was validated before, or is validated later.
//!
//! Only quotes and brackets are read, so text that is not JSON may be accepted.

use memchr::memchr2;

/// The length of the value at the start of `bytes`; `None` if there is none or it is incomplete.
pub fn value_len(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        b'"' => string_len(bytes),
        b'{' | b'[' => nested_len(bytes),
        _ => word_len(bytes),
    }
}

/// The length of the string at the start of `bytes`, including its quotes.
#[inline]
pub(crate) fn string_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let rest = bytes.get(at..)?;
        let end = memchr2(b'"', b'\\', rest)?;
        if rest[end] == b'"' {
            return Some(at + end + 1);
        }
        at += end + 2;
    }
}

/// The length of an array or object. Counts brackets outside of strings, which are balanced in valid JSON.
fn nested_len(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut open) = (0, 0_usize);
    loop {
        match *bytes.get(at)? {
            b'"' => {
                at += string_len(&bytes[at..])?;
                continue;
            }
            b'{' | b'[' => open += 1,
            b'}' | b']' => open -= 1,
            _ => {}
        }
        at += 1;
        if open == 0 {
            return Some(at);
        }
    }
}

/// The length of a number, `true`, `false` or `null`.
fn word_len(bytes: &[u8]) -> Option<usize> {
    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\t' | b'\r');
    Some(bytes.iter().position(ends).unwrap_or(bytes.len())).filter(|length| *length > 0)
}
