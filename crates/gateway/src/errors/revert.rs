//! The reason that a contract gives for reverting, as the usual text.

use alloy_primitives::U256;

const ERROR_STRING: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0];
const PANIC: [u8; 4] = [0x4e, 0x48, 0x7b, 0x71];

/// `execution reverted`, with the reason if the data is an `Error(string)` or a `Panic(uint256)`.
pub(super) fn message(data: &[u8]) -> String {
    match reason(data) {
        Some(reason) => format!("execution reverted: {reason}"),
        None => "execution reverted".to_owned(),
    }
}

fn reason(data: &[u8]) -> Option<String> {
    let (selector, words) = data.split_first_chunk::<4>()?;
    match *selector {
        ERROR_STRING => error_string(words),
        PANIC => Some(panic_name(U256::from_be_slice(words.get(..32)?))),
        _ => None,
    }
}

/// ABI: an offset to a length and that many bytes.
fn error_string(words: &[u8]) -> Option<String> {
    let size_at = |at: usize| -> Option<usize> {
        let word = words.get(at..at.checked_add(32)?)?;
        usize::try_from(U256::from_be_slice(word)).ok()
    };
    let at = size_at(0)?;
    let start = at.checked_add(32)?;
    let text = words.get(start..start.checked_add(size_at(at)?)?)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

fn panic_name(code: U256) -> String {
    let name = match u64::try_from(code).unwrap_or(u64::MAX) {
        0x01 => "assert(false)",
        0x11 => "arithmetic underflow or overflow",
        0x12 => "division or modulo by zero",
        0x21 => "enum overflow",
        0x22 => "invalid encoded storage byte array accessed",
        0x31 => "out-of-bounds array access; popping on an empty array",
        0x32 => "out-of-bounds access of an array or bytesN",
        0x41 => "out of memory",
        0x51 => "uninitialized function",
        _ => return format!("unknown panic code: {code:#x}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(number: u64) -> [u8; 32] {
        U256::from(number).to_be_bytes()
    }

    #[test]
    fn a_reason_is_decoded_from_an_error_string() {
        let mut padded = [0; 32];
        padded[..5].copy_from_slice(b"nope!");
        let data = [&ERROR_STRING[..], &word(32), &word(5), &padded].concat();
        assert_eq!(message(&data), "execution reverted: nope!");
    }

    #[test]
    fn a_panic_has_its_usual_name() {
        let panic = |code| [&PANIC[..], &word(code)].concat();
        for (code, name) in [
            (0x01, "assert(false)"),
            (0x11, "arithmetic underflow or overflow"),
            (0x12, "division or modulo by zero"),
            (0x21, "enum overflow"),
            (0x22, "invalid encoded storage byte array accessed"),
            (0x31, "out-of-bounds array access; popping on an empty array"),
            (0x32, "out-of-bounds access of an array or bytesN"),
            (0x41, "out of memory"),
            (0x51, "uninitialized function"),
            (0x99, "unknown panic code: 0x99"),
        ] {
            assert_eq!(message(&panic(code)), format!("execution reverted: {name}"));
        }
    }

    #[test]
    fn a_custom_error_none_or_a_lying_length_has_no_reason() {
        let lying = [&ERROR_STRING[..], &word(32), &word(u64::MAX), &word(0)].concat();
        for data in [&[][..], &[1, 2, 3], &[0xde, 0xad, 0xbe, 0xef, 0], &lying] {
            assert_eq!(message(data), "execution reverted");
        }
    }
}
