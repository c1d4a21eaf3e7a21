//! Where a value ends, for text that was judged before or is judged afterwards.
//!
//! Only quotes and brackets are looked at: what is no JSON has an end here, too, or none.

use memchr::memchr2;

/// How long the value is that these bytes begin with; `None` if it does not end in them, or there is none.
pub fn value_len(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        b'"' => string_len(bytes),
        b'{' | b'[' => nested_len(bytes),
        _ => word_len(bytes),
    }
}

/// The same for a string, with its quotes.
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

/// Brackets outside of strings pair up, so counting them is enough.
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

/// A number, `true`, `false` or `null`.
fn word_len(bytes: &[u8]) -> Option<usize> {
    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\t' | b'\r');
    Some(bytes.iter().position(ends).unwrap_or(bytes.len())).filter(|length| *length > 0)
}
